#include "agent/telemetry/heat_session.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "agent/telemetry/fake_nvml.h"
#include "agent/telemetry/node_telemetry.h"

namespace assay {
namespace {

using Sensors = HeatReading::Sensors;
using std::chrono::milliseconds;
using std::chrono::seconds;

// A card whose heat follows its load with a time constant of 10 s of `clock`.
std::unique_ptr<FakeNvml> HeatedNvml(const Clock& clock) {
  auto nvml = FakeNvml::Parse(
      R"({"devices":[{"uuid":"GPU-1","name":"x","memory_total_mib":1,
           "heat":{"idle_celsius":30,"busy_celsius":70,"seconds":10,"clock_loss_ratio":0.1},
           "sample":{"sm_clock_mhz":1000,"temperature_celsius":5}},
          {"uuid":"GPU-2","name":"x","memory_total_mib":1,"sample":{"sm_clock_mhz":1000}},
          {"uuid":"GPU-3","name":"x","memory_total_mib":1}]})",
      "f.json");
  if (!nvml.ok()) return nullptr;
  (*nvml)->SetClock(&clock);
  return *std::move(nvml);
}

TEST(FakeNvml, ACardWithHeatFollowsItsLoadAsAnExponential) {
  FakeClock clock;
  auto nvml = HeatedNvml(clock);
  ASSERT_NE(nvml, nullptr);
  EXPECT_TRUE(nvml->captured_heats("GPU-1"));
  EXPECT_FALSE(nvml->captured_heats("GPU-2"));
  EXPECT_EQ(nvml->Sample("GPU-1")->temperature_celsius, 30);
  EXPECT_EQ(nvml->Sample("GPU-1")->sm_clock_hertz, 1e9);
  for (int i = 0; i < 100; ++i) {  // 10 s of load
    clock.Advance(milliseconds(100));
    nvml->Sample("GPU-1").IgnoreError();
  }
  const auto warm = nvml->Sample("GPU-1");
  EXPECT_EQ(warm->temperature_celsius, 55);  // 30 + 40 (1 - 1/e)
  EXPECT_NEAR(*warm->sm_clock_hertz, 1e9 * (1 - 0.1 * 0.632), 1e6);
  clock.Advance(seconds(10));  // idle
  EXPECT_EQ(nvml->Sample("GPU-1")->temperature_celsius, 39);
}

class HeatSessionTest : public testing::Test {
 protected:
  // Lets the sampler go round while the clock moves.
  void Pass(std::chrono::nanoseconds time) {
    constexpr milliseconds kStep{250};
    for (std::chrono::nanoseconds done{0}; done < time; done += kStep) {
      const int64_t from = nvml_->samples_taken();
      clock_.Advance(kStep);
      const auto until = std::chrono::steady_clock::now() + seconds(10);
      while (nvml_->samples_taken() < from + 2 && std::chrono::steady_clock::now() < until) {
        std::this_thread::yield();
      }
    }
  }
  HeatSession Watch(std::vector<std::string> uuids) {
    return HeatSession(nvml_.get(), &clock_, milliseconds(1), std::move(uuids));
  }
  HeatReading AwaitReading(HeatSession& session) {
    const auto until = std::chrono::steady_clock::now() + seconds(10);
    HeatReading reading;
    do {
      reading = session.Read();
    } while (reading.sensors == Sensors::kNotYet && std::chrono::steady_clock::now() < until);
    return reading;
  }

  FakeClock clock_;
  std::unique_ptr<FakeNvml> nvml_ = HeatedNvml(clock_);
};

TEST_F(HeatSessionTest, AWarmingCardBecomesFlat) {
  HeatSession session = Watch({"GPU-1"});
  EXPECT_EQ(AwaitReading(session).sensors, Sensors::kThere);
  session.LoadBegan();
  Pass(seconds(31));
  EXPECT_FALSE(session.Read().flat);
  EXPECT_GT(session.Read().celsius_per_second, 0.1);
  EXPECT_LT(session.Read().clock_ratio_per_second, 0);
  Pass(seconds(60));
  EXPECT_TRUE(session.Read().flat);
  EXPECT_EQ(session.Read().celsius, 70);
}

TEST_F(HeatSessionTest, WhatWasBeforeTheLoadDoesNotCount) {
  HeatSession session = Watch({"GPU-1"});
  Pass(seconds(80));
  ASSERT_TRUE(session.Read().flat);
  session.LoadBegan();
  EXPECT_FALSE(session.Read().flat);
}

TEST_F(HeatSessionTest, OneCardWithoutAThermometerIsMissingForAll) {
  HeatSession session = Watch({"GPU-1", "GPU-2"});
  EXPECT_EQ(AwaitReading(session).sensors, Sensors::kMissing);
  EXPECT_FALSE(session.Read().flat);
}

TEST_F(HeatSessionTest, ACardThatDoesNotAnswerIsNotThereYet) {
  HeatSession session = Watch({"GPU-3"});
  Pass(seconds(1));
  EXPECT_EQ(session.Read().sensors, Sensors::kNotYet);
}

Device DeviceOf(const std::string& uuid, const std::string& kind, bool simulated) {
  Device device;
  device.uuid = uuid;
  device.kind = kind;
  device.simulated = simulated;
  return device;
}

TEST_F(HeatSessionTest, OnlyWhatHasHeatIsWatched) {
  NodeTelemetry telemetry(nvml_.get(), &clock_);
  NodeInventory inventory;
  inventory.devices = {DeviceOf("GPU-1", "gpu", true), DeviceOf("GPU-2", "gpu", true),
                       DeviceOf("GPU-3", "gpu", false), DeviceOf("CPU-1", "cpu", false)};
  telemetry.SetDevices(inventory);
  const auto watched = [&](const std::string& uuid) {
    return telemetry.WatchHeat(std::vector<std::string>{uuid}) != nullptr;
  };
  EXPECT_TRUE(watched("GPU-1"));   // captured, with heat
  EXPECT_FALSE(watched("GPU-2"));  // captured
  EXPECT_TRUE(watched("GPU-3"));   // real
  EXPECT_FALSE(watched("CPU-1"));
  EXPECT_FALSE(watched("GPU-9"));
}

}  // namespace
}  // namespace assay
