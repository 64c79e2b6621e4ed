#include "runners/train/models/detection/boxes.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <vector>

namespace assay::train {
namespace {

at::Tensor BoxesOf(const std::vector<float>& sides) { return at::tensor(sides).view({-1, 4}); }

TEST(Boxes, WhatIsEncodedIsDecodedToTheTarget) {
  const at::Tensor boxes = BoxesOf({0, 0, 10, 20, 5, 5, 6, 9});
  const at::Tensor targets = BoxesOf({3, 1, 8, 40, 0, 2, 30, 3});
  const BoxWeights weights = {10, 10, 5, 5};
  const at::Tensor code = EncodeBoxes(targets, boxes, weights).unsqueeze(1);
  EXPECT_TRUE(at::allclose(DecodeBoxes(code, boxes, weights).squeeze(1), targets, 1e-5, 1e-4));
}

TEST(Boxes, AnOverlapIsWhatBothHaveOverWhatEitherHas) {
  const at::Tensor a = BoxesOf({0, 0, 10, 10}), b = BoxesOf({5, 0, 15, 10, 20, 20, 30, 30});
  EXPECT_TRUE(at::allclose(Overlaps(a, b), at::tensor(std::vector<float>{1.0f / 3, 0})));
}

TEST(Boxes, MatchesAreTheBestTruthOrSayWhyThereIsNone) {
  const at::Tensor truth = BoxesOf({0, 0, 10, 10, 100, 100, 110, 110});
  // The first truth, almost; half of it; nothing; a little of the second, the most that it has.
  const at::Tensor boxes = BoxesOf({0, 0, 10, 9, 0, 0, 10, 5, 50, 50, 60, 60, 100, 100, 103, 103});
  const auto matches = [&](bool keep_best) {
    const at::Tensor match = MatchBoxes(truth, boxes, 0.7, 0.3, keep_best);
    return std::vector<int64_t>(match.const_data_ptr<int64_t>(),
                                match.const_data_ptr<int64_t>() + match.numel());
  };
  EXPECT_EQ(matches(false), (std::vector<int64_t>{0, kBetween, kBelow, kBelow}));
  EXPECT_EQ(matches(true), (std::vector<int64_t>{0, kBetween, kBelow, 1}));
}

// Labels 1 for a truth, 0 for background, -1 for neither.
void ExpectSample(int64_t positives, int64_t negatives, int64_t want_positives,
                  int64_t want_negatives) {
  const at::Tensor labels =
      at::cat({at::full({negatives}, -1.0f), at::ones({positives}), at::zeros({negatives})});
  for (const bool at_random : {false, true}) {
    const Sample sample = SampleLabels(labels, 8, 0.25, at_random);
    const at::Tensor index = sample.index.masked_select(sample.used);
    EXPECT_EQ(std::get<0>(at::unique_dim(index, 0)).numel(), index.numel()) << "one taken twice";
    const at::Tensor taken = labels.index_select(0, index);
    EXPECT_EQ(taken.eq(1).sum().item<int64_t>(), want_positives);
    EXPECT_EQ(taken.eq(0).sum().item<int64_t>(), want_negatives);
    EXPECT_EQ(taken.numel(), want_positives + want_negatives);
  }
}

TEST(Boxes, ASampleHasItsShareOfTruthsAndFillsUpWithBackground) {
  ExpectSample(20, 30, 2, 6);
  ExpectSample(1, 30, 1, 7);
  ExpectSample(0, 30, 0, 8);
  ExpectSample(20, 3, 2, 3);
  ExpectSample(1, 2, 1, 2);
}

TEST(Boxes, TheFirstAreTakenWhereNotAtRandom) {
  const at::Tensor labels = at::tensor(std::vector<float>{0, 1, -1, 1, 0, 1, 0, 0});
  const Sample sample = SampleLabels(labels, 4, 0.5, /*at_random=*/false);
  const at::Tensor index = std::get<0>(sample.index.masked_select(sample.used).sort());
  EXPECT_TRUE(at::equal(index, at::tensor(std::vector<int64_t>{0, 1, 3, 4})));
}

}  // namespace
}  // namespace assay::train
