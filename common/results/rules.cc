#include "common/results/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "common/results/outcome.h"
#include "common/results/rules_bounds.h"
#include "common/results/rules_marks.h"
#include "common/text/number_format.h"

namespace assay {
namespace {

// Fewer may be of one batch and a learning rate of nothing.
constexpr int64_t kLeastStepsOfALoss = 10;

// Global samples of one optimizer step by what was asked for, with `max` by what was found; nothing
// where that is not a number.
std::optional<double> SamplesPerStep(const Record& record) {
  // A peak's samples are GFLOP or GB, and its steps are as long as the runner makes them.
  if (record.Text(Field::kMode) == "peak") return std::nullopt;
  const std::string batch = record.Text(Field::kBatch);
  const std::optional<int64_t> gpus = record.Integer(Field::kGpus);
  const std::optional<int64_t> nodes = record.Integer(Field::kNodes);
  const std::optional<int64_t> found = record.Integer(Field::kLargestBatch);
  int64_t per_rank = 0;
  const auto [end, error] = std::from_chars(batch.data(), batch.data() + batch.size(), per_rank);
  if (batch == "max" && found) {
    per_rank = *found;
  } else if (error != std::errc() || end != batch.data() + batch.size()) {
    return std::nullopt;
  }
  if (record.Text(Field::kScaling) == "strong") return static_cast<double>(per_rank);
  if (!gpus || !nodes) return std::nullopt;
  return static_cast<double>(per_rank) * static_cast<double>(*gpus) * static_cast<double>(*nodes);
}

// The figure must follow from what it was made of, whoever reports it.
void JudgeQuotient(const Record& record, Verdict& verdict) {
  const std::optional<int64_t> steps = record.Integer(Field::kSteps);
  const std::optional<int64_t> samples = record.Integer(Field::kSamples);
  const std::optional<double> throughput = record.Number(Field::kThroughput);
  const std::optional<double> seconds = record.Number(Field::kSeconds);
  if (throughput && samples && seconds && *throughput > 0 && *seconds > 0) {
    const double quotient = static_cast<double>(*samples) / *seconds;
    if (!(std::abs(*throughput - quotient) <= kMostQuotientDifferenceRatio * quotient)) {
      verdict.faults.push_back(fmt::format("throughput {:.4g}, but samples over seconds are {:.4g}",
                                           *throughput, quotient));
    }
  }
  const std::optional<double> per_step = SamplesPerStep(record);
  if (per_step && steps && samples && *steps > 0 &&
      static_cast<double>(*samples) != *per_step * static_cast<double>(*steps)) {
    verdict.faults.push_back(
        fmt::format("{} samples claimed in {} steps of {:.0f}", *samples, *steps, *per_step));
  }
}

void JudgeWindow(const Record& record, Verdict& verdict) {
  const std::optional<int64_t> steps = record.Integer(Field::kSteps);
  const std::optional<double> throughput = record.Number(Field::kThroughput);
  const std::optional<double> seconds = record.Number(Field::kSeconds);
  if (!steps || *steps < 1) verdict.faults.emplace_back("no measured steps");
  if (!throughput || !(*throughput > 0)) verdict.faults.emplace_back("no throughput above zero");

  const std::optional<double> host_seconds = record.Number(Field::kHostSeconds);
  if (seconds && !(*seconds > 0)) {
    verdict.faults.emplace_back("no window above zero seconds");
  } else if (seconds && host_seconds &&
             !(std::abs(*host_seconds - *seconds) <= kMostClockDifferenceRatio * *seconds)) {
    verdict.faults.push_back(fmt::format(
        "the window is {} by device events and {} by the host's clock, more than {} apart",
        HumanDuration(*seconds), HumanDuration(*host_seconds),
        HumanPercent(kMostClockDifferenceRatio)));
  }
  const std::optional<int64_t> device_steps = record.Integer(Field::kDeviceSteps);
  if (steps && device_steps && *steps != *device_steps) {
    verdict.faults.push_back(
        fmt::format("{} steps claimed, {} counted on the device", *steps, *device_steps));
  }
  const std::optional<int64_t> skipped = record.Integer(Field::kSkippedSteps);
  if (steps && skipped && *steps > 0 &&
      static_cast<double>(*skipped) > kMostSkippedRatio * static_cast<double>(*steps)) {
    verdict.faults.push_back(fmt::format("{} of {} steps skipped by loss scaling, more than {}",
                                         *skipped, *steps, HumanPercent(kMostSkippedRatio)));
  }
}

void JudgeGang(const Record& record, Verdict& verdict) {
  const std::optional<int64_t> world_size = record.Integer(Field::kWorldSize);
  const std::optional<int64_t> gpus = record.Integer(Field::kGpus);
  const std::optional<int64_t> nodes = record.Integer(Field::kNodes);
  if (world_size && gpus && nodes && *world_size != *gpus * *nodes) {
    verdict.faults.push_back(
        fmt::format("{} ranks took part, {} asked for", *world_size, *gpus * *nodes));
  }
  std::set<std::string> seen;
  for (const std::string& uuid : record.List(Field::kGpuUuids)) {
    if (seen.insert(uuid).second) continue;
    verdict.faults.push_back(fmt::format("two ranks on GPU {}", uuid));
    break;
  }
}

// Three clocks: the device's and the host's are the runner's word, the third is the agent's own.
void JudgeAgentClock(const Record& record, Verdict& verdict) {
  const std::optional<double> host = record.Number(Field::kHostSeconds);
  const std::optional<double> agent = record.Number(Field::kWindowSeconds);
  if (!host || !agent || record.Flag(Field::kSimulated).value_or(false)) return;
  if (std::abs(*agent - *host) <= kMostClockDifferenceRatio * *host + kMostAgentDifferenceSeconds) {
    return;
  }
  verdict.faults.push_back(
      fmt::format("the window is {} by the runner's clock and {} by the agent's: one of them is "
                  "wrong",
                  HumanDuration(*host), HumanDuration(*agent)));
}

void JudgePeak(const Record& record, Verdict& verdict) {
  const std::optional<double> most = PeakThroughput(record);
  const std::optional<double> throughput = record.Number(Field::kThroughput);
  if (!most || !throughput || *throughput <= kMostOverPeakRatio * *most) return;
  verdict.faults.push_back(fmt::format(
      "throughput {:.4g}, but the card's measured peaks leave {:.4g}", *throughput, *most));
}

// A training whose loss is the same to the last bit learns nothing: its inputs or its weights are
// constant. Losses are fp32 means over a batch.
void JudgeInputs(const Record& record, Verdict& verdict) {
  const std::optional<double> first = record.Number(Field::kLossFirst);
  const std::optional<double> last = record.Number(Field::kLossLast);
  const std::optional<int64_t> steps = record.Integer(Field::kSteps);
  if (first && last && *first == *last && steps && *steps >= kLeastStepsOfALoss) {
    verdict.faults.push_back(
        fmt::format("the loss did not change in {} steps: inputs or weights are constant", *steps));
  }
  const std::optional<int64_t> claimed = record.Integer(Field::kDataBatches);
  const std::optional<int64_t> seen = record.Integer(Field::kInputBatchesSeen);
  if (claimed && seen && steps && *seen < std::min(*claimed, *steps)) {
    verdict.faults.push_back(
        fmt::format("{} different input batches were seen, {} claimed", *seen, *claimed));
  }
}

std::optional<double> EnergyPerSample(const Record& record) {
  const std::optional<double> energy = record.Number(Field::kEnergyJoules);
  const std::optional<int64_t> samples = record.Integer(Field::kSamples);
  if (!energy || !samples || *samples < 1 || !(*energy > 0)) return std::nullopt;
  return *energy / static_cast<double>(*samples);
}

}  // namespace

std::optional<double> ClockLimitRatio(const Record& record) {
  std::optional<double> least;
  for (const auto& [set, usual] :
       {std::pair(Field::kSmClockApplicationHertz, Field::kSmClockApplicationDefaultHertz),
        std::pair(Field::kMemoryClockApplicationHertz,
                  Field::kMemoryClockApplicationDefaultHertz)}) {
    const std::optional<double> now = record.Number(set), otherwise = record.Number(usual);
    if (!now || !otherwise || !(*now > 0) || !(*otherwise > 0)) continue;
    least = std::min(least.value_or(*now / *otherwise), *now / *otherwise);
  }
  return least;
}

double MeasuredGpus(const Record& record) {
  const int64_t gpus = record.Text(Field::kColocate) == "all"
                           ? static_cast<int64_t>(record.List(Field::kGpuUuids).size())
                           : record.Integer(Field::kWorldSize).value_or(1);
  return static_cast<double>(std::max<int64_t>(gpus, 1));
}

std::optional<double> PeakThroughput(const Record& record) {
  const auto seconds_of = [&](Field work, Field rate) -> std::optional<double> {
    const std::optional<double> amount = record.Number(work), peak = record.Number(rate);
    if (!amount || !peak || !(*amount > 0) || !(*peak > 0)) return std::nullopt;
    return *amount / *peak;
  };
  std::optional<double> most;
  if (const auto sample = seconds_of(Field::kFlopsPerSample, Field::kPeakFlopsPerSecond)) {
    const double faster = record.Text(Field::kPrecision) == "fp32" ? kWinogradRatio : 1;
    most = MeasuredGpus(record) * faster / *sample;
  }
  const auto step = seconds_of(Field::kLeastBytesPerStep, Field::kPeakCopyBytesPerSecond);
  const std::optional<double> samples = SamplesPerStep(record);
  if (step && samples) {
    // Ranks move their shares at once; each of the neighbours has a whole step.
    const double neighbours = record.Text(Field::kColocate) == "all" ? MeasuredGpus(record) : 1;
    const double carried = neighbours * *samples / *step;
    most = std::min(most.value_or(carried), carried);
  }
  return most;
}

std::optional<double> PowerLimitRatio(const Record& record) {
  const std::optional<double> limit = record.Number(Field::kPowerLimitWatts);
  const std::optional<double> usual = record.Number(Field::kPowerLimitDefaultWatts);
  if (!limit || !usual || !(*usual > 0) || !(*limit > 0)) return std::nullopt;
  return *limit / *usual;
}

Verdict Judge(const Record& record) {
  Verdict verdict;
  verdict.has_measurement = OutcomeFromName(record.Text(Field::kOutcome)) == Outcome::kOk;
  if (!verdict.has_measurement) {
    if (record.Flag(Field::kSimulated).value_or(false)) verdict.marks.emplace_back("simulated");
    return verdict;
  }
  JudgeWindow(record, verdict);
  JudgeQuotient(record, verdict);
  JudgeAgentClock(record, verdict);
  JudgeGang(record, verdict);
  JudgePeak(record, verdict);
  JudgeInputs(record, verdict);
  JudgeBounds(record, verdict);
  JudgeMarks(record, verdict);
  return verdict;
}

void ApplyRules(Record& record) {
  const Verdict verdict = Judge(record);
  record.Clear(Field::kVerdict);
  record.Clear(Field::kMarks);
  record.Clear(Field::kEnergyPerSampleJoules);
  if (verdict.has_measurement) {
    record.SetText(Field::kVerdict, verdict.faults.empty() ? "valid" : "invalid");
  }
  if (verdict.has_measurement || !verdict.marks.empty()) {
    // A list of texts into a list field does not fail.
    record.SetList(Field::kMarks, verdict.marks).IgnoreError();
  }
  if (!verdict.has_measurement) return;
  if (const std::optional<double> energy = EnergyPerSample(record)) {
    record.Set(Field::kEnergyPerSampleJoules, *energy).IgnoreError();
  }
}

void AddIndicative(Record& record) {
  std::vector<std::string> marks = record.List(Field::kMarks);
  const bool suspect = !marks.empty() && marks[0] == "suspect";
  marks.insert(marks.begin() + (suspect ? 1 : 0), std::string(kIndicativeMark));
  record.SetList(Field::kMarks, marks).IgnoreError();
}

}  // namespace assay
