#include "common/results/rules_marks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "common/text/number_format.h"

namespace assay {
namespace {

// Reasons that slow a card down, and how they are told. Application clocks and sync boost are
// settings: clock_limited has the first.
constexpr std::array<std::pair<Field, std::string_view>, 5> kSlowdowns = {{
    {Field::kThrottlePowerCapRatio, "its power limit"},
    {Field::kThrottleSwThermalRatio, "heat"},
    {Field::kThrottleHwThermalRatio, "heat, by the hardware"},
    {Field::kThrottleHwSlowdownRatio, "the hardware"},
    {Field::kThrottlePowerBrakeRatio, "the power brake"},
}};

bool OnGpu(const Record& record) {
  const std::vector<std::string> uuids = record.List(Field::kGpuUuids);
  return std::any_of(uuids.begin(), uuids.end(),
                     [](const std::string& uuid) { return !uuid.starts_with("CPU-"); });
}

class Marks {
 public:
  Marks(const Record& record, Verdict& verdict)
      : record_(record),
        verdict_(verdict),
        simulated_(record.Flag(Field::kSimulated).value_or(false)),
        measured_on_gpu_(OnGpu(record) && !simulated_) {}

  void Judge() {
    Suspect();
    if (record_.Has(Field::kStopReason) && record_.Text(Field::kStopReason) != "confidence") {
      Mark("unconverged");
    }
    // Not known is not settled: nobody saw it come to rest.
    if (measured_on_gpu_ && record_.Text(Field::kThermal) == "settled" &&
        !record_.Flag(Field::kSettled).value_or(false)) {
      Mark("unsettled");
    }
    Throttled();
    Limits();
    if (const auto drift = record_.Number(Field::kDriftRatio);
        drift && std::abs(*drift) > kMostDriftRatio) {
      Mark("drift");
      Note(fmt::format("the sentinel changed by {:+.1f} % across it", 100 * *drift));
    }
    if (const auto busy = record_.Number(Field::kGpuBusyRatio);
        measured_on_gpu_ && busy && *busy < kLeastBusyRatio) {
      Mark("host_bound");
      Note(fmt::format("the GPU had work in {} of the step", HumanPercent(*busy)));
    }
    Shared();
    if (simulated_) Mark("simulated");
  }

 private:
  void Mark(std::string_view name) { verdict_.marks.emplace_back(name); }
  void Note(std::string sentence) { verdict_.notes.push_back(std::move(sentence)); }

  void Suspect() {
    const std::vector<std::string> xids = record_.List(Field::kXids);
    const std::optional<double> first = record_.Number(Field::kLossFirst);
    const std::optional<double> last = record_.Number(Field::kLossLast);
    const bool grew = first && last && *last > kMostLossGrowth * std::max(*first, 1.0);
    const std::optional<double> overlap = record_.Number(Field::kColocateOverlapRatio);
    const bool alone = overlap && *overlap < kLeastOverlapRatio && !simulated_;
    const auto reserved = record_.Number(Field::kReservedPeakBytes);
    const auto used = record_.Number(Field::kDeviceUsedBytes);
    const bool unseen =
        reserved && used && measured_on_gpu_ && *reserved > kMostReservedRatio * *used;
    if (!xids.empty() || grew || alone || unseen) Mark("suspect");
    if (unseen) {
      Note(fmt::format("{} reserved, but the device showed {} in use",
                       HumanBytes(static_cast<int64_t>(*reserved)),
                       HumanBytes(static_cast<int64_t>(*used))));
    }
    if (alone)
      Note(fmt::format("its GPUs measured together for {} of a window", HumanPercent(*overlap)));
    if (!xids.empty()) Note(fmt::format("the driver reported Xid {}", fmt::join(xids, ", ")));
    if (grew) Note(fmt::format("the loss grew from {:.3g} to {:.3g}", *first, *last));
  }

  void Throttled() {
    double most = 0;
    std::string_view why;
    bool by_reason = false;
    for (const auto& [field, name] : kSlowdowns) {
      const std::optional<double> share = record_.Number(field);
      by_reason = by_reason || share.has_value();
      if (share.value_or(0) > most) {
        most = *share;
        why = name;
      }
    }
    // Records of before the reasons were told apart.
    if (!by_reason) most = record_.Number(Field::kThrottleRatio).value_or(0);
    const std::optional<double> stopped = record_.Number(Field::kCpuThrottledSeconds);
    const std::optional<double> seconds = record_.Number(Field::kSeconds);
    const bool by_group =
        !simulated_ && stopped && seconds && *stopped > kMostCpuThrottledRatio * *seconds;
    if (most > kMostThrottleRatio || by_group) Mark("throttled");
    if (most > kMostThrottleRatio) {
      Note(fmt::format("throttled {}in {} of samples",
                       why.empty() ? "" : fmt::format("by {} ", why), HumanPercent(most)));
    }
    if (by_group) {
      Note(fmt::format("its control group kept it from the processors for {} of {}",
                       HumanDuration(*stopped), HumanDuration(*seconds)));
    }
  }

  void Limits() {
    if (const auto power = PowerLimitRatio(record_); power && *power < kLeastPowerLimitRatio) {
      Mark("power_limited");
      Note(fmt::format("power limited {}", HumanPercent(*power)));
    }
    if (const auto clock = ClockLimitRatio(record_); clock && *clock < kLeastClockLimitRatio) {
      Mark("clock_limited");
      Note(fmt::format("application clocks at {} of the default", HumanPercent(*clock)));
    }
  }

  void Shared() {
    if (!measured_on_gpu_) return;
    const std::vector<std::string> others = record_.List(Field::kForeignProcesses);
    const std::optional<int64_t> before = record_.Integer(Field::kDeviceUsedBeforeBytes);
    const bool held =
        record_.Text(Field::kExclusive) != "verified" && before && *before > kMostUsedBeforeBytes;
    if (others.empty() && !held) return;
    Mark("shared");
    if (!others.empty()) Note(fmt::format("others on its GPU: {}", fmt::join(others, ", ")));
    if (held) Note(fmt::format("{} held by others at the start", HumanBytes(*before)));
  }

  const Record& record_;
  Verdict& verdict_;
  const bool simulated_;
  const bool measured_on_gpu_;
};

}  // namespace

void JudgeMarks(const Record& record, Verdict& verdict) { Marks(record, verdict).Judge(); }

}  // namespace assay
