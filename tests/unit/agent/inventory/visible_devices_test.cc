#include "agent/inventory/visible_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/inventory/gpu_devices.h"
#include "agent/telemetry/fake_nvml.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Device Gpu(int index, const std::string& uuid, const std::string& name = "RTX 3090") {
  Device device;
  device.uuid = uuid;
  device.raw_name = name;
  device.physical_index = index;
  return device;
}

std::vector<Device> Four() {
  return {Gpu(0, "GPU-aaaa"), Gpu(1, "GPU-bbbb"), Gpu(2, "GPU-cccc"), Gpu(3, "GPU-dddd")};
}

std::vector<std::string> Uuids(const VisibleDevices& visible) {
  std::vector<std::string> uuids;
  for (const Device& device : visible.devices) uuids.push_back(device.uuid);
  return uuids;
}

TEST(VisibleDevices, AllWithoutALimit) {
  const auto visible = FilterVisible(Four(), {}, {});
  EXPECT_EQ(visible.devices.size(), 4u);
  EXPECT_THAT(visible.warnings, IsEmpty());
}

// Case 11: one GPU, its physical index 3 kept.
TEST(VisibleDevices, CudaVisibleDevicesByNumberKeepsThePhysicalIndex) {
  const auto visible = FilterVisible(Four(), {{"CUDA_VISIBLE_DEVICES", "3"}}, {});
  ASSERT_THAT(Uuids(visible), ElementsAre("GPU-dddd"));
  EXPECT_EQ(visible.devices[0].physical_index, 3);
}

TEST(VisibleDevices, CudaVisibleDevicesByUniqueBeginning) {
  EXPECT_THAT(Uuids(FilterVisible(Four(), {{"CUDA_VISIBLE_DEVICES", "GPU-bb,GPU-aaaa"}}, {})),
              ElementsAre("GPU-aaaa", "GPU-bbbb"));
}

TEST(VisibleDevices, NothingAfterAnInvalidEntryAsCudaReadsIt) {
  const auto visible = FilterVisible(Four(), {{"CUDA_VISIBLE_DEVICES", "1,9,2"}}, {});
  EXPECT_THAT(Uuids(visible), ElementsAre("GPU-bbbb"));
  EXPECT_THAT(visible.warnings, ElementsAre(HasSubstr("'9'")));
}

TEST(VisibleDevices, EmptyCudaVisibleDevicesOffersNoneAndSaysSo) {
  const auto visible = FilterVisible(Four(), {{"CUDA_VISIBLE_DEVICES", ""}}, {});
  EXPECT_THAT(visible.devices, IsEmpty());
  EXPECT_THAT(visible.warnings, ElementsAre(HasSubstr("CUDA_VISIBLE_DEVICES")));
}

// Case 10: the same GPU twice is refused, by its UUID.
TEST(VisibleDevices, AGpuNamedTwiceIsRefusedWithItsUuid) {
  for (const char* list : {"0,0", "GPU-aaaa,0", "GPU-aa,GPU-aaaa"}) {
    const auto visible = FilterVisible(Four(), {{"CUDA_VISIBLE_DEVICES", list}}, {});
    EXPECT_THAT(visible.devices, IsEmpty()) << list;
    EXPECT_THAT(visible.warnings, ElementsAre(HasSubstr("GPU-aaaa twice"))) << list;
  }
}

// Case 7: a number is ambiguous where cards differ.
TEST(VisibleDevices, NumbersOnAMixedNodeArePciOrderWithAWarning) {
  const std::vector<Device> mixed = {Gpu(0, "GPU-1080", "GTX 1080 Ti"), Gpu(1, "GPU-3090")};
  const auto visible = FilterVisible(mixed, {{"CUDA_VISIBLE_DEVICES", "0"}}, {});
  EXPECT_THAT(Uuids(visible), ElementsAre("GPU-1080"));
  EXPECT_THAT(visible.warnings, ElementsAre(HasSubstr("PCI_BUS_ID")));
  EXPECT_THAT(
      FilterVisible(mixed, {{"CUDA_VISIBLE_DEVICES", "0"}, {"CUDA_DEVICE_ORDER", "PCI_BUS_ID"}}, {})
          .warnings,
      IsEmpty());
}

// Case 15: an allow list of one on a node of three.
TEST(VisibleDevices, OnlyListedGpusAreOffered) {
  const std::vector<Device> three = {Gpu(0, "GPU-v100a"), Gpu(1, "GPU-v100b"),
                                     Gpu(2, "GPU-1080ti", "GTX 1080 Ti")};
  EXPECT_THAT(Uuids(FilterVisible(three, {}, {"GPU-v100b"})), ElementsAre("GPU-v100b"));
  EXPECT_THAT(Uuids(FilterVisible(three, {{"NVIDIA_VISIBLE_DEVICES", "GPU-v100a"}}, {})),
              ElementsAre("GPU-v100a"));
  EXPECT_EQ(FilterVisible(three, {{"NVIDIA_VISIBLE_DEVICES", "all"}}, {}).devices.size(), 3u);
  EXPECT_THAT(FilterVisible(three, {{"NVIDIA_VISIBLE_DEVICES", "none"}}, {}).devices, IsEmpty());
}

TEST(VisibleDevices, AnAllowedGpuThatIsNotThereIsAWarning) {
  const auto visible = FilterVisible(Four(), {}, {"GPU-gone", "GPU-aaaa"});
  EXPECT_THAT(Uuids(visible), ElementsAre("GPU-aaaa"));
  EXPECT_THAT(visible.warnings, ElementsAre(HasSubstr("GPU-gone")));
}

TEST(VisibleDevices, NumbersThatTheContainerToolkitAppliedAreNotAppliedTwice) {
  EXPECT_EQ(
      FilterVisible({Gpu(0, "GPU-dddd")}, {{"NVIDIA_VISIBLE_DEVICES", "3"}}, {}).devices.size(),
      1u);
}

// Case 8: CUDA_VISIBLE_DEVICES=MIG-... leaves the slice, and its parent in view only.
TEST(VisibleDevices, ASliceByUuidKeepsItsParentInView) {
  auto nvml = FakeNvml::Load(ASSAY_FIXTURES "/nvml/a100_mig.json");
  ASSERT_TRUE(nvml.ok());
  std::vector<std::string> warnings;
  const auto devices = GpuDevices(*(*nvml)->Describe(), false, "/none", warnings);
  const std::string slice = "MIG-feee0c61-26ec-5616-bb59-b6d777cc4f34";
  const auto visible = FilterVisible(devices, {{"CUDA_VISIBLE_DEVICES", slice}}, {});
  ASSERT_EQ(visible.devices.size(), 2u);
  EXPECT_FALSE(visible.devices[0].usable);
  EXPECT_EQ(visible.devices[1].uuid, slice);
}

}  // namespace
}  // namespace assay
