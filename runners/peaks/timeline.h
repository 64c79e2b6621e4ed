// Timeline: the device's own clock and count of steps, so that a measurement knows nothing of CUDA.
//
// Owner: the runner, for one cell. Thread rule: one thread. Errors: CudaError.
#ifndef ASSAY_RUNNERS_PEAKS_TIMELINE_H_
#define ASSAY_RUNNERS_PEAKS_TIMELINE_H_

#include <cstdint>

namespace assay::peaks {

class Timeline {
 public:
  virtual ~Timeline() = default;
  // Waits for the device, sets its count to zero and marks the start.
  virtual void BeginWindow() = 0;
  // Counts a step on the device and marks its end, both behind all work so far. At most
  // kMostPending steps may be unread.
  virtual void EndStep() = 0;
  virtual int64_t PendingSteps() const = 0;
  // Length in seconds of the oldest step not read yet; waits for its end.
  virtual double TakeOldest() = 0;
  // From the start to the end of the last step read, as one difference.
  virtual double WindowSeconds() = 0;
  // Waits for the device.
  virtual void Synchronize() = 0;
  // Steps since BeginWindow as the device counted them; waits for it.
  virtual int64_t CountedSteps() = 0;

  // One runs and one is queued behind it: with steps of 20 ms the device never waits for the host.
  static constexpr int64_t kMostPending = 2;
};

}  // namespace assay::peaks

#endif  // ASSAY_RUNNERS_PEAKS_TIMELINE_H_
