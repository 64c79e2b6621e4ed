#include "runners/common/cell_reader.h"

#include <gtest/gtest.h>

#include "runners/common/bad_input.h"

namespace assay {
namespace {

std::string WhyNot(const std::string& text) {
  try {
    ParseCellFile(text, "c.json");
    return "";
  } catch (const BadInput& error) {
    return error.what();
  }
}

TEST(CellReader, ReadsWhatTheAgentWrites) {
  CellFile cell;
  cell.spec.model = "resnet50";
  cell.spec.batch = 64;
  cell.spec.accumulate = 2;
  cell.rank = 1;
  cell.world_size = 2;
  cell.local_rank = 1;
  cell.endpoint = "127.0.0.1:1";
  cell.card = "RTX 3090";
  const CellFile read = ParseCellFile(CellFileToJson(cell).dump(), "c.json");
  EXPECT_EQ(CellFileToJson(read), CellFileToJson(cell));
}

TEST(CellReader, NamesThePlaceOfBrokenJson) {
  EXPECT_NE(WhyNot("{\n  \"cell\": ,\n}").find("c.json:2:11"), std::string::npos)
      << WhyNot("{\n  \"cell\": ,\n}");
}

TEST(CellReader, AnotherProtocolIsRefusedWithBothNumbers) {
  const std::string why = WhyNot(R"({"protocol":7,"spec":{"model":"resnet50"}})");
  EXPECT_NE(why.find("protocol 7"), std::string::npos);
  EXPECT_NE(why.find("protocol 1"), std::string::npos);
}

TEST(CellReader, WrongValuesAreOneSentence) {
  for (const char* text :
       {"", "[]", "{}", "null", R"({"spec":[]})", R"({"spec":{}})", R"({"spec":{"model":3}})",
        R"({"spec":{"model":"m","stop":3}})", R"({"spec":{"model":"m"},"device":"gpu"})",
        R"({"spec":{"model":"m","batch":-1}})",
        R"({"spec":{"model":"m","batch":5,"accumulate":2}})",
        R"({"spec":{"model":"m","accumulate":0}})", R"({"spec":{"model":"m"},"rank":2})",
        R"({"spec":{"model":"m"},"world_size":0})", R"({"spec":{"model":"m"},"world_size":2})",
        R"({"spec":{"model":"m","stop":{"min_seconds":9,"max_seconds":1}}})",
        R"({"spec":{"model":"m","stop":{"confidence":2}}})",
        R"({"spec":{"model":"m","stop":{"max_seconds":1e400}}})"}) {
    const std::string why = WhyNot(text);
    EXPECT_FALSE(why.empty()) << text;
    EXPECT_EQ(why.find('\n'), std::string::npos) << why;
  }
}

TEST(CellReader, DeepNestingIsRefused) { EXPECT_FALSE(WhyNot(std::string(100000, '[')).empty()); }

TEST(CellReader, AMissingFileIsNamed) {
  try {
    ReadCellFile("/no/such/cell.json");
    ADD_FAILURE();
  } catch (const BadInput& error) {
    EXPECT_NE(std::string(error.what()).find("/no/such/cell.json"), std::string::npos);
  }
}

TEST(CellReader, TrialStepsComeAndGoAndAreBounded) {
  EXPECT_EQ(ParseCellFile(R"({"spec":{"model":"resnet50"}})", "f").trial_steps, 0);
  CellFile cell = ParseCellFile(R"({"spec":{"model":"resnet50"},"trial_steps":20})", "f");
  EXPECT_EQ(cell.trial_steps, 20);
  EXPECT_EQ(ParseCellFile(CellFileToJson(cell).dump(), "f").trial_steps, 20);
  EXPECT_THROW(ParseCellFile(R"({"spec":{"model":"resnet50"},"trial_steps":-1})", "f"), BadInput);
}

}  // namespace
}  // namespace assay
