// Small words of the checks: one check as a value, lists as text.
//
// Thread rule: pure functions, any thread.
#ifndef ASSAY_AGENT_DOCTOR_FINDINGS_H_
#define ASSAY_AGENT_DOCTOR_FINDINGS_H_

#include <string>
#include <utility>
#include <vector>

#include "common/doctor/doctor_report.h"

namespace assay {

inline DoctorCheck Good(std::string name, std::string finding) {
  return {std::move(name), CheckState::kOk, std::move(finding), ""};
}
inline DoctorCheck NotKnown(std::string name, std::string finding, std::string remedy = "") {
  return {std::move(name), CheckState::kUnknown, std::move(finding), std::move(remedy)};
}
inline DoctorCheck Warn(std::string name, std::string finding, std::string remedy = "") {
  return {std::move(name), CheckState::kWarning, std::move(finding), std::move(remedy)};
}
inline DoctorCheck Bad(std::string name, std::string finding, std::string remedy = "") {
  return {std::move(name), CheckState::kBad, std::move(finding), std::move(remedy)};
}

// "a, b and c"; "" for none.
inline std::string Listed(const std::vector<std::string>& items) {
  std::string text;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) text += i + 1 == items.size() ? " and " : ", ";
    text += items[i];
  }
  return text;
}

// "GPU 0", "GPUs 0, 1 and 3", "all 8 GPUs" where `of` has no others.
inline std::string GpusText(const std::vector<int>& indexes, size_t of) {
  if (indexes.size() == of && of > 1) return "all " + std::to_string(of) + " GPUs";
  std::vector<std::string> numbers;
  for (const int index : indexes) numbers.push_back(std::to_string(index));
  return (indexes.size() == 1 ? "GPU " : "GPUs ") + Listed(numbers);
}

}  // namespace assay

#endif  // ASSAY_AGENT_DOCTOR_FINDINGS_H_
