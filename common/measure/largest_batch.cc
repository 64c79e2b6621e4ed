#include "common/measure/largest_batch.h"

#include <algorithm>

namespace assay::measure {
namespace {

constexpr int64_t kFirstProbe = 8;
// Another probe pays where the end of the line is that many times the largest; it goes half of the
// way, and no further than so many times the largest, since two small ones may be off by much.
constexpr int64_t kFarAway = 4;
constexpr int64_t kFarthest = 32;

}  // namespace

LargestBatchSearch::LargestBatchSearch(int64_t multiple, int most_trials)
    : multiple_(std::max<int64_t>(1, multiple)), most_trials_(most_trials) {}

int64_t LargestBatchSearch::BatchAt(int64_t index) const {
  return multiple_ * (index <= kLastFine ? index : kLastFine + (index - kLastFine) * kCoarse);
}

int64_t LargestBatchSearch::IndexOf(int64_t batch) const {
  const int64_t micro = batch / multiple_;
  return micro <= kLastFine ? micro : kLastFine + (micro - kLastFine) / kCoarse;
}

int64_t LargestBatchSearch::Fails() const {
  int64_t least = 0;
  for (const BatchTrial& trial : trials_) {
    const int64_t index = IndexOf(trial.batch);
    if (!trial.fits && (least == 0 || index < least)) least = index;
  }
  return least;
}

int64_t LargestBatchSearch::Fits() const {
  const int64_t fails = Fails();
  int64_t largest = 0;
  for (const BatchTrial& trial : trials_) {
    const int64_t index = IndexOf(trial.batch);
    if (trial.fits && (fails == 0 || index < fails)) largest = std::max(largest, index);
  }
  return largest;
}

std::optional<int64_t> LargestBatchSearch::PromisedIndex() const {
  const BatchTrial* larger = nullptr;
  const BatchTrial* smaller = nullptr;
  for (const BatchTrial& trial : trials_) {
    if (!trial.fits || !(trial.used_bytes > 0) || !(trial.capacity_bytes > 0)) continue;
    if (larger == nullptr || trial.batch > larger->batch) {
      smaller = larger;
      larger = &trial;
    } else if (trial.batch < larger->batch &&
               (smaller == nullptr || trial.batch > smaller->batch)) {
      smaller = &trial;
    }
  }
  if (smaller == nullptr) return std::nullopt;
  const double per_sample = (larger->used_bytes - smaller->used_bytes) /
                            static_cast<double>(larger->batch - smaller->batch);
  if (!(per_sample > 0)) return std::nullopt;
  const double promised = static_cast<double>(larger->batch) +
                          (larger->capacity_bytes - larger->used_bytes) / per_sample;
  return IndexOf(static_cast<int64_t>(
      std::clamp(promised, static_cast<double>(multiple_), static_cast<double>(kMostBatch))));
}

std::optional<LargestBatchSearch::Plan> LargestBatchSearch::PlanBeforeAim(int64_t fits) const {
  if (trials_.empty()) return Plan{kFirstProbe, Kind::kProbe};
  const std::optional<int64_t> promised = PromisedIndex();
  if (!promised) return Plan{2 * fits, Kind::kProbe};
  if (BatchAt(*promised) >= kFarAway * BatchAt(fits)) {
    const int64_t batch = std::min(BatchAt(*promised) / 2, kFarthest * BatchAt(fits));
    return Plan{IndexOf(batch), Kind::kProbe};
  }
  return Plan{std::max(*promised, fits + 1), Kind::kAim};
}

std::optional<LargestBatchSearch::Plan> LargestBatchSearch::PlanNext() const {
  if (static_cast<int>(trials_.size()) >= most_trials_) return std::nullopt;
  const int64_t fits = Fits(), fails = Fails();
  if (fails != 0 && fails <= fits + 1) return std::nullopt;
  std::optional<Plan> plan;
  if (fails == 0) {
    plan = aimed_ ? Plan{std::max(fits + stride_, PromisedIndex().value_or(0)), Kind::kOutwards}
                  : PlanBeforeAim(fits);
    plan->index = std::min(plan->index, IndexOf(kMostBatch));
    if (plan->index <= fits) return std::nullopt;
    return plan;
  }
  const int64_t half = fits + (fails - fits) / 2;
  if (!aimed_ || (saw_fit_ && saw_failure_)) return Plan{half, Kind::kHalf};
  const int64_t outwards = saw_fit_ ? fits + stride_ : fails - stride_;
  if (outwards <= fits || outwards >= fails) return Plan{half, Kind::kHalf};
  return Plan{outwards, Kind::kOutwards};
}

std::optional<int64_t> LargestBatchSearch::Next() const {
  const std::optional<Plan> plan = PlanNext();
  if (!plan) return std::nullopt;
  return BatchAt(plan->index);
}

void LargestBatchSearch::Add(const BatchTrial& trial) {
  const std::optional<Plan> plan = PlanNext();
  const bool planned = plan && BatchAt(plan->index) == trial.batch;
  trials_.push_back(trial);
  if (!planned) {
    // A result that contradicts: look again from there, close by first.
    aimed_ = true;
    saw_fit_ = trial.fits;
    saw_failure_ = !trial.fits;
    stride_ = 1;
    return;
  }
  if (plan->kind == Kind::kProbe) return;
  if (plan->kind == Kind::kOutwards) stride_ *= 4;
  aimed_ = true;
  saw_fit_ = saw_fit_ || trial.fits;
  saw_failure_ = saw_failure_ || !trial.fits;
}

LargestBatch LargestBatchSearch::Result() const {
  const int64_t fits = Fits(), fails = Fails();
  int64_t largest_that_ever_fitted = 0;
  for (const BatchTrial& trial : trials_) {
    if (trial.fits) {
      largest_that_ever_fitted = std::max(largest_that_ever_fitted, IndexOf(trial.batch));
    }
  }
  int64_t limit = 0;
  for (const BatchTrial& trial : trials_) {
    const int64_t index = IndexOf(trial.batch);
    if (!trial.fits && index > largest_that_ever_fitted && (limit == 0 || index < limit)) {
      limit = index;
    }
  }
  LargestBatch result;
  result.batch = BatchAt(fits);
  result.limit = BatchAt(limit);
  result.proven = fits > 0 && fits == largest_that_ever_fitted && fails == fits + 1;
  result.trials = static_cast<int>(trials_.size());
  return result;
}

}  // namespace assay::measure
