// The JSON Schema for editors says what the checker does.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "common/matrix/axis.h"
#include "common/matrix/matrix.h"
#include "common/matrix/settings.h"
#include "common/yaml/yaml_tree.h"

namespace assay {
namespace {

TEST(MatrixJsonSchema, CommittedFileIsTheProgramsText) {
  const auto file = ReadTextFile(ASSAY_SOURCE_DIR "/docs/matrix.schema.json", size_t{1} << 20);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(*file, MatrixJsonSchema())
      << "write it again with `assay plan --schema > docs/matrix.schema.json`";
}

TEST(MatrixJsonSchema, HasEveryKeyAxisAndWordOfTheChecker) {
  const auto schema = nlohmann::json::parse(MatrixJsonSchema());
  EXPECT_FALSE(schema.at("additionalProperties").get<bool>());
  for (const KeyInfo& key : TopKeys()) {
    EXPECT_TRUE(schema.at("properties").contains(std::string(key.name))) << key.name;
  }
  const auto& definitions = schema.at("$defs");
  for (const AxisInfo& info : AllAxes()) {
    const auto& axis = definitions.at(std::string(info.name));
    for (const std::string_view word : WordsOf(info.axis)) {
      EXPECT_NE(axis.dump().find("\"" + std::string(word) + "\""), std::string::npos) << word;
    }
  }
  for (const AxisInfo& info : WrittenAxes()) {
    EXPECT_TRUE(definitions.at("axes").at("properties").contains(std::string(info.name)));
  }
}

// Every reference of the schema leads somewhere.
TEST(MatrixJsonSchema, ReferencesResolve) {
  const auto schema = nlohmann::json::parse(MatrixJsonSchema());
  size_t references = 0;
  const auto flat = schema.flatten();
  for (const auto& [path, value] : flat.items()) {
    if (!path.ends_with("/$ref")) continue;
    const std::string target = value.get<std::string>();
    ASSERT_TRUE(target.starts_with("#/"));
    EXPECT_TRUE(schema.contains(nlohmann::json::json_pointer(target.substr(1)))) << target;
    ++references;
  }
  EXPECT_GT(references, 20u);
}

}  // namespace
}  // namespace assay
