#include "common/results/compare/compare_json.h"

#include <nlohmann/json.hpp>

#include "compared.h"

namespace assay::compare {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

Fleet TwoCards() {
  return Fleet()
      .Add(kOld, {100, 101, 99})
      .Add(kNew, {200, 202, 198})
      .Fail({.card = "RTX 3090", .model = "swin_l"}, "fail", "crash");
}

TEST(ComparisonJson, HasTheStatedFields) {
  const Json json = Json::parse(WriteComparisonJson(TwoCards().Compare()));
  EXPECT_EQ(json.at("baseline"), "RTX 2080 Ti");
  EXPECT_EQ(json.at("score"), "equal");
  EXPECT_TRUE(json.at("rules_version").is_number_integer());
  EXPECT_EQ(json.at("common_workloads").at(0).at("workloads"), Json({"resnet50 train"}));
  const Json& card = json.at("cards").at(0);
  EXPECT_EQ(card.at("card"), "RTX 3090");
  EXPECT_NEAR(card.at("geomean").get<double>(), 2, 1e-9);
  EXPECT_LT(card.at("ci95_low"), 2);
  EXPECT_GT(card.at("ci95_high"), 2);
  EXPECT_EQ(card.at("verdict"), "indicative");
  EXPECT_EQ(card.at("coverage").at("missing"), Json({{"fail: crash", 1}}));
  EXPECT_TRUE(card.at("per_watt").is_null());
  EXPECT_FALSE(card.contains("per_dollar"));  // no price, no column
  const Json& workload = card.at("per_workload").at(0);
  EXPECT_EQ(workload.at("batch"), 64);
  EXPECT_EQ(workload.at("fingerprint").at("model"), "resnet50");
  EXPECT_EQ(card.at("pairwise_geomean").at("workloads"), 1);
  EXPECT_EQ(json.at("left_out").at(0).at("reason"), "fail: crash");
}

TEST(ComparisonJson, BrokenNamesStayADocument) {
  Made odd = kNew;
  odd.card = "RTX \"x\", \xff\n";
  const Comparison comparison = Fleet().Add(kOld, {100}).Add(odd, {200}).Compare();
  EXPECT_FALSE(Json::parse(WriteComparisonJson(comparison), nullptr, false).is_discarded());
  EXPECT_THAT(WriteComparisonCsv(comparison), HasSubstr("\"RTX \"\"x\"\", \xEF\xBF\xBD\n\""));
}

TEST(ComparisonCsv, EveryLineHasEveryColumn) {
  const std::string csv = WriteComparisonCsv(TwoCards().Compare());
  const auto commas = [](std::string_view line) {
    return std::count(line.begin(), line.end(), ',');
  };
  size_t lines = 0;
  const auto expected = commas(csv.substr(0, csv.find("\r\n")));
  for (size_t at = 0; at < csv.size(); at = csv.find("\r\n", at) + 2, ++lines) {
    EXPECT_EQ(commas(csv.substr(at, csv.find("\r\n", at) - at)), expected);
  }
  EXPECT_EQ(lines, 5u);  // the header, and two sides with one workload each
}

}  // namespace
}  // namespace assay::compare
