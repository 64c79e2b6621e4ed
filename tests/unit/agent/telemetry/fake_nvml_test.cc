#include "agent/telemetry/fake_nvml.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

std::string Fixture(const std::string& name) { return ASSAY_FIXTURES "/nvml/" + name; }

TEST(FakeNvml, EveryFixtureIsRead) {
  for (const char* name :
       {"rtx3090", "rtx3090_x2", "rtx3090_24265", "v100", "a100_mig", "h200", "rtx3090_gtx1080ti",
        "geforce_no_power", "driver_mismatch", "remap_pending"}) {
    EXPECT_TRUE(FakeNvml::Load(Fixture(std::string(name) + ".json")).ok()) << name;
  }
}

// Case 37.
TEST(FakeNvml, AbsentKeysAreNotSupportedAndNotZero) {
  const auto nvml = FakeNvml::Load(Fixture("geforce_no_power.json"));
  ASSERT_TRUE(nvml.ok());
  const auto system = (*nvml)->Describe();
  ASSERT_TRUE(system.ok());
  const std::string uuid = system->devices[0].uuid;
  EXPECT_FALSE(system->devices[0].ecc_enabled);
  EXPECT_FALSE(system->devices[0].power_limits.enforced_watts);
  EXPECT_FALSE((*nvml)->Sample(uuid)->power_watts);
  EXPECT_TRUE((*nvml)->Sample(uuid)->sm_clock_hertz);
  EXPECT_FALSE((*nvml)->ProcessIds(uuid).ok());
}

TEST(FakeNvml, PersistenceModeIsOnOffOrNotKnown) {
  const auto nvml = FakeNvml::Parse(
      R"({"devices":[{"uuid":"GPU-1","name":"x","memory_total_mib":1,"persistence":true},
                     {"uuid":"GPU-2","name":"x","memory_total_mib":1,"persistence":false},
                     {"uuid":"GPU-3","name":"x","memory_total_mib":1}]})",
      "f.json");
  ASSERT_TRUE(nvml.ok()) << nvml.status();
  const auto system = (*nvml)->Describe();
  ASSERT_TRUE(system.ok());
  EXPECT_EQ(system->devices[0].persistence, true);
  EXPECT_EQ(system->devices[1].persistence, false);
  EXPECT_FALSE(system->devices[2].persistence);
}

TEST(FakeNvml, MisspeltKeyIsRefusedByName) {
  const auto nvml = FakeNvml::Parse(
      R"({"devices":[{"uuid":"GPU-1","name":"x","memory_total_mib":1,"sm_cuont":3}]})", "f.json");
  ASSERT_FALSE(nvml.ok());
  EXPECT_NE(nvml.status().message().find("sm_cuont"), absl::string_view::npos);
}

TEST(FakeNvml, BadFilesAreOneSentenceAndNoCrash) {
  for (const char* text :
       {"", "[]", "{}", "{\"devices\":3}", "{\"devices\":[{}]}", "{\"devices\":[7]}",
        R"({"devices":[{"uuid":"","name":"x","memory_total_mib":1}]})",
        R"({"devices":[{"uuid":"GPU-1","name":"x","memory_total_mib":-1}]})",
        R"({"devices":[{"uuid":"GPU-1","name":"x","memory_total_mib":1e300}]})",
        R"({"devices":[{"uuid":"GPU-1","name":"x","memory_total_mib":1,"processes":{}}]})",
        R"({"devices":[{"uuid":"GPU-1","name":"x","memory_total_mib":1,"compute_capability":8}]})",
        R"({"devices":[{"uuid":"GPU-1","name":"x","memory_total_mib":1,"sample":[]}]})"}) {
    EXPECT_EQ(FakeNvml::Parse(text, "f.json").status().code(), absl::StatusCode::kInvalidArgument)
        << text;
  }
}

TEST(FakeNvml, MissingFileIsNotFound) {
  EXPECT_EQ(FakeNvml::Load("/no/such/file.json").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace assay
