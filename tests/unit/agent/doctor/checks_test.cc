// Stacks, network, storage and host.
#include "agent/doctor/checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/doctor/findings.h"
#include "tests/unit/agent/doctor/good_facts.h"

namespace assay {
namespace {

using testing::HasSubstr;

TEST(Checks, AStackSaysItsVersionsInTheOrderInWhichPeopleAsk) {
  EXPECT_EQ(CheckNamed(GoodFacts(), "stack libtorch-2.11.0").finding,
            "assay-train: LibTorch 2.11.0, CUDA 13.0, cuDNN 9.19, NCCL 2.28.9");
  EXPECT_EQ(CheckNamed(GoodFacts(), "card H200").finding, "served by libtorch-2.11.0");
}

TEST(Checks, AStackThatDoesNotStartIsBadWithItsProgram) {
  Facts facts = GoodFacts();
  facts.stacks[0].unusable_reason = "libtorch_cpu.so: cannot open shared object file";
  facts.stack_programs["libtorch-2.11.0"] = "/opt/it's here/assay-train";
  const DoctorCheck check = CheckNamed(facts, "stack libtorch-2.11.0");
  EXPECT_EQ(check.state, CheckState::kBad);
  EXPECT_THAT(check.finding, HasSubstr("libtorch_cpu.so"));
  EXPECT_EQ(check.remedy, "'/opt/it'\\''s here/assay-train' --stack-info");
  EXPECT_EQ(CheckNamed(facts, "card H200").state, CheckState::kBad);
}

// Case 11: CUDA 13 wants driver 580.
TEST(Checks, ADriverTooOldForTheStackLeavesTheCardUnserved) {
  Facts facts = GoodFacts();
  for (Device& device : facts.devices) device.driver_version = "535.54.03";
  EXPECT_EQ(CheckNamed(facts, "stack libtorch-2.11.0").state, CheckState::kWarning);
  const DoctorCheck card = CheckNamed(facts, "card H200");
  EXPECT_EQ(card.state, CheckState::kBad);
  EXPECT_THAT(card.finding, HasSubstr("needs driver 580.65.06 or later"));
}

TEST(Checks, ACardThatTheStackHasNoCodeForIsServedByAnother) {
  Facts facts = GoodFacts();
  facts.devices[1].raw_name = "NVIDIA GeForce GTX 1080 Ti";
  facts.devices[1].memory_total_bytes = uint64_t{11} << 30;
  facts.devices[1].cc_major = 6;
  facts.devices[1].cc_minor = 1;
  Stack old = GoodStack();
  old.name = "libtorch-2.7.1";
  old.versions["cuda"] = "12.6";
  old.arch_list = {"sm_61", "sm_90"};
  facts.stacks.push_back(old);
  EXPECT_THAT(CheckNamed(facts, "stack libtorch-2.11.0").finding,
              HasSubstr("GTX 1080 Ti has compute capability 6.1"));
  EXPECT_EQ(CheckNamed(facts, "card GTX 1080 Ti").finding, "served by libtorch-2.7.1");
}

TEST(Checks, NoManifestIsBad) {
  Facts facts = GoodFacts();
  facts.stacks.clear();
  facts.stack_warnings = {"no stacks: /opt/my stacks holds no manifest"};
  facts.stacks_dir = "/opt/my stacks";
  const DoctorCheck check = CheckNamed(facts, "stacks");
  EXPECT_EQ(check.state, CheckState::kBad);
  EXPECT_EQ(check.remedy, "ls '/opt/my stacks'");
}

TEST(Checks, BesideACellNoProgramWasAsked) {
  Facts facts = GoodFacts();
  facts.measuring = true;
  facts.stacks.clear();
  facts.mpirun.version.clear();
  EXPECT_EQ(CheckNamed(facts, "stacks").state, CheckState::kUnknown);
  EXPECT_EQ(CheckNamed(facts, "mpirun").state, CheckState::kUnknown);
  EXPECT_EQ(Diagnose(facts).Worst(), CheckState::kUnknown);
}

TEST(Checks, MpirunIsMissedWhereThereAreSeveralGpus) {
  Facts facts = GoodFacts();
  facts.mpirun = {};
  EXPECT_EQ(CheckNamed(facts, "mpirun").state, CheckState::kWarning);
  facts.devices.pop_back();
  EXPECT_EQ(CheckNamed(facts, "mpirun").state, CheckState::kOk);
  facts.mpirun = {"/usr/bin/mpirun", "", "mpirun --version ended with signal 11"};
  EXPECT_EQ(CheckNamed(facts, "mpirun").state, CheckState::kWarning);
}

TEST(Checks, InterfacesThatAreSlowDownOrNarrowAreWarnedOf) {
  Facts facts = GoodFacts();
  facts.interfaces[1].speed_megabits = 100;
  EXPECT_THAT(CheckNamed(facts, "interfaces").finding, HasSubstr("eth0 runs at 100 Mb/s"));
  facts.interfaces[1] = {"eth0", false, false, {"10.0.0.7"}, 0, 1500, ""};
  EXPECT_THAT(CheckNamed(facts, "interfaces").finding, HasSubstr("eth0 has no link"));
  facts.interfaces[1].bridge = true;
  EXPECT_EQ(CheckNamed(facts, "interfaces").state, CheckState::kOk);
  facts.interfaces[1] = {"eth0", false, true, {"10.0.0.7"}, 0, 1000, ""};
  const DoctorCheck check = CheckNamed(facts, "interfaces");
  EXPECT_THAT(check.finding, HasSubstr("eth0 has MTU 1000"));
  EXPECT_EQ(check.state, CheckState::kWarning);
  EXPECT_EQ(check.remedy, "ip -s link show eth0");
}

TEST(Checks, TheLoopbackAloneIsEnoughAndItsAbsenceIsBad) {
  Facts facts = GoodFacts();
  facts.interfaces.pop_back();
  EXPECT_EQ(CheckNamed(facts, "interfaces").state, CheckState::kOk);
  facts.interfaces[0].addresses.clear();
  EXPECT_EQ(CheckNamed(facts, "interfaces").state, CheckState::kBad);
  EXPECT_EQ(CheckNamed(facts, "ports").state, CheckState::kUnknown);
}

TEST(Checks, APortThatCannotBeBoundIsBad) {
  Facts facts = GoodFacts();
  facts.interfaces[1].bind_error = "10.0.0.7: Address already in use";
  const DoctorCheck check = CheckNamed(facts, "ports");
  EXPECT_EQ(check.state, CheckState::kBad);
  EXPECT_THAT(check.finding, HasSubstr("eth0 (10.0.0.7: Address already in use)"));
}

TEST(Checks, TheDiskHasTwoThresholds) {
  Facts facts = GoodFacts();
  const auto at = [&](uint64_t bytes) {
    facts.state.free_bytes = bytes;
    return CheckNamed(facts, "disk").state;
  };
  EXPECT_EQ(at(kLowFreeBytes), CheckState::kOk);
  EXPECT_EQ(at(kLowFreeBytes - 1), CheckState::kWarning);
  EXPECT_EQ(at(kBadFreeBytes), CheckState::kWarning);
  EXPECT_EQ(at(kBadFreeBytes - 1), CheckState::kBad);
  facts.state.free_bytes = std::nullopt;
  EXPECT_EQ(CheckNamed(facts, "disk").state, CheckState::kUnknown);
}

TEST(Checks, ADiskWithoutInodesIsBad) {
  Facts facts = GoodFacts();
  facts.state.free_files = 0;
  EXPECT_EQ(CheckNamed(facts, "disk").state, CheckState::kBad);
  facts.state.free_files = std::nullopt;  // btrfs has none to count
  EXPECT_EQ(CheckNamed(facts, "disk").state, CheckState::kOk);
}

TEST(Checks, AStateDirectoryOverTheNetworkIsBad) {
  Facts facts = GoodFacts();
  for (const char* type : {"nfs", "nfs4", "cifs", "lustre", "fuse.sshfs"}) {
    facts.state.file_type = type;
    EXPECT_EQ(CheckNamed(facts, "state-dir").state, CheckState::kBad) << type;
  }
  for (const char* type : {"fuse.mergerfs", "tmpfs"}) {
    facts.state.file_type = type;
    EXPECT_EQ(CheckNamed(facts, "state-dir").state, CheckState::kWarning) << type;
  }
}

TEST(Checks, AStateDirectoryThatCannotBeWrittenIsBad) {
  Facts facts = GoodFacts();
  facts.state.error = "Read-only file system";
  const DoctorCheck check = CheckNamed(facts, "state-dir");
  EXPECT_EQ(check.state, CheckState::kBad);
  EXPECT_THAT(check.finding, HasSubstr("Read-only file system"));
  facts.state.path.clear();
  facts.state.error = "no state directory: set HOME";
  EXPECT_EQ(CheckNamed(facts, "state-dir").finding, "no state directory: set HOME");
}

// Case 20.
TEST(Checks, SharedMemoryIsBadOnlyWhereSeveralGpusNeedIt) {
  Facts facts = GoodFacts();
  facts.shm_bytes = facts.shm_free_bytes = kBadShmBytes - 1;
  EXPECT_EQ(CheckNamed(facts, "shared-memory").state, CheckState::kBad);
  EXPECT_THAT(CheckNamed(facts, "shared-memory").remedy, HasSubstr("--shm-size"));
  facts.shm_bytes = facts.shm_free_bytes = kBadShmBytes;
  EXPECT_EQ(CheckNamed(facts, "shared-memory").state, CheckState::kWarning);
  facts.shm_bytes = kBadShmBytes - 1;
  facts.devices.pop_back();
  EXPECT_EQ(CheckNamed(facts, "shared-memory").state, CheckState::kWarning);
}

TEST(Checks, SharedMemoryThatIsFullCountsAsWhatIsFree) {
  Facts facts = GoodFacts();
  facts.shm_free_bytes = 1000;
  EXPECT_EQ(CheckNamed(facts, "shared-memory").state, CheckState::kBad);
}

TEST(Checks, LocksThatCannotBeTakenAreBad) {
  Facts facts = GoodFacts();
  facts.locks.error = "/tmp/assay-gpu-locks/GPU-0.lock: Permission denied";
  const DoctorCheck check = CheckNamed(facts, "device-locks");
  EXPECT_EQ(check.state, CheckState::kBad);
  EXPECT_THAT(check.finding, HasSubstr("GPU-0.lock: Permission denied"));
}

TEST(Checks, AClockWithoutNtpIsAWarning) {
  Facts facts = GoodFacts();
  facts.clock.synchronised = false;
  EXPECT_EQ(CheckNamed(facts, "clock").state, CheckState::kWarning);
  facts.clock = {"", true, 3.0};
  EXPECT_EQ(CheckNamed(facts, "clock").state, CheckState::kWarning);
  facts.clock = {"Operation not permitted", false, 0};
  EXPECT_EQ(CheckNamed(facts, "clock").state, CheckState::kUnknown);
}

TEST(Checks, LimitsAreJudgedByWhatNeedsThem) {
  Facts facts = GoodFacts();
  facts.limits.open_files = 256;
  EXPECT_EQ(CheckNamed(facts, "open-files").state, CheckState::kWarning);
  facts.limits.locked_bytes = uint64_t{8} << 20;
  EXPECT_EQ(CheckNamed(facts, "locked-memory").state, CheckState::kWarning);
  facts.limits.infiniband = false;
  EXPECT_EQ(CheckNamed(facts, "locked-memory").state, CheckState::kOk);
}

TEST(Checks, AQuotaOfTheCgroupIsAWarningWithHowOftenItBit) {
  Facts facts = GoodFacts();
  facts.cpu.quota = 2.5;
  facts.cpu.throttled_count = 17;
  const DoctorCheck check = CheckNamed(facts, "processors");
  EXPECT_EQ(check.state, CheckState::kWarning);
  EXPECT_THAT(check.finding, HasSubstr("grants the time of 2.5 and has stopped it 17 times"));
  facts.cpu.quota = 64;
  EXPECT_EQ(CheckNamed(facts, "processors").state, CheckState::kOk);
}

TEST(Checks, FewerProcessorsThanGpusIsAWarning) {
  Facts facts = GoodFacts();
  facts.cpu.allowed = "3";
  facts.cpu.allowed_count = 1;
  const DoctorCheck check = CheckNamed(facts, "processors");
  EXPECT_EQ(check.state, CheckState::kWarning);
  EXPECT_THAT(check.finding, HasSubstr("1 of them for this process (3)"));
}

TEST(Checks, AGovernorThatFollowsTheLoadIsAWarning) {
  Facts facts = GoodFacts();
  facts.cpu.governors = {{"performance", 60}, {"powersave", 4}};
  const DoctorCheck check = CheckNamed(facts, "governor");
  EXPECT_EQ(check.state, CheckState::kWarning);
  EXPECT_THAT(check.remedy, HasSubstr("cpupower"));
  facts.cpu.governors.clear();
  EXPECT_EQ(CheckNamed(facts, "governor").state, CheckState::kOk);
}

TEST(Checks, APathInARemedyIsOneWordOfAShell) {
  Facts facts = GoodFacts();
  facts.state.nearest = "/my disk";
  facts.state.free_bytes = 1;
  EXPECT_EQ(CheckNamed(facts, "disk").remedy, "df -h '/my disk'");
}

}  // namespace
}  // namespace assay
