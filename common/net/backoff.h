// Backoff: how long to wait before the next try, with full jitter, so that a thousand agents do not
// come back in the same moment.
#ifndef ASSAY_COMMON_NET_BACKOFF_H_
#define ASSAY_COMMON_NET_BACKOFF_H_

#include <chrono>
#include <cstdint>
#include <random>

namespace assay {

// Thread rule: one owner.
class Backoff {
 public:
  // Waits lie in [first, first], then uniformly in [first, min(cap, first * 2^n)] for try n. `seed`
  // makes tests repeat.
  Backoff(std::chrono::milliseconds first, std::chrono::milliseconds cap, uint64_t seed)
      : first_(first), cap_(cap), random_(seed) {}

  std::chrono::milliseconds Next() {
    const auto top = bound_ == std::chrono::milliseconds::zero() ? first_ : bound_;
    bound_ = top * 2 < cap_ ? top * 2 : cap_;
    return std::chrono::milliseconds(
        std::uniform_int_distribution<int64_t>(first_.count(), top.count())(random_));
  }
  // After a success: the next wait is `first` again.
  void Reset() { bound_ = std::chrono::milliseconds::zero(); }

 private:
  std::chrono::milliseconds first_;
  std::chrono::milliseconds cap_;
  std::chrono::milliseconds bound_{0};
  std::mt19937_64 random_;
};

}  // namespace assay

#endif  // ASSAY_COMMON_NET_BACKOFF_H_
