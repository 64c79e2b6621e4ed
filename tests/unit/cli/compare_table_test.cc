#include "cli/compare_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/compare_prices.h"
#include "cli/fitted_table.h"

namespace assay::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

compare::Comparison TwoCards() {
  compare::Comparison comparison;
  comparison.baseline = "RTX 2080 Ti";
  compare::Group group;
  group.precision = "fp32";
  group.lane = "eager";
  group.asked = 3;
  group.common = {"resnet50 train", "swin_l train"};
  group.ranked = true;
  compare::SideRow fast;
  fast.side = "RTX 3090 | x";
  fast.completed = 2;
  fast.missing = {{"mem_limit", 1}};
  fast.geomean = measure::Ratio{1.834, measure::Interval{1.8, 1.87}};
  fast.verdict = compare::Standing::kFaster;
  compare::SideRow base;
  base.side = "RTX 2080 Ti";
  base.is_baseline = true;
  base.completed = 3;
  group.sides = {fast, base};
  comparison.groups = {group};
  comparison.left_out = {{"V100", "resnet50 train fp32 eager", "simulated", 2}};
  return comparison;
}

TEST(ComparisonTable, SaysRatioIntervalVerdictAndCoverage) {
  const std::string table = ComparisonTable(TwoCards(), kNoLimit, false);
  EXPECT_THAT(table, HasSubstr("fp32, eager, against RTX 2080 Ti"));
  EXPECT_THAT(table, HasSubstr("2 workloads of 3 asked for completed by all"));
  EXPECT_THAT(table, HasSubstr("1.83  1.80 to 1.87  faster    2/3; 1 mem_limit"));
  EXPECT_THAT(table, HasSubstr("V100"));
  EXPECT_THAT(table, Not(HasSubstr("per dollar")));  // no price, no column
}

TEST(ComparisonTable, SimulatedFiguresAreToldWhereTheColumnOfMarksHasNoRoom) {
  compare::Comparison comparison = TwoCards();
  comparison.groups[0].sides[0].marks = {"simulated", "unconverged"};
  const std::string table = ComparisonTable(comparison, 60, false);
  EXPECT_THAT(table, HasSubstr("no room for: marks"));
  EXPECT_THAT(table, HasSubstr("simulated figures, not measured ones"));
}

TEST(ComparisonTable, WithoutARankingItSaysSo) {
  compare::Comparison comparison = TwoCards();
  comparison.groups[0].ranked = false;
  comparison.groups[0].sides[0].pairwise = measure::Ratio{3, std::nullopt};
  const std::string table = ComparisonTable(comparison, kNoLimit, false);
  EXPECT_THAT(table, HasSubstr("no ranking: 2 of 3 workloads"));
  EXPECT_THAT(table, HasSubstr("3.00"));
}

TEST(ComparisonMarkdown, CellsCannotBreakTheTable) {
  const std::string markdown = ComparisonMarkdown(TwoCards());
  EXPECT_THAT(markdown, HasSubstr("### fp32, eager, against RTX 2080 Ti\n"));
  EXPECT_THAT(markdown, HasSubstr("| RTX 3090 \\| x | 1.83 |"));
}

TEST(Prices, AreTakenByTheCataloguesNamesAndRefusedWithTheirLine) {
  const std::set<std::string> cards = {"RTX 3090", "RTX 2080 Ti"};
  const auto prices =
      ParsePrices("card,price_usd,kind,date\nNVIDIA GeForce RTX 3090,1499.5,purchase,2026-11-30\n",
                  "p.csv", cards);
  ASSERT_TRUE(prices.ok()) << prices.status();
  EXPECT_EQ(prices->by_card, (std::map<std::string, double>{{"RTX 3090", 1499.5}}));
  EXPECT_EQ(prices->note, "per dollar: purchase prices of p.csv, 2026-11-30");
  const auto refusal = [&](const std::string& lines) {
    const auto refused = ParsePrices("card,price_usd,kind,date\n" + lines, "p.csv", cards);
    EXPECT_FALSE(refused.ok());
    return std::string(refused.status().message());
  };
  EXPECT_THAT(refusal("RTX 3090,0,purchase,2026-11-30\n"), HasSubstr("p.csv: line 2: '0' is no"));
  EXPECT_THAT(refusal("RTX 3090,1,rent,2026-11-30\n"), HasSubstr("purchase or hourly"));
  EXPECT_THAT(refusal("RTX 3090,1,hourly,yesterday\n"), HasSubstr("date is a day"));
  EXPECT_THAT(refusal("RTX 3090,1,hourly,2026-11-30\nrtx3090,2,hourly,2026-11-30\n"),
              HasSubstr("has a price already"));
  EXPECT_THAT(refusal("RTX 3090,1,hourly,2026-11-30\nV100,2,purchase,2026-11-30\n"),
              HasSubstr("line 3: purchase and hourly"));
}

TEST(Prices, OfTheLaunchFillWhatIsNotPricedAndSaySo) {
  Prices prices;
  prices.by_card = {{"RTX 3090", 700}};
  AddLaunchPrices({"RTX 3090", "GTX 1080 Ti", "Nobody's card"}, prices);
  EXPECT_EQ(prices.by_card,
            (std::map<std::string, double>{{"GTX 1080 Ti", 699}, {"RTX 3090", 700}}));
  EXPECT_THAT(prices.note, HasSubstr("prices at launch, not of today: GTX 1080 Ti 699 USD"));
}

}  // namespace
}  // namespace assay::cli
