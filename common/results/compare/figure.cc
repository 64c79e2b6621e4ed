#include "common/results/compare/figure.h"

#include <algorithm>
#include <cmath>

#include "common/measure/percentile.h"

namespace assay::compare {
namespace {

std::vector<double> Throughputs(const std::vector<Process>& processes) {
  std::vector<double> values;
  for (const Process& process : processes) values.push_back(process.throughput);
  return values;
}

}  // namespace

Gpus Take(const Gpus& gpus, Use use) {
  if (use == Use::kAll) return gpus;
  Gpus taken;
  for (const auto& [gpu, processes] : gpus) {
    std::vector<Process>& to = taken[gpu];
    if (use == Use::kFirst) {
      to.push_back(processes.front());
    } else {
      to.assign(processes.begin() + (processes.size() > 1 ? 1 : 0), processes.end());
    }
  }
  return taken;
}

double Middle(const Gpus& gpus) {
  std::vector<double> logs;
  for (const auto& [gpu, processes] : gpus) {
    logs.push_back(measure::LogMean(Throughputs(processes))->mean);
  }
  return std::exp(*measure::Median(logs));
}

Figure FigureOf(const Gpus& gpus) {
  Figure value;
  std::vector<double> of_gpus, joules;
  for (const auto& [gpu, processes] : gpus) {
    const auto count = static_cast<int64_t>(processes.size());
    value.least_processes = value.gpus == 0 ? count : std::min(value.least_processes, count);
    ++value.gpus;
    value.processes += count;
    const measure::LogEstimate mean = *measure::LogMean(Throughputs(processes));
    of_gpus.push_back(std::exp(mean.mean));
    if (gpus.size() == 1) value.estimate = mean;
    for (const Process& process : processes) {
      if (process.watts > 0) joules.push_back(process.throughput / process.watts);
    }
  }
  if (of_gpus.size() > 1) {
    value.estimate = *measure::LogMedian(of_gpus);
    value.spread_ratio = *measure::ScaledMad(of_gpus) / *measure::Median(of_gpus);
  }
  value.middle = std::exp(value.estimate.mean);
  if (const auto mean = measure::LogMean(joules)) value.samples_per_joule = std::exp(mean->mean);
  return value;
}

Pair PairOf(const Gpus& values, const Gpus& base, bool paired) {
  std::vector<measure::LogEstimate> top, bottom;
  bool one_process = false;
  for (const auto& [gpu, processes] : values) {
    const auto other = base.find(gpu);
    if (!paired || other == base.end()) continue;
    top.push_back(*measure::LogMean(Throughputs(processes)));
    bottom.push_back(*measure::LogMean(Throughputs(other->second)));
    one_process = one_process || processes.size() < 2 || other->second.size() < 2;
  }
  if (!top.empty())
    return {{measure::MeanOfEstimates(top), measure::MeanOfEstimates(bottom)}, one_process};
  const Figure a = FigureOf(values), b = FigureOf(base);
  const bool one_gpu = a.gpus < 2 || b.gpus < 2;
  one_process = a.least_processes < 2 || b.least_processes < 2;
  return {{a.estimate, b.estimate}, one_gpu || one_process};
}

Standing StandingOf(const std::optional<measure::Ratio>& ratio, bool indicative) {
  if (!ratio) return Standing::kNone;
  if (indicative || !ratio->interval) return Standing::kIndicative;
  const auto [low, high] = *ratio->interval;
  if (low >= 1 / (1 + kSameRatio) && high <= 1 + kSameRatio) return Standing::kSame;
  if (low > 1) return Standing::kFaster;
  if (high < 1) return Standing::kSlower;
  return Standing::kAmbiguous;
}

}  // namespace assay::compare
