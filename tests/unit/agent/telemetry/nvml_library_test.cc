#include "agent/telemetry/nvml_library.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace assay {
namespace {

class StubbedNvml : public testing::Test {
 protected:
  static std::unique_ptr<NvmlLibrary> Open(const char* mode) {
    setenv("ASSAY_STUB_NVML", mode, 1);
    return std::make_unique<NvmlLibrary>(ASSAY_STUB_NVML_PATH);
  }
};

TEST_F(StubbedNvml, DescribesAGpu) {
  auto nvml = Open("");
  const auto system = nvml->Describe();
  ASSERT_TRUE(system.ok()) << system.status();
  EXPECT_EQ(system->driver_version, "525.60.13");
  ASSERT_EQ(system->devices.size(), 1u);
  const NvmlDevice& gpu = system->devices[0];
  EXPECT_EQ(gpu.uuid, "GPU-1");
  EXPECT_EQ(gpu.name, "NVIDIA A100\xff");  // raw here; who shows it scrubs it
  EXPECT_EQ(gpu.memory_total_bytes, 42949672960u);
  EXPECT_EQ(gpu.cc_major, 8);
  EXPECT_EQ(gpu.sm_count, 108);  // 6912 cores, 64 an SM
  EXPECT_EQ(gpu.ecc_enabled, true);
  EXPECT_EQ(gpu.persistence, true);
  EXPECT_EQ(gpu.power_limits.enforced_watts, 250);
  EXPECT_FALSE(gpu.power_limits.default_watts);  // a symbol that this library lacks
  EXPECT_FALSE(gpu.mig_enabled);
}

TEST_F(StubbedNvml, SamplesByUuidAndLeavesOutWhatIsMissing) {
  auto nvml = Open("");
  ASSERT_TRUE(nvml->Describe().ok());
  const auto sample = nvml->Sample("GPU-1");
  ASSERT_TRUE(sample.ok());
  EXPECT_NEAR(*sample->power_watts, 123.456, 1e-9);
  EXPECT_EQ(sample->sm_clock_hertz, 1410e6);
  EXPECT_EQ(sample->memory_used_bytes, 4194304u);
  EXPECT_FALSE(sample->temperature_celsius);
  EXPECT_EQ(nvml->Sample("GPU-2").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(StubbedNvml, GrowsItsListForManyProcesses) {
  auto nvml = Open("");
  ASSERT_TRUE(nvml->Describe().ok());
  const auto pids = nvml->ProcessIds("GPU-1");
  ASSERT_TRUE(pids.ok());
  EXPECT_EQ(pids->size(), 200u);
  EXPECT_EQ(pids->back(), 1199);
}

// Case 37: everything but name and memory is not supported; memory falls back to version 1, and a
// name without an end is read to the buffer's end.
TEST_F(StubbedNvml, NotSupportedIsNotKnown) {
  auto nvml = Open("sparse");
  const auto system = nvml->Describe();
  ASSERT_TRUE(system.ok());
  const NvmlDevice& gpu = system->devices[0];
  EXPECT_EQ(gpu.name, std::string(96, 'n'));
  EXPECT_EQ(gpu.memory_total_bytes, 42949672960u);
  EXPECT_FALSE(gpu.cc_major);
  EXPECT_FALSE(gpu.sm_count);
  EXPECT_FALSE(gpu.ecc_enabled);
  EXPECT_FALSE(gpu.persistence);
  EXPECT_FALSE(gpu.power_limits.enforced_watts);
  const auto sample = nvml->Sample("GPU-1");
  ASSERT_TRUE(sample.ok());
  EXPECT_FALSE(sample->power_watts);
  EXPECT_EQ(sample->memory_used_bytes, 949672960u);
}

// Case 8.
TEST_F(StubbedNvml, SlicesHaveTheirProfileAndNoSensors) {
  auto nvml = Open("mig");
  const auto system = nvml->Describe();
  ASSERT_TRUE(system.ok());
  ASSERT_EQ(system->devices[0].slices.size(), 1u);
  const NvmlMigSlice& slice = system->devices[0].slices[0];
  EXPECT_EQ(slice.uuid, "MIG-1");
  EXPECT_EQ(slice.profile, "1g.5gb");
  EXPECT_EQ(slice.memory_total_bytes, 5000000000u);
  EXPECT_EQ(slice.sm_count, 14);
  EXPECT_FALSE(nvml->Sample("MIG-1")->power_watts);
  EXPECT_FALSE(nvml->State("MIG-1")->power_limits.enforced_watts);
  EXPECT_FALSE(nvml->State("MIG-1")->ecc_uncorrected);
  EXPECT_FALSE(nvml->Link("MIG-1")->width);
  EXPECT_FALSE(nvml->Xids("MIG-1").ok());
}

TEST_F(StubbedNvml, StateLinkAndClocksAreRead) {
  auto nvml = Open("");
  ASSERT_TRUE(nvml->Describe().ok());
  const auto state = nvml->State("GPU-1");
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->power_limits.enforced_watts, 250);
  EXPECT_EQ(state->sm_clock_max_hertz, 1.41e9);
  EXPECT_EQ(state->sm_clock_application_hertz, 1.095e9);
  EXPECT_EQ(state->memory_clock_application_default_hertz, 1.215e9);
  EXPECT_EQ(state->persistence, true);
  EXPECT_EQ(state->ecc_enabled, true);
  EXPECT_EQ(state->ecc_corrected, 3u);
  EXPECT_EQ(state->ecc_uncorrected, 0u);
  EXPECT_EQ(state->remapped_rows, 7u);
  EXPECT_EQ(state->remap_pending, false);
  EXPECT_EQ(state->pcie_generation_max, 4);
  EXPECT_EQ(nvml->Link("GPU-1")->generation, 3);
  EXPECT_EQ(nvml->Link("GPU-1")->width, 8);
  EXPECT_EQ(nvml->Sample("GPU-1")->memory_clock_hertz, 1.215e9);
}

TEST_F(StubbedNvml, WhatADriverDoesNotSupportIsNoStateOfZeros) {
  auto nvml = Open("sparse");
  ASSERT_TRUE(nvml->Describe().ok());
  const auto state = nvml->State("GPU-1");
  ASSERT_TRUE(state.ok());
  EXPECT_FALSE(state->sm_clock_application_hertz);
  EXPECT_FALSE(state->ecc_uncorrected);
  EXPECT_FALSE(state->remapped_rows);
  EXPECT_FALSE(state->persistence);
  EXPECT_FALSE(nvml->Link("GPU-1")->generation);
  EXPECT_EQ(nvml->Xids("GPU-1").status().code(), absl::StatusCode::kUnimplemented);
}

TEST_F(StubbedNvml, XidsAreThoseSinceTheLastQuestion) {
  auto nvml = Open("");
  ASSERT_TRUE(nvml->Describe().ok());
  EXPECT_EQ(*nvml->Xids("GPU-1"), std::vector<int64_t>{});
  setenv("ASSAY_STUB_XID", "79", 1);
  EXPECT_EQ(*nvml->Xids("GPU-1"), std::vector<int64_t>{79});
  EXPECT_EQ(*nvml->Xids("GPU-1"), std::vector<int64_t>{});
}

// Case 39.
TEST_F(StubbedNvml, VersionMismatchIsFailedPreconditionWithNvmlsText) {
  const auto status = Open("mismatch")->Describe().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("LIB_RM_VERSION_MISMATCH"), absl::string_view::npos);
  EXPECT_NE(status.message().find("Driver/library version mismatch"), absl::string_view::npos);
}

TEST_F(StubbedNvml, DriverThatIsNotLoadedIsUnavailableAndTriedAgain) {
  auto nvml = Open("not_loaded");
  EXPECT_EQ(nvml->Describe().status().code(), absl::StatusCode::kUnavailable);
  setenv("ASSAY_STUB_NVML", "", 1);
  EXPECT_TRUE(nvml->Describe().ok());
}

TEST(NvmlLibrary, NoLibraryIsNotFound) {
  NvmlLibrary nvml("libno-such-nvml.so.1");
  EXPECT_EQ(nvml.Describe().status().code(), absl::StatusCode::kNotFound);
}

TEST(NvmlLibrary, ALibraryThatIsNotNvmlIsAnErrorWithTheMissingSymbol) {
  NvmlLibrary nvml("libm.so.6");
  const auto status = nvml.Describe().status();
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("nvmlInit_v2"), absl::string_view::npos);
}

}  // namespace
}  // namespace assay
