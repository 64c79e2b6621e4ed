// Device: what the runner needs of the thing it measures, a CPU or a CUDA GPU, so that Trainer and
// Measurement know neither.
//
// Owner: the runner, for one cell. Thread rule: one thread. Errors: LibTorch's exceptions.
#ifndef ASSAY_RUNNERS_TRAIN_DEVICE_DEVICE_H_
#define ASSAY_RUNNERS_TRAIN_DEVICE_DEVICE_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/measure/busy_time.h"

namespace assay::train {

// Of the caching allocator, since the process began or ForgetPeaks().
struct MemoryPeaks {
  std::optional<int64_t> allocated_bytes;
  std::optional<int64_t> reserved_bytes;
};

// Of the device as a whole, with what others and the driver hold; of the process on a CPU.
struct DeviceMemory {
  int64_t used_bytes = 0;
  int64_t capacity_bytes = 0;
};

// Counted on the device, behind the work of each step, so that a step that was claimed but not done
// shows.
struct StepCounts {
  int64_t steps = 0;
  int64_t skipped = 0;     // by loss scaling
  int64_t non_finite = 0;  // steps whose loss was not finite
  int64_t inputs = 0;      // different inputs, by checksum; at most kMostInputs
};

struct StackVersions {
  std::string cuda, cudnn, nccl;  // empty: not there
};

// Work of the device that was recorded once and is queued again by one call of the host.
class Recording {
 public:
  virtual ~Recording() = default;
  // Does not wait. Reads and writes the addresses of when it was recorded.
  virtual void Replay() = 0;
};

// The work has something in it that cannot be recorded, or the device records nothing.
struct CannotRecord : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Copies from the host to the device, beside the steps.
class CopyQueue {
 public:
  virtual ~CopyQueue() = default;
  // Copies queued from now on wait until the steps queued so far are done.
  virtual void WaitForSteps() = 0;
  // Queues a copy from pinned memory and does not wait; alike in shape and layout.
  virtual void Copy(const at::Tensor& to, const at::Tensor& from) = 0;
  // Steps queued from now on wait until the copies queued so far are done.
  virtual void StepsWait() = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual c10::Device torch() const = 0;
  virtual int64_t MemoryBytes() const = 0;
  virtual MemoryPeaks Peaks() const = 0;
  virtual void ForgetPeaks() = 0;
  // Now; on a CPU the peak of this process and what it may have.
  virtual DeviceMemory Memory() const = 0;
  // Used on the device, by anyone, when the context was there and no tensor yet; nullopt on a CPU.
  virtual std::optional<int64_t> ContextUsedBytes() const = 0;
  // Of its last cache, which what a step left there need not leave; nullopt where nobody asks.
  virtual std::optional<int64_t> CacheBytes() const = 0;
  virtual StackVersions Versions() const = 0;
  // Compute capability as major * 10 + minor; 0 on a CPU.
  virtual int ComputeCapability() const = 0;
  // Whether an allocation has failed in this process, if only inside a library that reported
  // something else.
  virtual bool SawOutOfMemory() const = 0;
  virtual void Synchronize() = 0;

  // ---- the time line of a window
  // Waits for the device, sets the counts to zero and marks the start.
  virtual void BeginWindow() = 0;
  // Counts a step on the device, behind all work so far; part of a recording of the step. `loss`
  // and `found_inf` are float32 tensors of one element on the device, or undefined. `input` is what
  // the step read, dense in memory (input_checksum.h), or undefined.
  virtual void CountStep(const at::Tensor& loss, const at::Tensor& found_inf,
                         const at::Tensor& input) = 0;
  // Marks the end of a step behind all work so far. At most kMostPending steps may be unread.
  virtual void EndStep() = 0;
  virtual int64_t PendingSteps() const = 0;
  // Whether the device has reached the end of the oldest pending step.
  virtual bool OldestReached() = 0;
  // Length of the oldest pending step in seconds, which is then read; waits for its end.
  virtual double TakeOldest() = 0;
  // From the start to the end of the last step read, as one difference.
  virtual double WindowSeconds() = 0;
  // Waits for the device.
  virtual StepCounts Counts() = 0;

  // ---- recording
  // Before any tensor of the work is made. Throws CannotRecord.
  virtual void PrepareToRecord() = 0;
  // Records what `work` queues instead of running it; all recordings of a device share one memory
  // pool. `work` must have run before, so that nothing is left to search for or to load. Throws
  // CannotRecord with what stood in the way.
  virtual std::unique_ptr<Recording> Record(const std::function<void()>& work) = 0;

  // Throws std::runtime_error on a CPU, which works on the host's memory itself.
  virtual std::unique_ptr<CopyQueue> MakeCopyQueue() = 0;

  // When kernels, and copies within the device, ran on it while `work` did, which must wait for the
  // device at its end, in nanoseconds of one clock. nullopt, and `work` is not done, where nothing
  // can trace.
  virtual std::optional<std::vector<measure::Span>> Trace(const std::function<void()>& work) = 0;

  // Pending steps that keep the device busy yet let the host stop soon: about a quarter of a second
  // of work. 0 where steps are not queued at all.
  virtual int64_t QueueDepth(double step_seconds) const = 0;

  static constexpr int64_t kMostPending = 32;
};

std::unique_ptr<Device> MakeCpuDevice();

// Memory of the host, or of the control group or this process's limits where that is less.
int64_t HostMemoryBytes();

// What a process can know of CUDA without making a context on a device.
struct CudaStack {
  bool built = false;  // this runner has the CUDA device
  int devices = 0;     // that the driver offers
  StackVersions versions;
  std::vector<std::string> arch_list;  // sm_75, ... that LibTorch has code for
  std::string problem;                 // why there is no device although it was built
};

CudaStack QueryCuda();

// By UUID ("GPU-...") where one is given, else by ordinal. Throws std::runtime_error with a
// sentence where there is no such device, or where this runner was built without CUDA.
std::unique_ptr<Device> MakeCudaDevice(const std::string& uuid, int ordinal);

}  // namespace assay::train

#endif  // ASSAY_RUNNERS_TRAIN_DEVICE_DEVICE_H_
