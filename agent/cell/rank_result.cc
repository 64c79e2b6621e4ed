#include "agent/cell/rank_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "common/results/reason_codes.h"
#include "common/runner_protocol/failure_message.h"
#include "common/runner_protocol/records.h"
#include "common/text/utf8.h"

namespace assay {
namespace {

constexpr size_t kMostDroppedNames = 8;
// Versions and units are short; a table is as wide as the longest of them.
constexpr size_t kMostTextBytes = 200;
constexpr size_t kMostUuidBytes = 64;

std::string Sentence(std::string_view text) { return ScrubForTerminal(ShortMessage(text)); }

bool CanBe(Field field, const record::FieldValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    return text->size() <= kMostTextBytes && ScrubForTerminal(*text) == *text &&
           text->find('\n') == std::string::npos;
  }
  if (field == Field::kLossFirst || field == Field::kLossLast) return true;
  if (const auto* integer = std::get_if<int64_t>(&value); integer != nullptr && *integer < 0) {
    return false;
  }
  const auto* number = std::get_if<double>(&value);
  return number == nullptr || *number >= 0;
}

// A zero or less is no throughput, whichever way it is written.
bool IsNoThroughput(Field field, const Record& fields) {
  return field == Field::kThroughput && !(fields.Number(field).value_or(0) > 0);
}

}  // namespace

bool SameDevice(std::string_view said, std::string_view given) {
  constexpr std::string_view kPrefix = "GPU-";
  if (given.starts_with("MIG-")) return true;
  if (said.empty()) return given.starts_with("CPU-");
  if (said.starts_with(kPrefix)) said.remove_prefix(kPrefix.size());
  if (given.starts_with(kPrefix)) given.remove_prefix(kPrefix.size());
  return std::equal(said.begin(), said.end(), given.begin(), given.end(), [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) ==
           std::tolower(static_cast<unsigned char>(b));
  });
}

std::string OtherDeviceMessage(std::string_view said, std::string_view given) {
  return fmt::format("the runner opened {} but was given {}",
                     Sentence(said.substr(0, kMostUuidBytes)), given);
}

RankReport ResultReport(const record::Result& result, std::vector<std::string>* dropped) {
  RankReport report;
  report.outcome = OutcomeFromName(result.outcome).value_or(Outcome::kFail);
  if (report.outcome != Outcome::kOk) {
    report.reason = KnownReason(result.reason, DefaultReason(report.outcome));
    report.message = Sentence(result.message);
    if (report.message.empty()) report.message = "the runner gave no message";
    // A runner catches what its framework throws; the cause in the text is still the better reason.
    if (report.reason == reason::kRunnerError) {
      if (const auto known = DiagnoseText(result.message)) {
        report.outcome = known->outcome;
        report.reason = known->reason;
        report.message = Sentence(known->message);
      }
    }
  }
  for (const auto& [name, value] : result.fields) {
    const std::optional<Field> field = FieldByName(name);
    bool taken = false;
    if (field && InfoOf(*field).source == FieldSource::kRunner && CanBe(*field, value)) {
      const Value typed = std::visit([](const auto& held) { return Value(held); }, value);
      taken = report.fields.Set(*field, typed).ok();
      if (taken && IsNoThroughput(*field, report.fields)) {
        report.fields.Clear(*field);
        taken = false;
      }
    }
    if (!taken && dropped->size() < kMostDroppedNames) {
      dropped->push_back(Sentence(std::string_view(name).substr(0, 64)));
    }
  }
  return report;
}

std::string_view ReasonOf(const RankReport& report) {
  return KnownReason(report.reason, DefaultReason(report.outcome));
}

void BlameDevice(const DeviceFault& fault, std::vector<RankReport>* ranks) {
  for (RankReport& rank : *ranks) {
    const bool ended_by_others =
        rank.outcome == Outcome::kCancelled || rank.outcome == Outcome::kLost;
    if (rank.gpu_uuid != fault.uuid || ended_by_others || rank.outcome == Outcome::kUnsupported) {
      continue;
    }
    rank.outcome = Outcome::kFail;
    rank.reason = fault.reason;
    rank.message = Sentence(fault.message);
  }
}

std::optional<Diagnosis> Contradiction(const RankReport& report) {
  if (report.signal != 0) {
    return Diagnosis{
        Outcome::kFail, reason::kCrash,
        fmt::format("the runner said ok and was then ended by {}", SignalName(report.signal))};
  }
  if (report.exit_code != record::kExitOk) {
    return Diagnosis{Outcome::kFail, reason::kBadOutput,
                     fmt::format("the runner said ok and then exited with {}", report.exit_code)};
  }
  return std::nullopt;
}

bool IsEchoReason(std::string_view reason) {
  return reason == reason::kCrash || reason == reason::kRunnerError || reason == reason::kBadOutput;
}

std::string PeerMessage(const LocalRank& first, const Diagnosis& cause) {
  return fmt::format("ended because rank {} on {} did: {}", first.rank, first.gpu_uuid,
                     cause.message);
}

std::chrono::nanoseconds SafeSeconds(double seconds, double fallback) {
  constexpr double kWeek = 7 * 86400.0;
  if (!std::isfinite(seconds) || seconds <= 0) seconds = fallback;
  return std::chrono::nanoseconds(static_cast<int64_t>(std::min(seconds, kWeek) * 1e9));
}

Diagnosis AbortDiagnosis(const AbortOrder& order) {
  switch (order.outcome) {
    case Outcome::kCancelled:
      return {order.outcome, KnownReason(order.reason, reason::kUserCancelled),
              "cancelled by the user"};
    case Outcome::kTimeout:
      return {order.outcome, KnownReason(order.reason, reason::kCellLimit),
              "the coordinator ended the cell at its time limit"};
    case Outcome::kHung:
      return {order.outcome, KnownReason(order.reason, reason::kNoProgress),
              "the coordinator ended the cell because a rank was silent"};
    case Outcome::kLost:
      return {order.outcome, KnownReason(order.reason, reason::kAgentLost),
              "the coordinator ended the cell because a part of its gang was lost"};
    default:
      return {Outcome::kFail, KnownReason(order.reason, reason::kJoinTimeout),
              "the coordinator ended the cell because the gang did not come together"};
  }
}

std::string SilenceMessage(double seconds, const std::string& phase, size_t world_size) {
  std::string message = fmt::format("no sign of life from the runner for {:g} s", seconds);
  if (!phase.empty()) message += fmt::format(" in phase {}", phase);
  if (world_size == 1) {
    message += "; where a step takes that long, raise limits.no_step_seconds";
  } else {
    message +=
        "; a collective that hangs at once is often peer-to-peer traffic that board or driver "
        "break: try NCCL_P2P_DISABLE=1, and look at PCIe ACS and the IOMMU";
  }
  return message;
}

}  // namespace assay
