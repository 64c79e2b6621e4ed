#include "agent/inventory/local_inventory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/telemetry/fake_nvml.h"
#include "tests/unit/agent/host/folder.h"

namespace assay {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// As FakeNvml, but of this machine.
class LiveNvml final : public Nvml {
 public:
  explicit LiveNvml(absl::StatusOr<NvmlSystem> system) : system_(std::move(system)) {}
  absl::StatusOr<NvmlSystem> Describe() override { return system_; }
  absl::StatusOr<NvmlSample> Sample(const std::string&) override { return NvmlSample{}; }
  absl::StatusOr<NvmlState> State(const std::string&) override { return NvmlState{}; }
  absl::StatusOr<NvmlLink> Link(const std::string&) override { return NvmlLink{}; }
  absl::StatusOr<std::vector<int64_t>> Xids(const std::string&) override {
    return std::vector<int64_t>{};
  }
  absl::StatusOr<std::vector<int64_t>> ProcessIds(const std::string&) override {
    return std::vector<int64_t>{};
  }
  bool captured() const override { return false; }

 private:
  absl::StatusOr<NvmlSystem> system_;
};

class Node : public testing::Test {
 protected:
  Node() {
    root_.Write("proc/cpuinfo", "processor\t: 0\nmodel name\t: Some CPU\n");
    root_.Write("proc/meminfo", "MemTotal: 1024 kB\n");
    root_.Write("etc/machine-id", "0123456789abcdef0123456789abcdef\n");
    options_.node = "n1";
    options_.proc_root = root_.path() + "/proc";
    options_.sys_root = root_.path() + "/sys";
    options_.etc_root = root_.path() + "/etc";
    options_.shm_path = root_.path() + "/no-shm";
    options_.stacks_dir = root_.path() + "/stacks";
    std::filesystem::create_directories(options_.stacks_dir);
  }
  void WithDriver() { root_.Write("proc/driver/nvidia/version", "NVRM version: 535"); }
  NodeInventory Collect(Nvml* nvml) { return LocalInventory(options_, nvml).Collect(); }
  static NvmlSystem Gpus(int count) {
    NvmlSystem system;
    for (int i = 0; i < count; ++i) {
      NvmlDevice gpu;
      gpu.uuid = "GPU-" + std::to_string(i);
      gpu.index = i;
      system.devices.push_back(gpu);
    }
    return system;
  }

  Folder root_;
  InventoryOptions options_;
};

TEST_F(Node, WithoutADriverTheProcessorIsTheOneDevice) {
  LiveNvml nvml(absl::NotFoundError("libnvidia-ml.so.1: cannot open"));
  const NodeInventory node = Collect(&nvml);
  ASSERT_EQ(node.devices.size(), 1u);
  EXPECT_EQ(node.devices[0].kind, "cpu");
  EXPECT_EQ(node.devices[0].raw_name, "Some CPU");
  EXPECT_EQ(node.devices[0].memory_total_bytes, 1024u * 1024);
  EXPECT_EQ(node.devices[0].uuid.size(), 4u + 32u);
  EXPECT_THAT(node.devices[0].uuid, Not(HasSubstr("0123456789abcdef0123456789abcdef")));
  EXPECT_FALSE(node.devices[0].simulated);
  EXPECT_THAT(node.warnings, Not(Contains(HasSubstr("degraded"))));
}

// Case 39: shown degraded with NVML's text, not as a node without GPUs that is fine, and not as a
// processor.
TEST_F(Node, ASickDriverIsDegradedAndOffersNothing) {
  WithDriver();
  for (const absl::Status& status :
       {absl::FailedPreconditionError("NVML: LIB_RM_VERSION_MISMATCH"),
        absl::DeadlineExceededError("NVML did not answer within 15000 ms"),
        absl::NotFoundError("libnvidia-ml.so.1: cannot open"),
        absl::UnavailableError("Driver Not Loaded")}) {
    LiveNvml nvml(status);
    const NodeInventory node = Collect(&nvml);
    EXPECT_THAT(node.devices, IsEmpty()) << status;
    EXPECT_THAT(node.warnings, Contains(testing::AllOf(HasSubstr("degraded"),
                                                       HasSubstr(std::string(status.message())))));
  }
}

TEST_F(Node, ALibraryWithoutADriverIsAProcessorWithAWarning) {
  LiveNvml nvml(absl::UnavailableError("Driver Not Loaded"));
  const NodeInventory node = Collect(&nvml);
  ASSERT_EQ(node.devices.size(), 1u);
  EXPECT_EQ(node.devices[0].kind, "cpu");
  EXPECT_THAT(node.warnings, Contains(HasSubstr("Driver Not Loaded")));
}

// Case 39, with the captured driver.
TEST_F(Node, TheMismatchFixtureIsDegraded) {
  auto nvml = FakeNvml::Load(ASSAY_FIXTURES "/nvml/driver_mismatch.json");
  ASSERT_TRUE(nvml.ok());
  const NodeInventory node = Collect(nvml->get());
  EXPECT_THAT(node.devices, IsEmpty());
  EXPECT_THAT(node.warnings, Contains(HasSubstr("LIB_RM_VERSION_MISMATCH")));
}

TEST_F(Node, CapturedDevicesAreSimulatedAndTheEnvironmentIsNotApplied) {
  auto nvml = FakeNvml::Load(ASSAY_FIXTURES "/nvml/rtx3090_x2.json");
  ASSERT_TRUE(nvml.ok());
  options_.environment = {{"CUDA_VISIBLE_DEVICES", ""}};
  const NodeInventory node = Collect(nvml->get());
  ASSERT_EQ(node.devices.size(), 2u);
  EXPECT_TRUE(node.devices[0].simulated && node.devices[1].simulated);
}

// Case 15, through the operator's list.
TEST_F(Node, OnlyAllowedGpusAreInventoried) {
  LiveNvml nvml(Gpus(3));
  options_.devices = "GPU-1";
  const NodeInventory node = Collect(&nvml);
  ASSERT_EQ(node.devices.size(), 1u);
  EXPECT_EQ(node.devices[0].uuid, "GPU-1");
  EXPECT_EQ(node.devices[0].physical_index, 1);
}

TEST_F(Node, DevicesCpuLeavesGpusAlone) {
  LiveNvml nvml(Gpus(2));
  options_.devices = "cpu";
  const NodeInventory node = Collect(&nvml);
  ASSERT_EQ(node.devices.size(), 1u);
  EXPECT_EQ(node.devices[0].kind, "cpu");
}

// Case 24.
TEST_F(Node, ASmallShmIsAWarningWithSeveralGpusOnly) {
  options_.shm_path = "/proc";  // a file system of no bytes
  LiveNvml two(Gpus(2)), one(Gpus(1));
  EXPECT_THAT(Collect(&two).warnings, Contains(HasSubstr("--shm-size")));
  EXPECT_THAT(Collect(&one).warnings, Not(Contains(HasSubstr("--shm-size"))));
}

// Case 44: a GPU that failed once is there again at the next look.
TEST_F(Node, ADriverThatRecoversOffersItsGpusAgain) {
  FakeNvml nvml(Gpus(3));
  LocalInventory inventory(options_, &nvml);
  nvml.Fail(absl::InternalError("NVML: Unknown Error"));
  EXPECT_THAT(inventory.Collect().devices, IsEmpty());
  nvml.Fail(absl::OkStatus());
  EXPECT_EQ(inventory.Collect().devices.size(), 3u);
}

}  // namespace
}  // namespace assay
