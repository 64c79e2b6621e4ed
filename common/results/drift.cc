#include "common/results/drift.h"

namespace assay {
namespace {

struct Before {
  std::string series;
  int64_t index = 0;
  double throughput = 0;
};

std::optional<Before> BeforeOf(const Record& record) {
  const std::string series = record.Text(Field::kSentinelSeries);
  const std::optional<int64_t> index = record.Integer(Field::kSentinelIndex);
  const std::optional<double> before = record.Number(Field::kSentinelBefore);
  if (series.empty() || !index || !before || !(*before > 0)) return std::nullopt;
  // A series is of one set of GPUs; a record of others is no part of it, whatever it says.
  return Before{series + " " + record.Text(Field::kGpuUuids), *index, *before};
}

}  // namespace

void SentinelReadings::Add(const Record& record) {
  const std::optional<Before> before = BeforeOf(record);
  if (!before) return;
  std::map<int64_t, double>& readings = series_[before->series];
  readings[before->index] = before->throughput;
  const std::optional<double> after = record.Number(Field::kSentinelAfter);
  if (after && *after > 0) readings[before->index + 1] = *after;
}

void SentinelReadings::FillDrift(Record& record) const {
  record.Clear(Field::kDriftRatio);
  const std::optional<Before> before = BeforeOf(record);
  if (!before) return;
  const auto series = series_.find(before->series);
  if (series == series_.end()) return;
  const auto next = series->second.upper_bound(before->index);
  if (next == series->second.end()) return;
  record.Set(Field::kDriftRatio, next->second / before->throughput - 1).IgnoreError();
}

}  // namespace assay
