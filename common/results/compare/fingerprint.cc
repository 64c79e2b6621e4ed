#include "common/results/compare/fingerprint.h"

#include <fmt/format.h>

namespace assay::compare {

std::optional<size_t> FingerprintPlace(std::string_view name) {
  for (size_t i = 0; i < kFingerprintSize; ++i) {
    if (kFingerprint[i].name == name) return i;
  }
  return std::nullopt;
}

std::string FingerprintText(const Record& record, size_t place) {
  const Field field = kFingerprint[place].field;
  if (field == Field::kTransport && record.Integer(Field::kNodes).value_or(1) < 2) return "";
  if (field == Field::kSimulated) return "false";
  if (field == Field::kGpuUuids) {
    const std::string uuids = record.Text(field);
    if (uuids.empty() || uuids.starts_with("CPU-")) return "";
    return uuids.starts_with("MIG-") ? "true" : "false";
  }
  if (const auto number = record.Integer(field)) return fmt::format("{}", *number);
  if (const auto flag = record.Flag(field)) return *flag ? "true" : "false";
  return record.Text(field);
}

}  // namespace assay::compare
