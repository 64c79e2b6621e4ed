#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <deque>
#include <fstream>

#include "runners/train/device/device.h"
#include "runners/train/device/input_checksum.h"

namespace assay::train {
namespace {

using Clock = std::chrono::steady_clock;

// Work is done when the call returns, so the host's steady clock is the device's.
class CpuDevice final : public Device {
 public:
  c10::Device torch() const override { return c10::kCPU; }
  int64_t MemoryBytes() const override { return HostMemoryBytes(); }
  MemoryPeaks Peaks() const override { return {}; }
  void ForgetPeaks() override {}
  DeviceMemory Memory() const override {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return {int64_t{usage.ru_maxrss} * 1024, HostMemoryBytes()};
  }
  std::optional<int64_t> ContextUsedBytes() const override { return std::nullopt; }
  std::optional<int64_t> CacheBytes() const override { return std::nullopt; }
  StackVersions Versions() const override { return {}; }
  int ComputeCapability() const override { return 0; }
  bool SawOutOfMemory() const override { return false; }
  void Synchronize() override {}

  void BeginWindow() override {
    counts_ = {};
    pending_.clear();
    start_ = last_ = Clock::now();
  }

  void CountStep(const at::Tensor& loss, const at::Tensor& found_inf,
                 const at::Tensor& input) override {
    ++counts_.steps;
    if (input.defined()) {
      NoteChecksum(ChecksumShare(static_cast<const uint32_t*>(input.const_data_ptr()),
                                 static_cast<int64_t>(input.nbytes() / sizeof(uint32_t)), 0, 1),
                   &counts_.inputs, checksums_.data());
    }
    if (loss.defined() && !std::isfinite(loss.item<float>())) ++counts_.non_finite;
    if (found_inf.defined() && found_inf.item<float>() != 0) ++counts_.skipped;
  }

  void EndStep() override { pending_.push_back(Clock::now()); }

  int64_t PendingSteps() const override { return static_cast<int64_t>(pending_.size()); }
  bool OldestReached() override { return !pending_.empty(); }

  double TakeOldest() override {
    const Clock::time_point end = pending_.front();
    pending_.pop_front();
    const double seconds = std::chrono::duration<double>(end - last_).count();
    last_ = end;
    return seconds;
  }

  double WindowSeconds() override { return std::chrono::duration<double>(last_ - start_).count(); }
  StepCounts Counts() override { return counts_; }
  void PrepareToRecord() override { throw CannotRecord("a CPU has no CUDA Graphs"); }
  std::unique_ptr<Recording> Record(const std::function<void()>&) override {
    throw CannotRecord("a CPU has no CUDA Graphs");
  }
  std::unique_ptr<CopyQueue> MakeCopyQueue() override {
    throw std::runtime_error("a CPU works on the host's memory itself: nothing is copied to it");
  }
  std::optional<std::vector<measure::Span>> Trace(const std::function<void()>&) override {
    return std::nullopt;
  }
  int64_t QueueDepth(double) const override { return 0; }

 private:
  StepCounts counts_;
  std::array<uint64_t, kMostInputs> checksums_{};
  Clock::time_point start_, last_;
  std::deque<Clock::time_point> pending_;
};

}  // namespace

int64_t HostMemoryBytes() {
  int64_t bytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  std::ifstream limit("/sys/fs/cgroup/memory.max");
  int64_t limit_bytes = 0;
  if (limit >> limit_bytes && limit_bytes > 0) bytes = std::min(bytes, limit_bytes);
  for (const auto resource : {RLIMIT_DATA, RLIMIT_AS}) {
    rlimit own{};
    if (getrlimit(resource, &own) == 0 && own.rlim_cur < static_cast<rlim_t>(bytes)) {
      bytes = static_cast<int64_t>(own.rlim_cur);
    }
  }
  return bytes;
}

std::unique_ptr<Device> MakeCpuDevice() { return std::make_unique<CpuDevice>(); }

}  // namespace assay::train
