#include "runners/train/failure.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

namespace assay::train {
namespace {

class OutOfMemoryText : public testing::TestWithParam<const char*> {};

TEST_P(OutOfMemoryText, IsMemLimit) {
  const RunnerResult result = ClassifyError(GetParam(), false);
  EXPECT_EQ(result.outcome, "mem_limit");
  EXPECT_EQ(result.reason, "out_of_memory");
}

INSTANTIATE_TEST_SUITE_P(
    Case1, OutOfMemoryText,
    testing::Values(
        "CUDA out of memory. Tried to allocate 2.30 GiB. GPU 0 has a total capacity of 139.72 GiB",
        "CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported",
        "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: "
        "you tried to allocate 602112000000 bytes. Error code 12 (Cannot allocate memory)",
        "DefaultCPUAllocator: not enough memory: you tried to allocate 8 bytes.",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
        "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"));

TEST(ClassifyError, CudnnWithoutAnEngineIsMemLimitOnlyAfterAFailedAllocation) {
  const char* text = "FIND was unable to find an engine to execute this computation";
  EXPECT_EQ(ClassifyError(text, true).outcome, "mem_limit");
  EXPECT_EQ(ClassifyError(text, false).outcome, "fail");
}

TEST(ClassifyError, UncorrectableEccErrorIsItsOwnReason) {  // case 43
  const RunnerResult result =
      ClassifyError("CUDA error: uncorrectable ECC error encountered", false);
  EXPECT_EQ(result.outcome, "fail");
  EXPECT_EQ(result.reason, "ecc_error");
}

TEST(ClassifyError, MissingKernelImageIsUnsupportedArch) {  // case 41
  const RunnerResult result =
      ClassifyError("CUDA error: no kernel image is available for execution on the device", false);
  EXPECT_EQ(result.outcome, "unsupported");
  EXPECT_EQ(result.reason, "unsupported_arch");
}

TEST(ClassifyError, OldDriverIsUnsupported) {  // case 40
  EXPECT_EQ(
      ClassifyError("CUDA driver version is insufficient for CUDA runtime version", false).reason,
      "driver_too_old");
  EXPECT_EQ(
      ClassifyError("Error 804: forward compatibility was attempted on non supported HW", false)
          .reason,
      "driver_too_old");
}

TEST(ClassifyError, AnythingElseIsARunnerErrorOfOneLine) {
  const RunnerResult result = ClassifyError("\nsizes do not match\nException raised from x", false);
  EXPECT_EQ(result.outcome, "fail");
  EXPECT_EQ(result.reason, "runner_error");
  EXPECT_EQ(result.message, "sizes do not match");
}

TEST(ClassifyException, BadAllocIsMemLimit) {
  EXPECT_EQ(ClassifyException(std::make_exception_ptr(std::bad_alloc()), false).outcome,
            "mem_limit");
}

TEST(ClassifyException, WhatIsNoExceptionIsARunnerError) {
  EXPECT_EQ(ClassifyException(std::make_exception_ptr(7), false).reason, "runner_error");
}

}  // namespace
}  // namespace assay::train
