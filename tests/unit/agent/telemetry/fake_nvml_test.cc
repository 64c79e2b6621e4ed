#include "agent/telemetry/fake_nvml.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

std::string Fixture(const std::string& name) { return ASSAY_FIXTURES "/nvml/" + name; }

TEST(FakeNvml, EveryFixtureIsRead) {
  for (const char* name :
       {"rtx3090", "rtx3090_x2", "rtx3090_24265", "v100", "a100_mig", "h200", "rtx3090_gtx1080ti",
        "geforce_no_power", "driver_mismatch", "remap_pending", "rtx3090_heat"}) {
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

TEST(FakeNvml, StateLinkAndXidsAreThoseOfTheFile) {
  const auto nvml = FakeNvml::Parse(
      R"({"devices":[{"uuid":"GPU-1","name":"x","memory_total_mib":1,"xids":[13],
          "pcie_generation":3,"pcie_generation_max":4,"pcie_width":8,"pcie_width_max":16,
          "sm_clock_application_mhz":1000,"sm_clock_application_default_mhz":1200,
          "ecc_corrected_volatile":2,"ecc_uncorrected_volatile":1,"remapped_rows":4},
          {"uuid":"GPU-2","name":"x","memory_total_mib":1}]})",
      "f.json");
  ASSERT_TRUE(nvml.ok()) << nvml.status();
  const auto state = (*nvml)->State("GPU-1");
  ASSERT_TRUE(state.ok());
  EXPECT_EQ(state->sm_clock_application_hertz, 1e9);
  EXPECT_EQ(state->sm_clock_application_default_hertz, 1.2e9);
  EXPECT_EQ(state->ecc_corrected, 2u);
  EXPECT_EQ(state->ecc_uncorrected, 1u);
  EXPECT_EQ(state->remapped_rows, 4u);
  EXPECT_EQ(state->pcie_width_max, 16);
  EXPECT_EQ((*nvml)->Link("GPU-1")->generation, 3);
  EXPECT_EQ((*nvml)->Link("GPU-1")->width, 8);
  EXPECT_EQ(*(*nvml)->Xids("GPU-1"), std::vector<int64_t>{13});
  EXPECT_EQ(*(*nvml)->Xids("GPU-1"), std::vector<int64_t>{});
  EXPECT_FALSE((*nvml)->State("GPU-2")->ecc_corrected);
  EXPECT_FALSE((*nvml)->Link("GPU-2")->width);
  EXPECT_FALSE((*nvml)->Xids("GPU-2").ok());
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
        R"({"devices":[{"uuid":"GPU-1","name":"x","memory_total_mib":1,"xids":"79"}]})",
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
