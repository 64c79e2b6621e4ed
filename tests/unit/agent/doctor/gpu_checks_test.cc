// Driver, device nodes and GPUs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/agent/doctor/good_facts.h"

namespace assay {
namespace {

using testing::HasSubstr;

NvmlDevice& Gpu(Facts& facts, size_t index) { return facts.nvidia.nvml->devices[index]; }

TEST(GpuChecks, AGoodNodeIsGoodThroughout) {
  for (const DoctorCheck& check : Diagnose(GoodFacts()).checks) {
    EXPECT_EQ(check.state, CheckState::kOk) << check.name << ": " << check.finding;
    EXPECT_EQ(check.remedy, "") << check.name;
    EXPECT_NE(check.finding, "") << check.name;
  }
}

// Case 12: library and kernel module of two versions.
TEST(GpuChecks, AMismatchNamesTheModuleAndTheReboot) {
  Facts facts = GoodFacts();
  facts.nvidia.module_version = "575.57.08";
  facts.nvidia.nvml = absl::FailedPreconditionError("NVML: Driver/library version mismatch");
  facts.devices.clear();
  const DoctorCheck check = CheckNamed(facts, "driver");
  EXPECT_EQ(check.state, CheckState::kBad);
  EXPECT_THAT(check.finding, HasSubstr("575.57.08"));
  EXPECT_EQ(check.remedy, "sudo reboot");
}

TEST(GpuChecks, VersionsThatDifferAreAMismatchEvenWhereNvmlAnswers) {
  Facts facts = GoodFacts();
  facts.nvidia.module_version = "575.57.08";
  EXPECT_EQ(CheckNamed(facts, "driver").state, CheckState::kBad);
}

TEST(GpuChecks, AModuleThatIsNotShownIsNotSaidToAgree) {
  Facts facts = GoodFacts();
  facts.nvidia.module_version.clear();
  const DoctorCheck check = CheckNamed(facts, "driver");
  EXPECT_EQ(check.state, CheckState::kOk);
  EXPECT_EQ(check.finding, facts.nvidia.nvml->driver_version);
}

TEST(GpuChecks, ADriverThatHangsIsBadAndTheKernelIsAsked) {
  Facts facts = GoodFacts();
  facts.nvidia.nvml = absl::DeadlineExceededError("NVML did not answer within 15000 ms");
  const DoctorCheck check = CheckNamed(facts, "driver");
  EXPECT_EQ(check.state, CheckState::kBad);
  EXPECT_THAT(check.remedy, HasSubstr("dmesg"));
}

TEST(GpuChecks, NoGpuAndNoDriverIsNoFault) {
  Facts facts = GoodFacts();
  facts.nvidia = {};
  facts.nvidia.nvml = absl::NotFoundError("no NVIDIA management library");
  const DoctorCheck check = CheckNamed(facts, "driver");
  EXPECT_EQ(check.state, CheckState::kOk);
  EXPECT_THAT(check.finding, HasSubstr("the processor is the device"));
}

TEST(GpuChecks, AGpuWithoutADriverIsBad) {
  Facts facts = GoodFacts();
  facts.nvidia = {};
  facts.nvidia.pci_gpus = 1;
  facts.nvidia.nvml = absl::NotFoundError("no NVIDIA management library");
  const DoctorCheck check = CheckNamed(facts, "driver");
  EXPECT_EQ(check.state, CheckState::kBad);
  EXPECT_THAT(check.finding, HasSubstr("1 NVIDIA GPU on the PCI bus"));
  EXPECT_THAT(check.remedy, HasSubstr("nvidia-driver"));
}

TEST(GpuChecks, AModuleWithoutItsLibraryIsBad) {
  Facts facts = GoodFacts();
  facts.nvidia.nvml = absl::NotFoundError("no NVIDIA management library");
  const DoctorCheck check = CheckNamed(facts, "driver");
  EXPECT_EQ(check.state, CheckState::kBad);
  EXPECT_THAT(check.finding, HasSubstr("--gpus all"));
}

TEST(GpuChecks, AMissingDeviceNodeIsBad) {
  Facts facts = GoodFacts();
  facts.nvidia.nodes[1].exists = false;
  const DoctorCheck check = CheckNamed(facts, "device-nodes");
  EXPECT_EQ(check.state, CheckState::kBad);
  EXPECT_THAT(check.finding, HasSubstr("/dev/nvidia-uvm is missing"));
  EXPECT_THAT(check.remedy, HasSubstr("nvidia-modprobe"));
}

TEST(GpuChecks, NodesWithoutAnyCardAreBad) {
  Facts facts = GoodFacts();
  facts.nvidia.nodes.resize(2);
  EXPECT_THAT(CheckNamed(facts, "device-nodes").finding, HasSubstr("/dev/nvidia0 is missing"));
}

TEST(GpuChecks, ANodeOfAGroupSaysHowToJoinIt) {
  Facts facts = GoodFacts();
  facts.nvidia.nodes[2] = {"/dev/nvidia0", true, false, 0660, 44};
  const DoctorCheck check = CheckNamed(facts, "device-nodes");
  EXPECT_EQ(check.state, CheckState::kBad);
  EXPECT_THAT(check.remedy, HasSubstr("usermod -aG"));
  facts.nvidia.nodes[2] = {"/dev/nvidia0", true, false, 0600, 0};
  EXPECT_EQ(CheckNamed(facts, "device-nodes").remedy, "sudo chmod 666 /dev/nvidia0");
}

TEST(GpuChecks, FewerGpusThanOnTheBusIsAWarning) {
  Facts facts = GoodFacts();
  facts.nvidia.pci_gpus = 8;
  const DoctorCheck check = CheckNamed(facts, "gpus");
  EXPECT_EQ(check.state, CheckState::kWarning);
  EXPECT_THAT(check.finding, HasSubstr("2 GPUs"));
  EXPECT_THAT(check.finding, HasSubstr("8"));
}

// Case 14: a GPU that fell off the bus.
TEST(GpuChecks, ALostGpuIsBad) {
  Facts facts = GoodFacts();
  Gpu(facts, 1) = NvmlDevice();
  Gpu(facts, 1).faults = {"NVML: opening GPU 1: GPU is lost (code 15)"};
  const DoctorCheck check = CheckNamed(facts, "gpus");
  EXPECT_EQ(check.state, CheckState::kBad);
  EXPECT_THAT(check.finding, HasSubstr("GPU is lost"));
}

TEST(GpuChecks, NoDeviceThatIsOfferedIsBadAndFewerIsAWarning) {
  Facts facts = GoodFacts();
  facts.devices.pop_back();
  facts.device_warnings = {"CUDA_VISIBLE_DEVICES names '7', which is no GPU of this node"};
  DoctorCheck check = CheckNamed(facts, "offered");
  EXPECT_EQ(check.state, CheckState::kWarning);
  EXPECT_THAT(check.finding, HasSubstr("1 of 2 devices"));
  EXPECT_THAT(check.finding, HasSubstr("names '7'"));
  facts.devices.clear();
  check = CheckNamed(facts, "offered");
  EXPECT_EQ(check.state, CheckState::kBad);
  EXPECT_THAT(check.remedy, HasSubstr("CUDA_VISIBLE_DEVICES"));
}

TEST(GpuChecks, PersistenceModeOffIsAWarningForTheGpusThatHaveItOff) {
  Facts facts = GoodFacts();
  Gpu(facts, 1).persistence = false;
  const DoctorCheck check = CheckNamed(facts, "persistence");
  EXPECT_EQ(check.state, CheckState::kWarning);
  EXPECT_THAT(check.finding, HasSubstr("off on GPU 1:"));
  EXPECT_EQ(check.remedy, "sudo nvidia-smi -pm 1");
  Gpu(facts, 0).persistence = Gpu(facts, 1).persistence = std::nullopt;
  EXPECT_EQ(CheckNamed(facts, "persistence").state, CheckState::kUnknown);
}

TEST(GpuChecks, APowerLimitBelowTheDefaultIsAWarningWithTheCommandForEach) {
  Facts facts = GoodFacts();
  Gpu(facts, 0).power_limits = {500, 700};
  Gpu(facts, 1).power_limits = {350, 700};
  const DoctorCheck check = CheckNamed(facts, "power-limit");
  EXPECT_EQ(check.state, CheckState::kWarning);
  EXPECT_THAT(check.finding, HasSubstr("GPU 0 500 W of 700 W and GPU 1 350 W of 700 W"));
  EXPECT_EQ(check.remedy, "sudo nvidia-smi -i 0 -pl 700 && sudo nvidia-smi -i 1 -pl 700");
}

TEST(GpuChecks, APowerLimitAboveOrAtTheDefaultIsGood) {
  Facts facts = GoodFacts();
  Gpu(facts, 0).power_limits = {720, 700};
  EXPECT_EQ(CheckNamed(facts, "power-limit").state, CheckState::kOk);
}

TEST(GpuChecks, ARemapThatWaitsIsAWarningAndOneThatFailedIsBad) {
  Facts facts = GoodFacts();
  Gpu(facts, 1).remap_pending = true;
  DoctorCheck check = CheckNamed(facts, "memory-errors");
  EXPECT_EQ(check.state, CheckState::kWarning);
  EXPECT_EQ(check.remedy, "sudo nvidia-smi -i 1 -r");
  Gpu(facts, 0).remap_failed = true;
  check = CheckNamed(facts, "memory-errors");
  EXPECT_EQ(check.state, CheckState::kBad);
  EXPECT_THAT(check.finding, HasSubstr("GPU 0"));
}

TEST(GpuChecks, UncorrectedEccErrorsAreCounted) {
  Facts facts = GoodFacts();
  Gpu(facts, 1).ecc_uncorrected_volatile = 3;
  const DoctorCheck check = CheckNamed(facts, "memory-errors");
  EXPECT_EQ(check.state, CheckState::kWarning);
  EXPECT_THAT(check.finding, HasSubstr("GPU 1 3"));
}

TEST(GpuChecks, FewerLanesThanTheCardHasAreAWarning) {
  Facts facts = GoodFacts();
  Gpu(facts, 0).pcie_width = 4;
  EXPECT_THAT(CheckNamed(facts, "pcie").finding, HasSubstr("GPU 0 x4 of x16"));
  EXPECT_EQ(CheckNamed(facts, "pcie").state, CheckState::kWarning);
}

// Case 8.
TEST(GpuChecks, MigWithoutASliceIsBadAndWithSlicesIsGood) {
  Facts facts = GoodFacts();
  Gpu(facts, 0).mig_enabled = true;
  DoctorCheck check = CheckNamed(facts, "mig");
  EXPECT_EQ(check.state, CheckState::kBad);
  EXPECT_EQ(check.remedy, "sudo nvidia-smi -i 0 -mig 0");
  Gpu(facts, 0).slices.resize(7);
  check = CheckNamed(facts, "mig");
  EXPECT_EQ(check.state, CheckState::kOk);
  EXPECT_THAT(check.finding, HasSubstr("7 slices"));
}

TEST(GpuChecks, ProcessesOfOthersAreNamedAndOursAreNoFault) {
  Facts facts = GoodFacts();
  facts.nvidia.use["GPU-1"].processes = std::vector<GpuProcess>{{4242, "python3", false}};
  DoctorCheck check = CheckNamed(facts, "gpu-processes");
  EXPECT_EQ(check.state, CheckState::kWarning);
  EXPECT_THAT(check.finding, HasSubstr("python3 (pid 4242) on GPU 1"));
  facts.nvidia.use["GPU-1"].processes = std::vector<GpuProcess>{{4242, "assay-train", true}};
  EXPECT_EQ(CheckNamed(facts, "gpu-processes").state, CheckState::kOk);
}

TEST(GpuChecks, MemoryThatNobodyOwnsIsAWarning) {
  Facts facts = GoodFacts();
  facts.nvidia.use["GPU-0"].memory_used_bytes = uint64_t{3} << 30;
  const DoctorCheck check = CheckNamed(facts, "gpu-processes");
  EXPECT_EQ(check.state, CheckState::kWarning);
  EXPECT_THAT(check.finding, HasSubstr("3.00 GiB on GPU 0"));
}

TEST(GpuChecks, WithoutAListOfProcessesItIsNotKnown) {
  Facts facts = GoodFacts();
  for (auto& [uuid, use] : facts.nvidia.use) use.processes = absl::UnimplementedError("no list");
  EXPECT_EQ(CheckNamed(facts, "gpu-processes").state, CheckState::kUnknown);
}

}  // namespace
}  // namespace assay
