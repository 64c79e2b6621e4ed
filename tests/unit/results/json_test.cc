#include "common/results/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

namespace assay {
namespace {

std::string ErrorOf(std::string_view json) {
  const auto record = RecordFromJson(json);
  EXPECT_FALSE(record.ok()) << json.substr(0, 100);
  return record.ok() ? "" : std::string(record.status().message());
}

TEST(ResultsJson, HasEveryFieldAndNullForWhatIsNotKnown) {
  Record record;
  ASSERT_TRUE(record.Set(Field::kThroughput, 812.5).ok());
  ASSERT_TRUE(record.Set(Field::kSimulated, true).ok());
  const auto json = nlohmann::json::parse(WriteResultsJson(std::vector<Record>{record}));
  ASSERT_EQ(json.size(), 1u);
  ASSERT_EQ(json[0].size(), kFieldCount);
  for (const FieldInfo& info : AllFields()) {
    const auto& value = json[0].at(std::string(info.name));
    if (info.field == Field::kThroughput) {
      EXPECT_EQ(value, 812.5);
    } else if (info.field == Field::kSimulated) {
      EXPECT_EQ(value, true);
    } else {
      EXPECT_TRUE(value.is_null()) << info.name;
    }
  }
}

TEST(ResultsJson, OfNoRecordsIsAnEmptyArray) { EXPECT_EQ(WriteResultsJson({}), "[]\n"); }

TEST(ResultsJson, WritesACountBareAndMaxAsText) {
  Record record;
  const Field fields[] = {Field::kBatch};
  ASSERT_TRUE(record.Set(Field::kBatch, "64").ok());
  EXPECT_EQ(RecordToJson(record, fields), R"({"batch":64})");
  EXPECT_EQ(*RecordFromJson(R"({"batch":64})"), record);
  ASSERT_TRUE(record.Set(Field::kBatch, "max").ok());
  EXPECT_EQ(RecordToJson(record, fields), R"({"batch":"max"})");
}

TEST(ResultsJson, WritesListsAsArrays) {
  Record record;
  ASSERT_TRUE(record.SetList(Field::kGpuUuids, std::vector<std::string>{"GPU-1", "GPU-2"}).ok());
  ASSERT_TRUE(record.SetList(Field::kMarks, {}).ok());
  EXPECT_EQ(RecordToCompactJson(record), R"({"marks":[],"gpu_uuids":["GPU-1","GPU-2"]})");
}

TEST(ResultsJson, KeepsTheOrderOfTheAskedFields) {
  Record record;
  record.SetText(Field::kModel, "resnet50");
  const Field fields[] = {Field::kSteps, Field::kModel};
  EXPECT_EQ(RecordToJson(record, fields), R"({"steps":null,"model":"resnet50"})");
}

// Cases 12 and 53: quotes, commas, newlines, an em dash, a byte 0xFF, control characters.
TEST(ResultsJson, OddTextsComeBack) {
  for (const std::string& text :
       {std::string("a \"quote\", a comma\nand a line"), std::string("\xE2\x80\x94"),
        std::string("back\\slash\t\r\x01\x1F"), std::string(), std::string(96, 'x'),
        std::string("with \0 inside", 13)}) {
    Record record;
    record.SetText(Field::kCard, text);
    const auto back = RecordFromJson(RecordToCompactJson(record));
    ASSERT_TRUE(back.ok()) << text;
    EXPECT_EQ(*back, record);
  }
  EXPECT_EQ(JsonString("\xFF"), "\"\xEF\xBF\xBD\"");
}

TEST(ResultsJson, NumbersReadBackEqual) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 5000; ++i) {
    const uint64_t bits = random();
    double value = 0;
    std::memcpy(&value, &bits, sizeof(value));
    Record record;
    ASSERT_TRUE(record.Set(Field::kThroughput, value).ok());
    ASSERT_TRUE(record.Set(Field::kSamples, static_cast<int64_t>(bits)).ok());
    const auto back = RecordFromJson(RecordToCompactJson(record));
    ASSERT_TRUE(back.ok());
    ASSERT_EQ(*back, record);
  }
}

// Case 53.
TEST(ResultsJson, WhatIsNotFiniteIsNull) {
  EXPECT_EQ(JsonNumber(NAN), "null");
  EXPECT_EQ(JsonNumber(INFINITY), "null");
}

TEST(RecordFromJson, ReadsTheLongFormToo) {
  Record record;
  record.SetText(Field::kModel, "resnet50");
  ASSERT_TRUE(record.SetList(Field::kMarks, std::vector<std::string>{"shared"}).ok());
  std::vector<Field> fields;
  for (const FieldInfo& info : AllFields()) fields.push_back(info.field);
  const auto back = RecordFromJson(RecordToJson(record, fields));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(*back, record);
}

TEST(RecordFromJson, SkipsFieldsOfANewerVersion) {
  const auto record = RecordFromJson(R"({"tomorrow":1,"later":["a",2],"model":"resnet50"})");
  ASSERT_TRUE(record.ok());
  EXPECT_EQ(record->Text(Field::kModel), "resnet50");
}

TEST(RecordFromJson, NamesTheFieldOfAWrongType) {
  EXPECT_NE(ErrorOf(R"({"steps":"many"})").find("'steps'"), std::string::npos);
  EXPECT_NE(ErrorOf(R"({"model":["a"]})").find("'model'"), std::string::npos);
  EXPECT_NE(ErrorOf(R"({"marks":[1]})").find("'marks'"), std::string::npos);
  EXPECT_NE(ErrorOf(R"({"model":{"a":1}})").find("'model'"), std::string::npos);
  EXPECT_NE(ErrorOf(R"({"steps":18446744073709551615})").find("'steps'"), std::string::npos);
}

TEST(RecordFromJson, RefusesWhatIsNoObject) {
  for (const char* json : {"", "[]", "null", "3", "{", "{}{}", "[{}]", "{\"throughput\":NaN}",
                           "{\"model\":\"\xFF\"}", "{\"marks\":[[\"a\"]]}"}) {
    ErrorOf(json);
  }
  ErrorOf(std::string_view("{}\0", 3));
}

TEST(RecordFromJson, DeepNestingDoesNotReachTheStack) {
  std::string deep = "{\"tomorrow\":";
  while (deep.size() < 1000000) deep += '[';
  ErrorOf(deep);
  ErrorOf(std::string(1000000, '['));
}

}  // namespace
}  // namespace assay
