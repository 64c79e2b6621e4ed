// Candidate: one shape in which a peak can be measured, as work that is queued again and again.
#ifndef ASSAY_RUNNERS_PEAKS_CANDIDATE_H_
#define ASSAY_RUNNERS_PEAKS_CANDIDATE_H_

#include <functional>
#include <string>

namespace assay::peaks {

struct Candidate {
  std::string shape;                   // "8192x8192x8192 TN", "1000000000 B"
  double units = 0;                    // GFLOP or GB of one repetition
  std::function<void()> queue;         // queues one repetition; does not wait
  std::function<std::string()> fault;  // what is wrong with its result; empty: it is right
};

}  // namespace assay::peaks

#endif  // ASSAY_RUNNERS_PEAKS_CANDIDATE_H_
