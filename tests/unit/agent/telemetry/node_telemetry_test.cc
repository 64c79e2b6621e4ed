#include "agent/telemetry/node_telemetry.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "agent/telemetry/fake_nvml.h"

namespace assay {
namespace {

std::unique_ptr<FakeNvml> LoadFixture(const std::string& name) {
  auto nvml = FakeNvml::Load(ASSAY_FIXTURES "/nvml/" + name + ".json");
  return nvml.ok() ? *std::move(nvml) : nullptr;
}

Device Gpu(const std::string& uuid, const std::string& kind = "gpu") {
  Device device;
  device.uuid = uuid;
  device.kind = kind;
  device.memory_total_bytes = 1000;
  device.driver_version = "535.54.03";
  return device;
}

// A joined thread may stay in /proc for a moment: waits until there are `expected`, at most 10 s.
int Threads(int expected) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  for (;;) {
    int count = 0;
    for ([[maybe_unused]] const auto& t : std::filesystem::directory_iterator("/proc/self/task")) {
      ++count;
    }
    if (count == expected || std::chrono::steady_clock::now() > until) return count;
    std::this_thread::yield();
  }
}

// Until the sampler has gone round again, or ten seconds.
void AwaitSamples(const FakeNvml& nvml, int64_t more) {
  const int64_t from = nvml.samples_taken();
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (nvml.samples_taken() < from + more && std::chrono::steady_clock::now() < until) {
    std::this_thread::yield();
  }
}

TelemetryOptions Fast() { return {std::chrono::milliseconds(1), "/proc"}; }

TEST(NodeTelemetry, AGpuSessionKnowsItsFieldsByUuid) {
  auto nvml = LoadFixture("rtx3090_gtx1080ti");
  FakeClock clock;
  NodeTelemetry telemetry(nvml.get(), &clock, Fast());
  // Case 7: PCI order is [GTX 1080 Ti, RTX 3090]; the session is of the RTX 3090 by its UUID.
  const std::string uuid = nvml->Describe()->devices[1].uuid;
  NodeInventory inventory;
  inventory.devices = {Gpu(nvml->Describe()->devices[0].uuid), Gpu(uuid)};
  inventory.cpu_model = "AMD EPYC";
  inventory.agent_version = "0.1.0";
  telemetry.SetDevices(inventory);
  auto session = telemetry.Begin(std::vector<std::string>{uuid});
  session->WindowBegin();
  AwaitSamples(*nvml, 3);
  clock.Advance(std::chrono::seconds(1));
  session->WindowEnd();
  const Record record = session->Finish({});
  EXPECT_EQ(record.Number(Field::kPowerMeanWatts), 301);
  // Case 34: both limits.
  EXPECT_EQ(record.Number(Field::kPowerLimitWatts), 315);
  EXPECT_EQ(record.Number(Field::kPowerLimitDefaultWatts), 350);
  EXPECT_EQ(record.Integer(Field::kDeviceUsedBeforeBytes), 4 << 20);
  EXPECT_EQ(record.Integer(Field::kDeviceTotalBytes), 1000);
  EXPECT_EQ(record.Text(Field::kExclusive), "inferred");
  EXPECT_EQ(record.Text(Field::kDriverVersion), "535.54.03");
  EXPECT_EQ(record.Text(Field::kCpuModel), "AMD EPYC");
  EXPECT_FALSE(record.Has(Field::kEnergyJoules));  // a window of one second
}

// Case 55: the wall clock jumps by hours in mid-cell and changes nothing.
TEST(NodeTelemetry, AWallClockThatStepsChangesNoFigure) {
  auto nvml = LoadFixture("rtx3090");
  FakeClock clock;
  NodeTelemetry telemetry(nvml.get(), &clock, Fast());
  const std::string uuid = nvml->Describe()->devices[0].uuid;
  NodeInventory inventory;
  inventory.devices = {Gpu(uuid)};
  telemetry.SetDevices(inventory);
  auto session = telemetry.Begin(std::vector<std::string>{uuid});
  session->WindowBegin();
  AwaitSamples(*nvml, 2);
  clock.StepWall(-std::chrono::hours(1));
  clock.Advance(std::chrono::seconds(2));
  AwaitSamples(*nvml, 2);
  session->WindowEnd();
  clock.StepWall(std::chrono::hours(2));
  EXPECT_EQ(session->Finish({}).Number(Field::kPowerMeanWatts), 318.5);
}

// Case 8: the board's sensors are the parent's; a slice has its own memory only.
TEST(NodeTelemetry, ASliceHasNoPowerClockOrTemperature) {
  auto nvml = LoadFixture("a100_mig");
  const std::string slice = nvml->Describe()->devices[0].slices[0].uuid;
  NvmlSample parents;
  parents.power_watts = 88;
  parents.energy_joules = 1;
  parents.temperature_celsius = 40;
  parents.memory_used_bytes = 777;
  nvml->SetSample(slice, parents);
  FakeClock clock;
  NodeTelemetry telemetry(nvml.get(), &clock, Fast());
  NodeInventory inventory;
  inventory.devices = {Gpu(slice, "mig")};
  telemetry.SetDevices(inventory);
  auto session = telemetry.Begin(std::vector<std::string>{slice});
  session->WindowBegin();
  AwaitSamples(*nvml, 3);
  clock.Advance(std::chrono::seconds(100));
  session->WindowEnd();
  const Record record = session->Finish({});
  EXPECT_EQ(record.Integer(Field::kDeviceUsedBytes), 777);
  EXPECT_FALSE(record.Has(Field::kPowerMeanWatts));
  EXPECT_FALSE(record.Has(Field::kEnergyJoules));
  EXPECT_FALSE(record.Has(Field::kTemperatureMaxCelsius));
}

TEST(NodeTelemetry, AProcessorsMemoryIsTheLargestPeakOfARank) {
  FakeClock clock;
  NodeTelemetry telemetry(nullptr, &clock);
  NodeInventory inventory;
  inventory.devices = {Gpu("CPU-1", "cpu")};
  telemetry.SetDevices(inventory);
  auto session = telemetry.Begin(std::vector<std::string>{"CPU-1"});
  const std::vector<ProcessUsage> usage = {{100, 0, 0}, {300, 0, 0}, {200, 0, 0}};
  const Record record = session->Finish(usage);
  EXPECT_EQ(record.Integer(Field::kDeviceUsedBytes), 300);
  EXPECT_EQ(record.Integer(Field::kDeviceTotalBytes), 1000);
  EXPECT_FALSE(record.Has(Field::kExclusive));
}

// Every simulated cell once had the 4 MiB of the moment at which its card was captured.
TEST(NodeTelemetry, ACapturedReadingIsNoFigureOfASimulatedAttempt) {
  auto nvml = LoadFixture("rtx3090_gtx1080ti");
  FakeClock clock;
  NodeTelemetry telemetry(nvml.get(), &clock, Fast());
  NodeInventory inventory;
  inventory.devices = {Gpu(nvml->Describe()->devices[1].uuid)};
  inventory.devices[0].simulated = true;
  telemetry.SetDevices(inventory);
  auto session = telemetry.Begin(std::vector<std::string>{inventory.devices[0].uuid});
  session->WindowBegin();
  clock.Advance(std::chrono::seconds(100));
  session->WindowEnd();
  const Record record = session->Finish({});
  for (const Field field :
       {Field::kDeviceUsedBytes, Field::kDeviceUsedBeforeBytes, Field::kPowerMeanWatts,
        Field::kEnergyJoules, Field::kSmClockMeanHertz, Field::kTemperatureMaxCelsius,
        Field::kThrottleRatio, Field::kExclusive}) {
    EXPECT_FALSE(record.Has(field)) << InfoOf(field).name;
  }
  EXPECT_EQ(record.Number(Field::kPowerLimitWatts), 315);
  EXPECT_EQ(record.Number(Field::kPowerLimitDefaultWatts), 350);
  EXPECT_EQ(record.Integer(Field::kDeviceTotalBytes), 1000);
}

TEST(NodeTelemetry, AnUnknownDeviceLeavesFieldsNotKnown) {
  auto nvml = LoadFixture("rtx3090");
  FakeClock clock;
  NodeTelemetry telemetry(nvml.get(), &clock, Fast());
  auto session = telemetry.Begin(std::vector<std::string>{"GPU-gone"});
  session->WindowBegin();
  session->WindowEnd();
  const std::vector<ProcessUsage> usage = {{100, 0, 0}};
  EXPECT_EQ(session->Finish(usage), Record());
}

TEST(NodeTelemetry, AFailingDriverLeavesFieldsNotKnown) {
  auto nvml = LoadFixture("rtx3090");
  FakeClock clock;
  NodeTelemetry telemetry(nvml.get(), &clock, Fast());
  const std::string uuid = nvml->Describe()->devices[0].uuid;
  NodeInventory inventory;
  inventory.devices = {Gpu(uuid)};
  telemetry.SetDevices(inventory);
  nvml->Fail(absl::InternalError("GPU is lost"));
  auto session = telemetry.Begin(std::vector<std::string>{uuid});
  session->WindowBegin();
  session->WindowEnd();
  const Record record = session->Finish({});
  EXPECT_FALSE(record.Has(Field::kDeviceUsedBytes));
  EXPECT_FALSE(record.Has(Field::kPowerLimitWatts));
  EXPECT_EQ(record.Text(Field::kExclusive), "unknown");
}

// One GPU, `state` before and after.
Record Attempted(FakeNvml& nvml, const NvmlState& before, const NvmlState& after,
                 std::vector<DeviceFault>* faults, int64_t xid = 0) {
  FakeClock clock;
  NodeTelemetry telemetry(&nvml, &clock, Fast());
  const std::string uuid = nvml.Describe()->devices[0].uuid;
  NodeInventory inventory;
  inventory.devices = {Gpu(uuid)};
  telemetry.SetDevices(inventory);
  nvml.SetState(uuid, before);
  nvml.AddXid(uuid, 13);  // of before the attempt
  auto session = telemetry.Begin(std::vector<std::string>{uuid});
  AwaitSamples(nvml, 2);  // the reading before is done
  session->WindowBegin();
  AwaitSamples(nvml, 3);
  session->WindowEnd();
  nvml.SetState(uuid, after);
  if (xid != 0) nvml.AddXid(uuid, xid);
  const Record record = session->Finish({});
  *faults = session->Faults();
  return record;
}

NvmlState Healthy() {
  NvmlState state;
  state.ecc_enabled = true;
  state.persistence = true;
  state.ecc_corrected = 10;
  state.ecc_uncorrected = 2;
  state.remapped_rows = 1;
  state.remap_pending = false;
  state.pcie_generation_max = 5;
  state.pcie_width_max = 16;
  return state;
}

TEST(NodeTelemetry, HealthBeforeAndAfterIsRecordedAndSoundHealthIsNoFault) {
  auto nvml = LoadFixture("rtx3090");
  NvmlState after = Healthy();
  after.ecc_corrected = 15;  // corrected errors do not matter (case 43)
  nvml->SetLink(nvml->Describe()->devices[0].uuid, {4, 8});
  std::vector<DeviceFault> faults;
  const Record record = Attempted(*nvml, Healthy(), after, &faults);
  EXPECT_TRUE(faults.empty());
  EXPECT_EQ(record.Integer(Field::kEccCorrectedBefore), 10);
  EXPECT_EQ(record.Integer(Field::kEccCorrectedAfter), 15);
  EXPECT_EQ(record.Integer(Field::kEccUncorrectedBefore), 2);
  EXPECT_EQ(record.Integer(Field::kEccUncorrectedAfter), 2);
  EXPECT_EQ(record.Integer(Field::kRemappedRowsAfter), 1);
  EXPECT_EQ(record.Flag(Field::kRemapPending), false);
  EXPECT_EQ(record.Flag(Field::kPersistence), true);
  EXPECT_EQ(record.Integer(Field::kPcieGeneration), 4);
  EXPECT_EQ(record.Integer(Field::kPcieGenerationMax), 5);
  EXPECT_EQ(record.Integer(Field::kPcieWidth), 8);
  EXPECT_EQ(record.Integer(Field::kPcieWidthMax), 16);
  EXPECT_TRUE(record.Has(Field::kXids));
  EXPECT_TRUE(record.List(Field::kXids).empty());
}

TEST(NodeTelemetry, AnUncorrectedErrorDuringTheAttemptIsAFaultOfItsGpu) {
  auto nvml = LoadFixture("rtx3090");
  NvmlState after = Healthy();
  after.ecc_uncorrected = 3;
  std::vector<DeviceFault> faults;
  Attempted(*nvml, Healthy(), after, &faults);
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_EQ(faults[0].uuid, nvml->Describe()->devices[0].uuid);
  EXPECT_EQ(faults[0].reason, "ecc_error");
  EXPECT_NE(faults[0].message.find("1 uncorrected"), std::string::npos);
}

// The counters start anew when the driver is loaded again.
TEST(NodeTelemetry, ACountThatFellIsNoNewError) {
  auto nvml = LoadFixture("rtx3090");
  NvmlState after = Healthy();
  after.ecc_uncorrected = 0;
  std::vector<DeviceFault> faults;
  Attempted(*nvml, Healthy(), after, &faults);
  EXPECT_TRUE(faults.empty());
}

TEST(NodeTelemetry, XidsOfTheAttemptAreRecordedAndThoseOfMemoryAreFaults) {
  for (const auto& [xid, reason] : std::vector<std::pair<int64_t, std::string>>{
           {31, ""}, {94, "ecc_error"}, {79, "gpu_gone"}}) {
    auto nvml = LoadFixture("rtx3090");
    std::vector<DeviceFault> faults;
    const Record record = Attempted(*nvml, Healthy(), Healthy(), &faults, xid);
    EXPECT_EQ(record.List(Field::kXids), std::vector<std::string>{std::to_string(xid)});
    EXPECT_EQ(faults.empty() ? "" : faults[0].reason, reason) << xid;
  }
}

TEST(NodeTelemetry, ACardThatTellsNothingHasNoHealthAndNoZeros) {
  auto nvml = LoadFixture("geforce_no_power");
  const std::string uuid = nvml->Describe()->devices[0].uuid;
  FakeClock clock;
  NodeTelemetry telemetry(nvml.get(), &clock, Fast());
  NodeInventory inventory;
  inventory.devices = {Gpu(uuid)};
  telemetry.SetDevices(inventory);
  auto session = telemetry.Begin(std::vector<std::string>{uuid});
  session->WindowBegin();
  AwaitSamples(*nvml, 3);
  session->WindowEnd();
  const Record record = session->Finish({});
  for (const Field field :
       {Field::kEccCorrectedBefore, Field::kEccUncorrectedAfter, Field::kRemappedRowsBefore,
        Field::kXids, Field::kSmClockApplicationHertz, Field::kSmClockMaxHertz,
        Field::kPcieGeneration, Field::kMemoryClockMeanHertz, Field::kPowerMeanWatts}) {
    EXPECT_FALSE(record.Has(field)) << InfoOf(field).name;
  }
}

TEST(NodeTelemetry, AForeignProcessIsNamedWhereItCanBeSeen) {
  auto nvml = LoadFixture("rtx3090");
  const std::string uuid = nvml->Describe()->devices[0].uuid;
  nvml->SetProcessIds(uuid, {getppid(), 0x3ffffff0});
  FakeClock clock;
  NodeTelemetry telemetry(nvml.get(), &clock, Fast());
  NodeInventory inventory;
  inventory.devices = {Gpu(uuid)};
  telemetry.SetDevices(inventory);
  auto session = telemetry.Begin(std::vector<std::string>{uuid});
  const Record record = session->Finish({});
  const std::vector<std::string> others = record.List(Field::kForeignProcesses);
  ASSERT_EQ(others.size(), 2u);
  EXPECT_NE(others[0].find("(" + std::to_string(getppid()) + ")"), std::string::npos);
  EXPECT_FALSE(others[0].starts_with("not visible"));
  EXPECT_EQ(others[1], "not visible here (1073741808)");
  EXPECT_EQ(record.Text(Field::kExclusive), "unknown");
}

TEST(NodeTelemetry, TheWindowHasALengthByTheAgentsOwnClock) {
  auto nvml = LoadFixture("rtx3090");
  FakeClock clock;
  NodeTelemetry telemetry(nvml.get(), &clock, Fast());
  NodeInventory inventory;
  inventory.devices = {Gpu(nvml->Describe()->devices[0].uuid), Gpu("CPU-1", "cpu")};
  telemetry.SetDevices(inventory);
  for (const Device& device : inventory.devices) {
    auto session = telemetry.Begin(std::vector<std::string>{device.uuid});
    session->WindowBegin();
    clock.Advance(std::chrono::milliseconds(12345));
    session->WindowEnd();
    EXPECT_DOUBLE_EQ(*session->Finish({}).Number(Field::kWindowSeconds), 12.345) << device.kind;
    auto without = telemetry.Begin(std::vector<std::string>{device.uuid});
    EXPECT_FALSE(without->Finish({}).Has(Field::kWindowSeconds));
  }
}

TEST(NodeTelemetry, NoThreadWhileNoSessionIsOpen) {
  auto nvml = LoadFixture("rtx3090");
  FakeClock clock;
  const int before = ASSAY_SANITIZED_THREAD ? 2 : 1;  // ThreadSanitizer has one of its own
  ASSERT_EQ(Threads(before), before);
  NodeTelemetry telemetry(nvml.get(), &clock, Fast());
  const std::string uuid = nvml->Describe()->devices[0].uuid;
  NodeInventory inventory;
  inventory.devices = {Gpu(uuid)};
  telemetry.SetDevices(inventory);
  EXPECT_EQ(Threads(before), before);
  {
    auto session = telemetry.Begin(std::vector<std::string>{uuid});
    EXPECT_EQ(Threads(before + 1), before + 1);
  }
  EXPECT_EQ(Threads(before), before);
}

}  // namespace
}  // namespace assay
