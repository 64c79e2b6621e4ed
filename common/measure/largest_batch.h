// LargestBatchSearch: the largest batch that fits on a device, found by few trials, each a fresh
// process that trains some steps.
//
// Batches tried are those of a grid: every one up to 64, above it every eighth, all times
// `multiple`. Two small trials and one or two at half of what their line promises give memory used
// as a + b * batch; where that line meets the memory of the device is tried next. From there the
// search goes on outwards in strides that quadruple until one batch has trained and a larger one
// has not, then by halves, until they are neighbours of the grid. The line only says where to look:
// what counts is what has trained and what has run out of memory, since fragmentation and
// workspaces are not linear.
//
// Std only. Thread rule: one owner.
#ifndef ASSAY_COMMON_MEASURE_LARGEST_BATCH_H_
#define ASSAY_COMMON_MEASURE_LARGEST_BATCH_H_

#include <cstdint>
#include <optional>
#include <vector>

namespace assay::measure {

struct BatchTrial {
  int64_t batch = 0;
  bool fits = false;  // false: it ran out of memory
  // Of a trial that fits, where they are known: in use on the device at its end, by anyone, and
  // all that the device has.
  double used_bytes = 0;
  double capacity_bytes = 0;
};

struct LargestBatch {
  // The largest that fits, with nothing at or below it that did not; 0: not even the smallest.
  int64_t batch = 0;
  // The smallest that did not fit, with nothing at or above it that did; 0: none was seen.
  int64_t limit = 0;
  // `limit` is the next of the grid after `batch`, and no two trials contradict each other. If not,
  // the largest batch is known only to lie from `batch` to below `limit`.
  bool proven = false;
  int trials = 0;
};

class LargestBatchSearch {
 public:
  // `multiple`: micro-batches a step, which divide every batch. Both at least 1.
  explicit LargestBatchSearch(int64_t multiple, int most_trials = 20);

  // The batch to try next; nullopt when it is over. The same until Add is called.
  std::optional<int64_t> Next() const;
  // Any trial, also one that Next did not ask for, as that of the measurement itself, which may
  // contradict: then the search goes on.
  void Add(const BatchTrial& trial);
  LargestBatch Result() const;

  static constexpr int64_t kLastFine = 64;  // every batch up to here
  static constexpr int64_t kCoarse = 8;     // then every so many
  static constexpr int64_t kMostBatch = int64_t{1} << 31;

 private:
  enum class Kind { kProbe, kAim, kOutwards, kHalf };
  struct Plan {
    int64_t index = 0;
    Kind kind = Kind::kProbe;
  };
  int64_t BatchAt(int64_t index) const;
  int64_t IndexOf(int64_t batch) const;  // the largest of the grid that is not above
  int64_t Fits() const;                  // index of LargestBatch::batch
  int64_t Fails() const;                 // the least index that did not fit; 0: none
  std::optional<Plan> PlanNext() const;
  std::optional<Plan> PlanBeforeAim(int64_t fits) const;
  // Where the line of the two largest that fitted meets the memory.
  std::optional<int64_t> PromisedIndex() const;

  const int64_t multiple_;
  const int most_trials_;
  std::vector<BatchTrial> trials_;
  bool aimed_ = false;  // where the line meets the memory has been tried
  // Of the trials since then: the two directions seen, and the stride of the next.
  bool saw_fit_ = false, saw_failure_ = false;
  int64_t stride_ = 1;
};

}  // namespace assay::measure

#endif  // ASSAY_COMMON_MEASURE_LARGEST_BATCH_H_
