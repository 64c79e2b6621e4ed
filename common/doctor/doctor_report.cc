#include "common/doctor/doctor_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/text/utf8.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::pair<CheckState, std::string_view> kStateNames[] = {
    {CheckState::kOk, "ok"},
    {CheckState::kUnknown, "unknown"},
    {CheckState::kWarning, "warning"},
    {CheckState::kBad, "bad"}};

std::string TextOf(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return "";
  std::string text = ScrubUtf8(found->get_ref<const std::string&>());
  if (text.size() > kMostDoctorTextBytes) text.resize(Utf8Boundary(text, kMostDoctorTextBytes));
  return text;
}

}  // namespace

std::string_view CheckStateName(CheckState state) {
  for (const auto& [known, name] : kStateNames) {
    if (known == state) return name;
  }
  return "unknown";
}

std::optional<CheckState> CheckStateFromName(std::string_view name) {
  for (const auto& [state, known] : kStateNames) {
    if (known == name) return state;
  }
  return std::nullopt;
}

CheckState DoctorReport::Worst() const {
  CheckState worst = CheckState::kOk;
  for (const DoctorCheck& check : checks) worst = std::max(worst, check.state);
  return worst;
}

std::string WriteDoctorJson(const DoctorReport& report) {
  Json checks = Json::array();
  for (const DoctorCheck& check : report.checks) {
    checks.push_back({{"name", check.name},
                      {"state", CheckStateName(check.state)},
                      {"finding", check.finding},
                      {"remedy", check.remedy}});
  }
  const Json json = {{"node", report.node},
                     {"version", report.version},
                     {"worst", CheckStateName(report.Worst())},
                     {"checks", checks}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

absl::StatusOr<DoctorReport> ParseDoctorJson(std::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto checks = json.is_object() ? json.find("checks") : json.end();
  if (!json.is_object() || checks == json.end() || !checks->is_array()) {
    return absl::InvalidArgumentError("that is no report of assay-agent --doctor");
  }
  DoctorReport report;
  report.node = TextOf(json, "node");
  report.version = TextOf(json, "version");
  for (const Json& item : *checks) {
    if (report.checks.size() == kMostDoctorChecks) break;
    if (!item.is_object()) continue;
    const std::string state = TextOf(item, "state");
    report.checks.push_back({TextOf(item, "name"),
                             CheckStateFromName(state).value_or(CheckState::kUnknown),
                             TextOf(item, "finding"), TextOf(item, "remedy")});
  }
  return report;
}

}  // namespace assay
