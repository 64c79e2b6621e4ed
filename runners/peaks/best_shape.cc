#include "runners/peaks/best_shape.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "common/measure/percentile.h"

namespace assay::peaks {
namespace {

constexpr double kTrySeconds = 0.1;
constexpr int kRounds = 3;
// A card comes to its power limit within the first second of load, and slows down.
constexpr double kHeatSeconds = 2;

double SecondsOf(Timeline& timeline, const Candidate& candidate, int64_t repetitions) {
  timeline.BeginWindow();
  for (int64_t i = 0; i < repetitions; ++i) candidate.queue();
  timeline.EndStep();
  return std::max(timeline.TakeOldest() / static_cast<double>(repetitions), 1e-9);
}

int64_t RepetitionsIn(double seconds, double of_one) {
  // A thousandth too short is long enough.
  return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(seconds / of_one - 1e-3)));
}

// Of each candidate the time of one repetition, as far as a cold card shows it.
std::vector<double> FirstSeconds(Timeline& timeline, const std::vector<Candidate>& candidates) {
  std::vector<double> seconds;
  for (const Candidate& candidate : candidates) {
    SecondsOf(timeline, candidate, 1);  // loads kernels and is no time
    seconds.push_back(SecondsOf(timeline, candidate, 1));
  }
  return seconds;
}

}  // namespace

BestShape ChooseShape(Timeline& timeline, const std::vector<Candidate>& candidates,
                      const std::function<void(double)>& tried) {
  const std::vector<double> first = FirstSeconds(timeline, candidates);
  std::vector<size_t> fitting;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (first[i] <= kMostRepetitionSeconds) fitting.push_back(i);
  }
  if (fitting.empty()) {
    fitting.push_back(
        static_cast<size_t>(std::min_element(first.begin(), first.end()) - first.begin()));
  }
  const auto run = [&](size_t i) {
    const double seconds = SecondsOf(timeline, candidates[i], RepetitionsIn(kTrySeconds, first[i]));
    tried(candidates[i].units / seconds);
    return seconds;
  };
  for (double heated = 0; heated < kHeatSeconds;) {
    const size_t i = fitting.back();
    heated += run(i) * static_cast<double>(RepetitionsIn(kTrySeconds, first[i]));
  }
  // In turn, so that what the card does meanwhile meets all alike.
  std::vector<std::vector<double>> seconds(candidates.size());
  for (int round = 0; round < kRounds; ++round) {
    for (const size_t i : fitting) seconds[i].push_back(run(i));
  }
  BestShape best;
  double best_rate = 0;
  for (const size_t i : fitting) {
    const double median = *measure::Median(seconds[i]);
    if (candidates[i].units / median <= best_rate) continue;
    best_rate = candidates[i].units / median;
    best = {i, RepetitionsIn(kStepSeconds, median)};
  }
  return best;
}

}  // namespace assay::peaks
