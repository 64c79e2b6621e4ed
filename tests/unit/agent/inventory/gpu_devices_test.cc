#include "agent/inventory/gpu_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/telemetry/fake_nvml.h"
#include "common/text/utf8.h"

namespace assay {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<Device> Of(const std::string& fixture) {
  auto nvml = FakeNvml::Load(ASSAY_FIXTURES "/nvml/" + fixture + ".json");
  if (!nvml.ok()) return {};
  std::vector<std::string> warnings;
  return GpuDevices(*(*nvml)->Describe(), false, "/none", warnings);
}

// Case 5: the raw MiB of each node are kept; grouping is the catalogue's.
TEST(GpuDevices, MemoryIsKeptAsTheDriverSaysIt) {
  EXPECT_EQ(Of("rtx3090")[0].memory_total_bytes, uint64_t{24576} << 20);
  EXPECT_EQ(Of("rtx3090_24265")[0].memory_total_bytes, uint64_t{24265} << 20);
}

TEST(GpuDevices, KeepsWhatTellsCardsApart) {
  const Device gpu = Of("h200")[0];
  EXPECT_EQ(gpu.raw_name, "NVIDIA H200");
  EXPECT_EQ(gpu.cc_major, 9);
  EXPECT_EQ(gpu.sm_count, 132);
  EXPECT_EQ(gpu.pci_bus_id, "00000000:19:00.0");
  EXPECT_EQ(gpu.driver_version, "580.65.06");
  EXPECT_EQ(gpu.numa_node, -1);
  EXPECT_TRUE(gpu.usable);
}

// Case 7.
TEST(GpuDevices, OrderIsPciOrderAndEachHasItsOwnUuid) {
  const auto devices = Of("rtx3090_gtx1080ti");
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(devices[0].raw_name, "NVIDIA GeForce GTX 1080 Ti");
  EXPECT_EQ(devices[0].physical_index, 0);
  EXPECT_EQ(devices[1].raw_name, "NVIDIA GeForce RTX 3090");
  EXPECT_NE(devices[0].uuid, devices[1].uuid);
}

// Case 8.
TEST(GpuDevices, SlicesAreOfferedWithProfileAndOwnMemoryAndTheParentIsNot) {
  const auto devices = Of("a100_mig");
  ASSERT_EQ(devices.size(), 4u);
  EXPECT_EQ(devices[0].kind, "gpu");
  EXPECT_FALSE(devices[0].usable);
  EXPECT_THAT(devices[0].warnings, ElementsAre(HasSubstr("MIG is on")));
  for (size_t i = 1; i < 4; ++i) {
    EXPECT_EQ(devices[i].kind, "mig");
    EXPECT_TRUE(devices[i].usable);
    EXPECT_THAT(devices[i].raw_name, HasSubstr("MIG 1g.10gb"));
    EXPECT_EQ(devices[i].memory_total_bytes, uint64_t{9856} << 20);
    EXPECT_EQ(devices[i].sm_count, 14);
    EXPECT_EQ(devices[i].physical_index, 0);
    EXPECT_THAT(devices[i].warnings, IsEmpty());
  }
}

TEST(GpuDevices, ASliceWithItsParentsNameGetsItsProfile) {
  NvmlSystem system;
  NvmlDevice gpu;
  gpu.uuid = "GPU-1";
  gpu.mig_enabled = true;
  gpu.slices = {{"MIG-1", "NVIDIA A100-SXM4-40GB", "2g.10gb", 1, std::nullopt}};
  system.devices = {gpu};
  std::vector<std::string> warnings;
  EXPECT_EQ(GpuDevices(system, false, "/none", warnings)[1].raw_name,
            "NVIDIA A100-SXM4-40GB MIG 2g.10gb");
}

// Case 12: any name is kept, as valid UTF-8.
TEST(GpuDevices, OddNamesAreKeptAndScrubbed) {
  for (const std::string& name :
       {std::string("NVIDIA Graphics Device"), std::string("GRID V100DX-16Q"), std::string(),
        std::string(96, 'x'), std::string("a\"b,c\nd\xe2\x80\x94"), std::string("bad\xff\xc3name"),
        std::string("GeForce RTX 3080 Laptop GPU")}) {
    NvmlSystem system;
    NvmlDevice gpu;
    gpu.uuid = "GPU-1";
    gpu.name = name;
    system.devices = {gpu};
    std::vector<std::string> warnings;
    const auto devices = GpuDevices(system, false, "/none", warnings);
    ASSERT_EQ(devices.size(), 1u);
    EXPECT_TRUE(IsUtf8(devices[0].raw_name));
    EXPECT_EQ(devices[0].raw_name, ScrubUtf8(name));
    EXPECT_EQ(devices[0].cc_major, 0);
  }
}

// Case 34.
TEST(GpuDevices, ALoweredPowerLimitIsAWarning) {
  EXPECT_THAT(Of("rtx3090_gtx1080ti")[1].warnings,
              ElementsAre("power limit 315 W of 350 W: power limited 90 %"));
}

// Case 37.
TEST(GpuDevices, WhatIsNotSupportedIsNoWarningAndNoFigure) {
  const Device gpu = Of("geforce_no_power")[0];
  EXPECT_THAT(gpu.warnings, IsEmpty());
  EXPECT_TRUE(gpu.usable);
}

// Case 43.
TEST(GpuDevices, PendingRemapAndUncorrectedErrorsAreWarnings) {
  const Device gpu = Of("remap_pending")[0];
  EXPECT_THAT(gpu.warnings, Contains(HasSubstr("pending")));
  EXPECT_THAT(gpu.warnings, Contains(HasSubstr("5 uncorrected ECC errors")));
  EXPECT_TRUE(gpu.usable);
  EXPECT_THAT(Of("v100")[0].warnings, IsEmpty());  // counts of 0 are none
}

// Case 10.
TEST(GpuDevices, AUuidThatTheDriverGivesTwiceIsListedOnce) {
  NvmlSystem system;
  NvmlDevice gpu;
  gpu.uuid = "GPU-1";
  system.devices = {gpu, gpu};
  std::vector<std::string> warnings;
  EXPECT_EQ(GpuDevices(system, false, "/none", warnings).size(), 1u);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("GPU-1 twice")));
}

TEST(GpuDevices, AGpuThatCannotBeOpenedIsAWarningOfTheNode) {
  NvmlSystem system;
  NvmlDevice sick;
  sick.index = 1;
  sick.faults = {"NVML: opening GPU 1: GPU is lost (code 15)"};
  system.devices = {sick};
  std::vector<std::string> warnings;
  EXPECT_THAT(GpuDevices(system, false, "/none", warnings), IsEmpty());
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("GPU is lost")));
}

}  // namespace
}  // namespace assay
