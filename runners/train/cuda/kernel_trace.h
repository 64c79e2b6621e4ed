// KernelTrace: when kernels, and copies within the device, ran on it, by LibTorch's profiler
// (Kineto over CUPTI), which its wheels bring along for C++ as for Python.
//
// Thread rule: one trace at a time.
#ifndef ASSAY_RUNNERS_TRAIN_CUDA_KERNEL_TRACE_H_
#define ASSAY_RUNNERS_TRAIN_CUDA_KERNEL_TRACE_H_

#include <c10/core/Device.h>

#include <functional>
#include <vector>

#include "common/measure/busy_time.h"

namespace assay::train {

// Of everything that ran on `device` while `work` did, which must wait for the device at its end.
// Empty where the profiler saw nothing. Throws what LibTorch throws.
std::vector<measure::Span> TraceKernels(c10::DeviceIndex device, const std::function<void()>& work);

}  // namespace assay::train

#endif  // ASSAY_RUNNERS_TRAIN_CUDA_KERNEL_TRACE_H_
