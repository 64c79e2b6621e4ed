#include "runners/train/cuda/kernel_trace.h"

#include <kineto/ActivityType.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <memory>
#include <set>
#include <string>

namespace assay::train {
namespace {

namespace profiler = torch::autograd::profiler;
using torch::profiler::impl::ActivityType;
using torch::profiler::impl::ProfilerConfig;
using torch::profiler::impl::ProfilerState;

// Work of the device: not what the host did to start it, nor waits, which the profiler lists too,
// nor copies from and to the host, during which a device that is fed too slowly stands still.
bool IsWork(const profiler::KinetoEvent& event) {
  switch (static_cast<libkineto::ActivityType>(event.activityType())) {
    case libkineto::ActivityType::CONCURRENT_KERNEL:
    case libkineto::ActivityType::GPU_MEMSET:
      return true;
    case libkineto::ActivityType::GPU_MEMCPY:
      // "Memcpy HtoD (Pinned -> Device)"
      return event.name().find("HtoD") == std::string::npos &&
             event.name().find("DtoH") == std::string::npos;
    default:
      return false;
  }
}

}  // namespace

std::vector<measure::Span> TraceKernels(c10::DeviceIndex device,
                                        const std::function<void()>& work) {
  // Without the host's own operators, whose tracing would slow it several times over.
  const std::set<ActivityType> activities = {ActivityType::CUDA};
  const ProfilerConfig config(ProfilerState::KINETO);
  profiler::prepareProfiler(config, activities);
  profiler::enableProfiler(config, activities);
  try {
    work();
  } catch (...) {
    profiler::disableProfiler();
    throw;
  }
  const std::unique_ptr<profiler::ProfilerResult> result = profiler::disableProfiler();
  std::vector<measure::Span> spans;
  for (const profiler::KinetoEvent& event : result->events()) {
    if (!IsWork(event) || event.deviceIndex() != device) continue;
    const auto begin_ns = static_cast<int64_t>(event.startNs());
    spans.push_back({begin_ns, begin_ns + static_cast<int64_t>(event.durationNs())});
  }
  return spans;
}

}  // namespace assay::train
