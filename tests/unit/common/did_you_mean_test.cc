#include "common/text/did_you_mean.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace assay {
namespace {

const std::vector<std::string> kAxes = {"stack", "model", "mode",   "precision", "batch",
                                        "lane",  "image", "layout", "accumulate"};

TEST(EditDistance, CountsInsertionsDeletionsAndChanges) {
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3u);
  EXPECT_EQ(EditDistance("", "abc"), 3u);
  EXPECT_EQ(EditDistance("abc", "abc"), 0u);
}

TEST(EditDistance, CountsSwappedNeighboursOnce) {
  EXPECT_EQ(EditDistance("btach", "batch"), 1u);
  EXPECT_EQ(EditDistance("ab", "ba"), 1u);
}

TEST(EditDistance, OfHugeWordsCostsNothing) {
  EXPECT_EQ(EditDistance(std::string(1 << 20, 'a'), std::string(1 << 20, 'b')), size_t{1} << 20);
}

TEST(DidYouMean, NamesTheNearestSpelling) {
  EXPECT_EQ(DidYouMean("bacth", kAxes), " (did you mean 'batch'?)");
  EXPECT_EQ(DidYouMean("precison", kAxes), " (did you mean 'precision'?)");
  EXPECT_EQ(DidYouMean("modle", kAxes), " (did you mean 'model'?)");
}

TEST(DidYouMean, TakesCaseAndUnderscoresAsEqual) {
  const std::vector<std::string> names = {"se-resnext101", "resnet50"};
  EXPECT_EQ(DidYouMean("SE_ResNeXt101", names), " (did you mean 'se-resnext101'?)");
}

TEST(DidYouMean, SaysNothingWhereNothingIsNear) {
  EXPECT_EQ(DidYouMean("temperature", kAxes), "");
  EXPECT_EQ(DidYouMean("", kAxes), "");
  EXPECT_EQ(DidYouMean("x", std::vector<std::string>{"y"}), "");
  EXPECT_EQ(DidYouMean(std::string(100000, 'a'), kAxes), "");
}

}  // namespace
}  // namespace assay
