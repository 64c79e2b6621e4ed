// Compiled only with CUDA. Of ATen/cuda only headers that need none of cuBLAS's, cuSPARSE's and
// cuSOLVER's, 400 MB that the compile check would have to fetch.
#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <optional>
#include <set>
#include <stdexcept>
#include <thread>

#include "runners/train/cuda/cuda_copy_queue.h"
#include "runners/train/cuda/cuda_recorder.h"
#include "runners/train/cuda/kernel_trace.h"
#include "runners/train/cuda/step_counter.h"
#include "runners/train/device/device.h"

namespace assay::train {
namespace {

// The symbol of a library that LibTorch has loaded already; null where it has not.
void* LoadedSymbol(const char* library, const char* symbol) {
  void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  return handle == nullptr ? nullptr : dlsym(handle, symbol);
}

std::string CudaVersion() {
  const long version = at::globalContext().versionCUDART();
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string CudnnVersion() {
  void* symbol = LoadedSymbol("libcudnn.so.9", "cudnnGetVersion");
  if (symbol == nullptr) return "";
  const size_t v = reinterpret_cast<size_t (*)()>(symbol)();
  return std::to_string(v / 10000) + "." + std::to_string(v % 10000 / 100) + "." +
         std::to_string(v % 100);
}

std::string NcclVersion() {
  void* symbol = LoadedSymbol("libnccl.so.2", "ncclGetVersion");
  int v = 0;
  if (symbol == nullptr || reinterpret_cast<int (*)(int*)>(symbol)(&v) != 0) return "";
  return std::to_string(v / 10000) + "." + std::to_string(v % 10000 / 100) + "." +
         std::to_string(v % 100);
}

StackVersions LoadedVersions() { return {CudaVersion(), CudnnVersion(), NcclVersion()}; }

// From "-gencode;arch=compute_75,code=sm_75;..." in LibTorch's own description of its build.
std::vector<std::string> ArchList() {
  const std::string config = at::detail::getCUDAHooks().showConfig();
  std::set<std::string> found;
  const std::string key = "code=sm_";
  for (size_t at = config.find(key); at != std::string::npos; at = config.find(key, at + 1)) {
    const size_t begin = at + 5;
    const size_t end = config.find_first_not_of("sm_0123456789af", begin);
    found.insert(config.substr(begin, end - begin));
  }
  std::vector<std::string> list(found.begin(), found.end());
  std::sort(list.begin(), list.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  return list;
}

std::string UuidOf(const cudaDeviceProp& properties) {
  char text[64];
  const auto* b = reinterpret_cast<const unsigned char*>(properties.uuid.bytes);
  std::snprintf(text, sizeof(text),
                "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
                b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
                b[14], b[15]);
  return text;
}

// CUDA's own order is not NVML's, so that the ordinal alone may name another card.
int FindOrdinal(const std::string& uuid, int ordinal) {
  int count = 0;
  C10_CUDA_CHECK(cudaGetDeviceCount(&count));
  const bool by_uuid = uuid.rfind("GPU-", 0) == 0;
  for (int i = 0; by_uuid && i < count; ++i) {
    cudaDeviceProp properties;
    C10_CUDA_CHECK(cudaGetDeviceProperties(&properties, i));
    if (UuidOf(properties) == uuid) return i;
  }
  if (by_uuid) {
    throw std::runtime_error("no CUDA device has the UUID " + uuid + " (" + std::to_string(count) +
                             " seen; look at CUDA_VISIBLE_DEVICES)");
  }
  if (ordinal < 0 || ordinal >= count) {
    throw std::runtime_error("CUDA device " + std::to_string(ordinal) + " was asked for, " +
                             std::to_string(count) + " seen");
  }
  return ordinal;
}

class Event {
 public:
  Event() { C10_CUDA_CHECK(cudaEventCreate(&event_)); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void Record(cudaStream_t stream) { C10_CUDA_CHECK(cudaEventRecord(event_, stream)); }
  // Sleeps between two looks: with steps queued behind, waking late costs nothing, and a spinning
  // core costs clock on small machines. cudaEventBlockingSync would sleep too, but its interrupt is
  // part of every step.
  void Wait() const {
    while (!Reached()) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  bool Reached() const {
    const cudaError_t status = cudaEventQuery(event_);
    if (status == cudaErrorNotReady) {
      (void)cudaGetLastError();
      return false;
    }
    C10_CUDA_CHECK(status);
    return true;
  }
  // Both must have been reached.
  double SecondsSince(const Event& earlier) const {
    float milliseconds = 0;
    C10_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, earlier.event_, event_));
    return milliseconds * 1e-3;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int ordinal) : device_(c10::kCUDA, static_cast<c10::DeviceIndex>(ordinal)) {
    at::globalContext().lazyInitDevice(c10::kCUDA);
    c10::cuda::set_device(device_.index());
    C10_CUDA_CHECK(cudaFree(nullptr));  // the context itself, which nothing has needed yet
    context_used_bytes_ = Memory().used_bytes;
    counts_ = at::zeros({sizeof(DeviceCounts) / sizeof(int64_t)},
                        at::TensorOptions(at::kLong).device(device_));
    start_ = std::make_unique<Event>();
    for (std::unique_ptr<Event>& event : ring_) event = std::make_unique<Event>();
  }

  c10::Device torch() const override { return device_; }

  int64_t MemoryBytes() const override { return Memory().capacity_bytes; }

  DeviceMemory Memory() const override {
    size_t free = 0, total = 0;
    C10_CUDA_CHECK(cudaMemGetInfo(&free, &total));
    return {static_cast<int64_t>(total - free), static_cast<int64_t>(total)};
  }

  std::optional<int64_t> ContextUsedBytes() const override { return context_used_bytes_; }

  std::optional<int64_t> CacheBytes() const override {
    int bytes = 0;
    C10_CUDA_CHECK(cudaDeviceGetAttribute(&bytes, cudaDevAttrL2CacheSize, device_.index()));
    return bytes;
  }

  MemoryPeaks Peaks() const override {
    const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(device_.index());
    constexpr auto kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    return {stats.allocated_bytes[kAll].peak, stats.reserved_bytes[kAll].peak};
  }

  void ForgetPeaks() override { c10::cuda::CUDACachingAllocator::resetPeakStats(device_.index()); }

  StackVersions Versions() const override { return LoadedVersions(); }

  int ComputeCapability() const override {
    cudaDeviceProp properties;
    C10_CUDA_CHECK(cudaGetDeviceProperties(&properties, device_.index()));
    return properties.major * 10 + properties.minor;
  }

  bool SawOutOfMemory() const override {
    return c10::cuda::CUDACachingAllocator::getDeviceStats(device_.index()).num_ooms > 0;
  }

  void Synchronize() override { c10::cuda::device_synchronize(); }

  void BeginWindow() override {
    counts_.zero_();
    Synchronize();
    ended_ = taken_ = 0;
    start_->Record(Stream());
  }

  void CountStep(const at::Tensor& loss, const at::Tensor& found_inf,
                 const at::Tensor& input) override {
    C10_CUDA_CHECK(train::CountStep(
        reinterpret_cast<DeviceCounts*>(counts_.data_ptr<int64_t>()),
        loss.defined() ? loss.data_ptr<float>() : nullptr,
        found_inf.defined() ? found_inf.data_ptr<float>() : nullptr,
        input.defined() ? static_cast<const uint32_t*>(input.const_data_ptr()) : nullptr,
        input.defined() ? static_cast<int64_t>(input.nbytes() / sizeof(uint32_t)) : 0, Stream()));
  }

  void EndStep() override { EndOf(ended_++).Record(Stream()); }

  int64_t PendingSteps() const override { return ended_ - taken_; }
  bool OldestReached() override { return PendingSteps() > 0 && EndOf(taken_).Reached(); }

  double TakeOldest() override {
    Event& end = EndOf(taken_);
    end.Wait();
    const double seconds = end.SecondsSince(taken_ == 0 ? *start_ : EndOf(taken_ - 1));
    ++taken_;
    return seconds;
  }

  double WindowSeconds() override {
    return taken_ == 0 ? 0 : EndOf(taken_ - 1).SecondsSince(*start_);
  }

  StepCounts Counts() override {
    const at::Tensor host = counts_.cpu();
    const auto* c = reinterpret_cast<const DeviceCounts*>(host.const_data_ptr<int64_t>());
    return {c->steps, c->skipped, c->non_finite, c->inputs};
  }

  void PrepareToRecord() override { recorder_.emplace(device_.index()); }
  std::unique_ptr<Recording> Record(const std::function<void()>& work) override {
    return recorder_.value().Record(work);
  }

  std::unique_ptr<CopyQueue> MakeCopyQueue() override { return MakeCudaCopyQueue(device_.index()); }

  std::optional<std::vector<measure::Span>> Trace(const std::function<void()>& work) override {
    return TraceKernels(device_.index(), work);
  }

  int64_t QueueDepth(double step_seconds) const override {
    constexpr double kQueuedSeconds = 0.25;
    if (!(step_seconds > 0)) return 2;
    return static_cast<int64_t>(std::clamp(std::ceil(kQueuedSeconds / step_seconds), 2.0,
                                           static_cast<double>(kMostPending)));
  }

 private:
  cudaStream_t Stream() const { return c10::cuda::getCurrentCUDAStream(device_.index()).stream(); }
  // One slot more than may be pending, since a step is measured from the end of the one before;
  // and one for the step that is ended before the oldest is taken.
  Event& EndOf(int64_t step) { return *ring_[step % ring_.size()]; }

  const c10::Device device_;
  int64_t context_used_bytes_ = 0;
  at::Tensor counts_;  // a DeviceCounts
  std::unique_ptr<Event> start_;
  std::array<std::unique_ptr<Event>, kMostPending + 2> ring_;
  int64_t ended_ = 0;
  int64_t taken_ = 0;
  std::optional<CudaRecorder> recorder_;
};

}  // namespace

CudaStack QueryCuda() {
  CudaStack stack;
  stack.built = true;
  const cudaError_t status = cudaGetDeviceCount(&stack.devices);
  if (status != cudaSuccess) {
    (void)cudaGetLastError();
    stack.devices = 0;
    stack.problem = cudaGetErrorString(status);
  }
  // Without a driver LibTorch throws even when asked how it was built.
  try {
    stack.versions = LoadedVersions();
    stack.arch_list = ArchList();
  } catch (const std::exception& error) {
    if (stack.problem.empty()) stack.problem = error.what();
  }
  return stack;
}

std::unique_ptr<Device> MakeCudaDevice(const std::string& uuid, int ordinal) {
  return std::make_unique<CudaDevice>(FindOrdinal(uuid, ordinal));
}

}  // namespace assay::train
