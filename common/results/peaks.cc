#include "common/results/peaks.h"

#include <algorithm>
#include <string_view>

#include "common/results/rules.h"

namespace assay {
namespace {

constexpr std::string_view kPeakMode = "peak";
constexpr double kGiga = 1e9;  // a peak's samples are GFLOP and GB
constexpr const char* kProductModel = "gemm";
constexpr const char* kCopyModel = "copy";
// A copy has no precision; its spec has the default.
constexpr const char* kCopyPrecision = "fp32";

void SetOrClear(Record& record, Field field, std::optional<double> value) {
  record.Clear(field);
  if (value) record.Set(field, *value).IgnoreError();
}

}  // namespace

void Peaks::Add(const Record& record) {
  if (record.Text(Field::kMode) != kPeakMode || record.Flag(Field::kSimulated).value_or(false)) {
    return;
  }
  const Verdict verdict = Judge(record);
  const std::optional<double> rate = record.Number(Field::kThroughput);
  const std::string card = record.Text(Field::kCard);
  const std::string cuda = record.Text(Field::kCudaVersion);
  if (!verdict.has_measurement || !verdict.faults.empty() || !rate || card.empty() ||
      cuda.empty()) {
    return;
  }
  // A card that was held back, or shared, shows a lower ceiling than it has.
  for (const std::string_view mark : {"suspect", "power_limited", "clock_limited", "shared"}) {
    if (std::find(verdict.marks.begin(), verdict.marks.end(), mark) != verdict.marks.end()) return;
  }
  double& highest =
      rates_[{card, cuda, record.Text(Field::kModel), record.Text(Field::kPrecision)}];
  highest = std::max(highest, *rate / MeasuredGpus(record));
}

std::optional<double> Peaks::Find(const Record& record, const std::string& model,
                                  const std::string& precision) const {
  const auto found =
      rates_.find({record.Text(Field::kCard), record.Text(Field::kCudaVersion), model, precision});
  if (found == rates_.end()) return std::nullopt;
  return found->second * kGiga;
}

void Peaks::Join(Record& record) const {
  std::optional<double> flops, copy, mfu, bandwidth;
  const bool measured =
      record.Text(Field::kMode) != kPeakMode && !record.Flag(Field::kSimulated).value_or(false);
  if (measured) {
    flops = Find(record, kProductModel, record.Text(Field::kPrecision));
    copy = Find(record, kCopyModel, kCopyPrecision);
    const std::optional<double> throughput = record.Number(Field::kThroughput);
    if (throughput) {
      const double of_a_rank = *throughput / MeasuredGpus(record);
      const auto work = record.Number(Field::kFlopsPerSample);
      const auto bytes = record.Number(Field::kOperatorBytesPerSample);
      if (flops && work) mfu = of_a_rank * *work / *flops;
      if (copy && bytes) bandwidth = of_a_rank * *bytes / *copy;
    }
  }
  SetOrClear(record, Field::kPeakFlopsPerSecond, flops);
  SetOrClear(record, Field::kPeakCopyBytesPerSecond, copy);
  SetOrClear(record, Field::kMfuRatio, mfu);
  SetOrClear(record, Field::kBandwidthRatio, bandwidth);
}

}  // namespace assay
