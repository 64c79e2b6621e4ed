#include "agent/cell/failure_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

namespace assay {
namespace {

using testing::HasSubstr;

Diagnosis Text(const std::string& text) {
  const auto found = DiagnoseText(text);
  return found ? *found : Diagnosis{Outcome::kOk, "", ""};
}

// Case 40.
TEST(DiagnoseText, Case40ADriverThatIsTooOldIsUnsupported) {
  for (const char* text :
       {"RuntimeError: CUDA error: CUDA driver version is insufficient for CUDA runtime version",
        "Error 804: forward compatibility was attempted on non supported HW",
        "The NVIDIA driver on your system is too old (found version 11040)."}) {
    const Diagnosis d = Text(text);
    EXPECT_EQ(d.outcome, Outcome::kUnsupported) << text;
    EXPECT_EQ(d.reason, reason::kDriverTooOld) << text;
    EXPECT_THAT(d.message, HasSubstr("install a driver"));
  }
}

// Case 41.
TEST(DiagnoseText, Case41AMissingKernelImageIsUnsupportedArch) {
  const Diagnosis d =
      Text("CUDA error: no kernel image is available for execution on the device\nmore");
  EXPECT_EQ(d.outcome, Outcome::kUnsupported);
  EXPECT_EQ(d.reason, reason::kUnsupportedArch);
}

// Case 43.
TEST(DiagnoseText, Case43AnUncorrectableEccErrorIsAFailureOfTheCard) {
  const Diagnosis d = Text("CUDA error: uncorrectable ECC error encountered");
  EXPECT_EQ(d.outcome, Outcome::kFail);
  EXPECT_EQ(d.reason, reason::kEccError);
}

// Case 24.
TEST(DiagnoseText, Case24ASmallSharedMemoryHasItsOwnReasonAndHint) {
  for (const char* text :
       {"NCCL WARN Call to posix_fallocate failed : No space left on device",
        "include/shm.h:28 NCCL WARN Error while creating shared memory segment nccl-shm-recv-1",
        "Error: failed to extend /dev/shm/nccl-abc to 9637892 bytes: No space left on device",
        "DataLoader worker killed by signal: Bus error. It is possible that dataloader's workers "
        "are out of shared memory; insufficient shared memory (shm)"}) {
    const Diagnosis d = Text(text);
    EXPECT_EQ(d.reason, reason::kShmTooSmall) << text;
    EXPECT_THAT(d.message, HasSubstr("enlarge /dev/shm"));
  }
}

TEST(DiagnoseText, AFullDiskIsNotASmallSharedMemory) {
  EXPECT_FALSE(DiagnoseText("cannot write /var/x: No space left on device").has_value());
  EXPECT_FALSE(DiagnoseText("opened /dev/shm\nall well").has_value());
}

TEST(DiagnoseText, OutOfMemoryIsMemLimit) {
  for (const char* text :
       {"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
        "CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate",
        "terminate called after throwing an instance of 'std::bad_alloc'"}) {
    EXPECT_EQ(Text(text).outcome, Outcome::kMemLimit) << text;
  }
}

TEST(DiagnoseText, QuotesTheLineThatSaysItAndNoControlCharacters) {
  const Diagnosis d = Text("before\nx\x1b[31m CUDA out of memory here\nafter");
  EXPECT_THAT(d.message, HasSubstr("CUDA out of memory here"));
  EXPECT_THAT(d.message, testing::Not(HasSubstr("before")));
  EXPECT_THAT(d.message, testing::Not(HasSubstr("after")));
  EXPECT_EQ(d.message.find('\x1b'), std::string::npos);
}

TEST(DiagnoseText, AHintSurvivesALongLine) {
  const Diagnosis d = Text("uncorrectable ECC error " + std::string(500, 'x'));
  EXPECT_LE(d.message.size(), 300u);
  EXPECT_THAT(d.message, HasSubstr("distrust earlier results"));
}

TEST(DiagnoseText, SurvivesAnyBytes) {
  EXPECT_FALSE(DiagnoseText("").has_value());
  EXPECT_FALSE(DiagnoseText(std::string(20000, '\xff')).has_value());
  EXPECT_TRUE(DiagnoseText(std::string(20000, 'x') + "CUDA out of memory").has_value());
}

TEST(DiagnoseExit, ASignalIsACrashThatNamesIt) {
  const Diagnosis d = DiagnoseExit(-1, SIGSEGV, "last words\n", false, false);
  EXPECT_EQ(d.reason, reason::kCrash);
  EXPECT_THAT(d.message, HasSubstr("SIGSEGV"));
  EXPECT_THAT(d.message, HasSubstr("last words"));
}

TEST(DiagnoseExit, ZeroWithoutAResultIsBadOutput) {
  EXPECT_EQ(DiagnoseExit(0, 0, "", false, false).reason, reason::kBadOutput);
}

TEST(DiagnoseExit, AnOomKillOnACpuIsMemLimitAndOnAGpuACrashWithAHint) {
  EXPECT_EQ(DiagnoseExit(-1, SIGKILL, "", true, true).outcome, Outcome::kMemLimit);
  const Diagnosis gpu = DiagnoseExit(-1, SIGKILL, "", true, false);
  EXPECT_EQ(gpu.outcome, Outcome::kFail);
  EXPECT_EQ(gpu.reason, reason::kCrash);
  EXPECT_THAT(gpu.message, HasSubstr("host's memory"));
}

TEST(DiagnoseExit, ALostLifelineSaysSo) {
  EXPECT_THAT(DiagnoseExit(143, 0, "", false, false).message, HasSubstr("lifeline"));
}

TEST(SignalName, NamesKnownAndUnknownSignals) {
  EXPECT_EQ(SignalName(SIGABRT), "SIGABRT");
  EXPECT_EQ(SignalName(250), "signal 250");
}

}  // namespace
}  // namespace assay
