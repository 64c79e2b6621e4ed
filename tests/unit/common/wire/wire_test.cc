#include "common/wire/wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "common/text/utf8.h"

namespace assay::wire {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

TEST(CleanTextTest, CutsOnACharacterWithANoteAndStaysUtf8) {
  EXPECT_EQ(CleanText("short", 10), "short");
  for (size_t limit = 0; limit < 40; ++limit) {
    std::string text;
    for (int i = 0; i < 20; ++i) text += "\xE2\x82\xAC\xFF";
    const std::string clean = CleanText(text, limit);
    EXPECT_LE(clean.size(), limit);
    EXPECT_TRUE(IsUtf8(clean)) << limit;
    EXPECT_LE(CleanTail(text, limit).size(), limit);
    EXPECT_TRUE(IsUtf8(CleanTail(text, limit))) << limit;
  }
  EXPECT_EQ(CleanText(std::string(100, 'x'), 10), "xxxx [cut]");
  EXPECT_EQ(CleanTail("abcdef", 3), "def");
}

TEST(WireTest, OutcomesAreTheSameNumbersAndOthersAreNotKnown) {
  for (int number = 1; number <= 8; ++number) {
    const auto outcome = FromProto(static_cast<v1::Outcome>(number));
    ASSERT_TRUE(outcome.has_value()) << number;
    EXPECT_EQ(ToProto(*outcome), static_cast<v1::Outcome>(number));
    std::string name = v1::Outcome_Name(static_cast<v1::Outcome>(number)).substr(8);
    for (char& c : name) c = static_cast<char>(std::tolower(c));
    EXPECT_EQ(name, OutcomeName(*outcome));
  }
  for (const int number : {0, -1, 9, 1'000'000}) {
    EXPECT_FALSE(FromProto(static_cast<v1::Outcome>(number)).has_value()) << number;
  }
}

TEST(WireTest, RecordKeepsItsFieldsAndDropsWhatIsNotKnownOrOfAnotherType) {
  Record record;
  ASSERT_TRUE(record.Set(Field::kThroughput, 1.5).ok());
  ASSERT_TRUE(record.Set(Field::kSteps, int64_t{7}).ok());
  ASSERT_TRUE(record.Set(Field::kUnit, std::string("img/s")).ok());
  ASSERT_TRUE(record.Set(Field::kDeterministic, false).ok());
  v1::Record message;
  ToProto(record, &message);
  EXPECT_EQ(FromProto(message), record);
  message.add_fields()->set_name("nobody_knows");
  v1::FieldValue* wrong = message.add_fields();
  wrong->set_name("steps");
  wrong->set_text("seven");
  std::vector<std::string> dropped;
  EXPECT_EQ(FromProto(message.fields(), &dropped), record);
  EXPECT_THAT(dropped, ElementsAre("nobody_knows", "steps"));
}

// Case 53.
TEST(WireTest, NumbersThatAreNoneAreNotKnown) {
  v1::Record message;
  for (const double value :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    v1::FieldValue* field = message.add_fields();
    field->set_name("throughput");
    field->set_number(value);
  }
  EXPECT_FALSE(FromProto(message).Has(Field::kThroughput));
}

TEST(WireTest, HugeInventoryIsCut) {
  v1::NodeInventory message;
  message.set_node(std::string(1 << 20, 'n'));
  for (int i = 0; i < 5'000; ++i) message.add_devices()->set_raw_name("bad \xFF name");
  for (int i = 0; i < 1'000; ++i) message.add_stacks()->add_models(std::string(10'000, 'm'));
  const NodeInventory inventory = FromProto(message);
  EXPECT_EQ(inventory.node.size(), kMaxNameBytes);
  EXPECT_THAT(inventory.devices, SizeIs(kMaxDevices));
  EXPECT_EQ(inventory.devices[0].raw_name, "bad \xEF\xBF\xBD name");
  EXPECT_THAT(inventory.stacks, SizeIs(kMaxStacks));
  EXPECT_EQ(inventory.stacks[0].models[0].size(), kMaxNameBytes);
}

TEST(WireTest, SpecAndDeviceReadBackAsTheyWere) {
  Spec spec;
  spec.key = "00ff";
  spec.model = "resnet50";
  spec.batch = kBatchMax;
  spec.stop.confidence = 0.02;
  spec.limits.no_step_seconds = 3;
  v1::Spec message;
  ToProto(spec, &message);
  const Spec back = FromProto(message);
  EXPECT_EQ(back.key, spec.key);
  EXPECT_EQ(back.batch, spec.batch);
  EXPECT_EQ(back.stop.confidence, spec.stop.confidence);
  EXPECT_EQ(back.limits.no_step_seconds, 3);
  Device device;
  device.uuid = "GPU-1";
  device.numa_node = -1;
  device.usable = false;
  v1::Device wire_device;
  ToProto(device, &wire_device);
  EXPECT_EQ(FromProto(wire_device).uuid, "GPU-1");
  EXPECT_EQ(FromProto(wire_device).numa_node, -1);
  EXPECT_FALSE(FromProto(wire_device).usable);
}

}  // namespace
}  // namespace assay::wire
