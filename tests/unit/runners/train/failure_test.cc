#include "runners/train/failure.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <string>

#include "common/runner_protocol/failure_message.h"

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
        "CUDA error: out of memory\nSearch for `cudaErrorMemoryAllocation' in "
        "https://docs.nvidia.com",
        "cuDNN Frontend error: [cudnn_frontend] Error: CUDNN_STATUS_ALLOC_FAILED",
        "CUDA driver error: out of memory",
        "NCCL error in: /pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:77, unhandled "
        "cuda "
        "error (run with NCCL_DEBUG=INFO for details), NCCL version 2.28.9\n"
        "ncclUnhandledCudaError: Call to CUDA function failed.\n"
        "Last error:\nCuda failure 2 'out of memory'",
        "std::bad_alloc", "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"));

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

// As LibTorch 2.11 writes it, five sentences long.
constexpr char kCudaText[] =
    "CUDA out of memory. Tried to allocate 24.50 GiB. GPU 0 has a total capacity of 139.80 GiB of "
    "which 7.85 GiB is free. Including non-PyTorch memory, this process has 131.94 GiB memory in "
    "use. Of the allocated memory 130.51 GiB is allocated by PyTorch, and 812.20 MiB is reserved "
    "by "
    "PyTorch but unallocated. If reserved but unallocated memory is large try setting "
    "PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for "
    "Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)";

TEST(ClassifyError, OutOfMemoryOfCudaIsOneSentenceOfWhatAndWhere) {
  EXPECT_EQ(
      ClassifyError(kCudaText, true).message,
      "24.50 GiB more were asked for on GPU 0 of 139.80 GiB, of which 7.85 GiB were free: use "
      "a smaller batch, or accumulate");
}

TEST(ClassifyError, OutOfMemoryOfTheHostIsOneSentence) {
  EXPECT_EQ(
      ClassifyError("[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't "
                    "allocate memory: you tried to allocate 602112000000 bytes. Error code 12 "
                    "(Cannot allocate memory)",
                    false)
          .message,
      "560.76 GiB more were asked for than the host's memory has left: use a smaller batch, or "
      "accumulate");
}

TEST(ClassifyError, SmallSharedMemoryOfNcclIsItsOwnReason) {  // case 24
  const RunnerResult result = ClassifyError(
      "NCCL error in: /pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:3690, unhandled "
      "system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.28.9\n"
      "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or "
      "device "
      "error.\nLast error:\nError while creating shared memory segment /dev/shm/nccl-2YdKQx (size "
      "9637888), error: No space left on device (28)",
      false);
  EXPECT_EQ(result.outcome, "fail");
  EXPECT_EQ(result.reason, "shm_too_small");
  EXPECT_EQ(result.message.find("Error while creating"), 0u) << result.message;
  EXPECT_NE(result.message.find("enlarge /dev/shm"), std::string::npos);
}

TEST(ClassifyError, AnotherFailureOfNcclIsARunnerError) {
  EXPECT_EQ(
      ClassifyError("NCCL error in: x.cpp:77, remote process exited or there was a network "
                    "error, NCCL version 2.28.9\nncclRemoteError: A call failed possibly due to "
                    "a network error or a remote process exiting prematurely.",
                    true)
          .reason,
      "runner_error");
}

TEST(ClassifyError, RemediesStandBehindWhatWasSaid) {
  const std::string line =
      ClassifyError(
          "CUDA initialization: The NVIDIA driver on your system is too old (found version "
          "11040). Please update your GPU driver by downloading and installing a new "
          "version from the URL: http://www.nvidia.com/Download/index.aspx Alternatively, "
          "go to: https://pytorch.org to install a PyTorch version that has been compiled "
          "with your version of the CUDA driver.",
          false)
          .message;
  EXPECT_LE(line.size(), kMaxFailureMessageBytes);
  EXPECT_NE(line.find("found version 11040"), std::string::npos) << line;
  EXPECT_NE(line.find("install a driver as new"), std::string::npos) << line;
}

TEST(TextOfException, KeepsAllForTheLog) {
  const auto error = std::make_exception_ptr(std::runtime_error("one.\ntwo."));
  EXPECT_EQ(TextOfException(error), "one.\ntwo.");
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
