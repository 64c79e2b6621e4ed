// Order, counting and limits of the expansion.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "common/matrix/matrix.h"
#include "tests/unit/matrix/matrix_text.h"

namespace assay {
namespace {

std::string Labels(const Matrix& matrix) {
  std::string out;
  for (const Spec& spec : matrix.specs) {
    out += fmt::format("{} {} {} {}\n", spec.index, spec.precision, spec.batch, spec.lane);
  }
  return out;
}

TEST(Expansion, LastAxisWrittenVariesFastest) {
  EXPECT_EQ(Labels(Parsed("axes:\n  model: resnet50\n  precision: [fp32, tf32]\n  batch: [2, 1]\n"
                          "  lane: [graph, eager]\n")),
            "0 fp32 2 graph\n1 fp32 2 eager\n2 fp32 1 graph\n3 fp32 1 eager\n"
            "4 tf32 2 graph\n5 tf32 2 eager\n6 tf32 1 graph\n7 tf32 1 eager\n");
  EXPECT_EQ(Labels(Parsed("axes:\n  lane: [graph, eager]\n  batch: [2, 1]\n  model: resnet50\n")),
            "0 fp32 2 graph\n1 fp32 1 graph\n2 fp32 2 eager\n3 fp32 1 eager\n");
}

TEST(Expansion, RangesAndDoublingsEndAtOrBelowTo) {
  EXPECT_EQ(Batches(Parsed("axes: {model: resnet50, batch: {from: 1, to: 10, step: 4}}")),
            (std::vector<int64_t>{1, 5, 9}));
  EXPECT_EQ(Batches(Parsed("axes: {model: resnet50, batch: {from: 32, to: 512, times: 2}}")),
            (std::vector<int64_t>{32, 64, 128, 256, 512}));
  EXPECT_EQ(
      Batches(Parsed("axes: {model: resnet50, batch: [1, {from: 3, to: 20, times: 3}, max]}")),
      (std::vector<int64_t>{1, 3, 9, kBatchMax}));
  EXPECT_EQ(Batches(Parsed("axes: {model: resnet50, batch: {from: 7, to: 7, step: 1}}")),
            (std::vector<int64_t>{7}));
  EXPECT_EQ(Batches(Parsed("axes: {model: resnet50, batch: {from: 500000000, to: 1000000000, "
                           "times: 1000000000}}")),
            (std::vector<int64_t>{500000000}));
}

TEST(Expansion, RangesWithFaultsAreRefused) {
  EXPECT_EQ(Refusal("axes: {model: resnet50, batch: {from: 9, to: 1, step: 1}}"),
            "m.yaml:1:32: axes.batch: runs from 9 down to 1; swap them");
  EXPECT_EQ(Refusal("axes: {model: resnet50, batch: {from: 1, to: 9}}"),
            "m.yaml:1:32: axes.batch.step: this key is missing; a range is {from, to, step}, a "
            "doubling {from, to, times}");
  EXPECT_EQ(Refusal("axes: {model: resnet50, batch: {from: 1, to: 9, step: 1, times: 2}}"),
            "m.yaml:1:32: axes.batch: has both step and times; keep one of them");
  EXPECT_EQ(Refusal("axes: {model: resnet50, batch: {from: 1, to: 9, times: 1}}"),
            "m.yaml:1:56: axes.batch.times: 1 is outside 2 to 1000000000");
  EXPECT_EQ(
      Refusal("axes: {model: resnet50, lane: {from: 1, to: 9, step: 1}}"),
      "m.yaml:1:31: axes.lane: a map where a value of lane is wanted; ranges are for numbers");
}

TEST(Expansion, AZipGroupAdvancesTogetherAndFastest) {
  EXPECT_EQ(Labels(Parsed("axes: {precision: [fp32, tf32]}\n"
                          "zip:\n  - {batch: [8, 16], lane: [eager, graph]}\n"
                          "defaults: {model: resnet50}\n")),
            "0 fp32 8 eager\n1 fp32 16 graph\n2 tf32 8 eager\n3 tf32 16 graph\n");
}

TEST(Expansion, ZipFaultsAreRefused) {
  EXPECT_EQ(Refusal("axes: {model: resnet50}\nzip: [{batch: [8, 16], accumulate: [1]}]"),
            "m.yaml:2:7: zip[0]: lists of unequal length: batch has 2, accumulate has 1; make them "
            "equal");
  EXPECT_EQ(Refusal("axes: {model: resnet50, batch: 1}\nzip: [{batch: [8, 16]}]"),
            "m.yaml:2:8: zip[0].batch: this axis is given twice in axes and zip; keep one of them");
  EXPECT_EQ(Refusal("axes: {model: resnet50}\nzip: {batch: [8, 16]}"),
            "m.yaml:2:6: zip: a map where a list of groups is wanted; write `- {batch: [..], "
            "accumulate: [..]}`");
}

TEST(Expansion, ExcludeNeedsAllConditionsOfAnEntry) {
  EXPECT_EQ(Labels(Parsed("axes: {model: resnet50, precision: [fp32, tf32], batch: [1, 2, 3]}\n"
                          "exclude:\n  - {precision: fp32, batch: {above: 1}}\n"
                          "  - {batch: [2], precision: [tf32, amp-fp16]}\n")),
            "0 fp32 1 eager\n1 tf32 1 eager\n2 tf32 3 eager\n");
}

TEST(Expansion, BoundsOfConditions) {
  const auto kept = [](const std::string& bounds) {
    return Batches(Parsed(
        "axes: {model: resnet50, batch: [1, 2, 3, 4, max]}\ninclude: [{batch: " + bounds + "}]"));
  };
  EXPECT_EQ(kept("{above: 2}"), (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(kept("{below: 2}"), (std::vector<int64_t>{1}));
  EXPECT_EQ(kept("{from: 2, to: 3}"), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(kept("{from: 2, below: 4}"), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(kept("[max, 1]"), (std::vector<int64_t>{1, kBatchMax}));
}

TEST(Expansion, ConditionsMeetDefaultsOfTheModel) {
  EXPECT_EQ(
      Parsed("axes: {model: [resnet50, swin_l, gpt2_medium]}\nexclude: [{layout: contiguous}]")
          .specs.size(),
      1u);
  EXPECT_EQ(Parsed("axes: {model: [resnet50, swin_l]}\ninclude: [{image: 224, model: swin_l}]")
                .specs.size(),
            1u);
}

TEST(Expansion, ConditionFaultsAreRefused) {
  EXPECT_EQ(Refusal("axes: {model: resnet50}\nexclude: [{lane: {above: 1}}]"),
            "m.yaml:2:18: exclude[0].lane: bounds are for numbers; name values of lane");
  EXPECT_EQ(Refusal("axes: {model: resnet50}\nexclude: [{batch: {abov: 1}}]"),
            "m.yaml:2:20: exclude[0].batch.abov: unknown key; did you mean 'above'?");
  EXPECT_EQ(Refusal("axes: {model: resnet50}\nexclude: [{batch: {}}]"),
            "m.yaml:2:19: exclude[0].batch: an empty condition; write above, below, from or to");
  EXPECT_EQ(Refusal("axes: {model: resnet50}\nexclude: [{}]"),
            "m.yaml:2:11: exclude[0]: an empty entry; name a field");
}

TEST(Expansion, AnExclusionOfNothingIsNoticedAndOfEverythingRefused) {
  const Matrix matrix = Parsed("axes: {model: resnet50, batch: 1}\nexclude: [{batch: 2}]");
  EXPECT_EQ(matrix.warnings, (std::vector<std::string>{"m.yaml: exclude[0]: excludes nothing"}));
  EXPECT_EQ(Refusal("axes: {model: resnet50, batch: 1}\nexclude: [{batch: 1}]"),
            "m.yaml:1:1: axes: every point is excluded; nothing is left to measure");
  EXPECT_EQ(Refusal("axes: {model: resnet50, batch: 1}\ninclude: [{batch: 2}]"),
            "m.yaml:1:1: axes: exclude and include leave no point to measure");
  EXPECT_EQ(Refusal("axes: {model: resnet50, batch: 1}\ninclude: []"),
            "m.yaml:2:10: include: an empty list leaves nothing to measure; name a condition or "
            "leave the key out");
}

TEST(Expansion, ABatchThatAccumulateDoesNotDivideIsLeftOutAndCounted) {
  const Matrix matrix = Parsed("axes: {model: resnet50, batch: [8, 64, max], accumulate: [1, 16]}");
  EXPECT_EQ(Batches(matrix), (std::vector<int64_t>{8, 64, 64, kBatchMax, kBatchMax}));
  EXPECT_EQ(matrix.warnings,
            (std::vector<std::string>{
                "m.yaml: axes: 1 point left out: batch is not a multiple of accumulate"}));
  EXPECT_EQ(Refusal("axes: {model: resnet50, batch: 6, accumulate: 4}"),
            "m.yaml:1:1: axes: no point is left: batch is not a multiple of accumulate");
}

TEST(Expansion, StrongScalingNeedsABatchThatTheRanksDivide) {
  const Matrix matrix =
      Parsed("axes: {model: resnet50, scaling: strong, batch: 64, gpus: [1, 2, 3], nodes: [1, 2]}");
  std::string sizes;
  for (const Spec& spec : matrix.specs) sizes += fmt::format("{} ", spec.WorldSize());
  EXPECT_EQ(sizes, "1 2 2 4 ");
}

TEST(Expansion, ASpecGivenTwiceIsMeasuredOnce) {
  const Matrix matrix =
      Parsed("axes: {model: resnet50, batch: [8, 8, {from: 8, to: 16, step: 8}]}");
  EXPECT_EQ(Batches(matrix), (std::vector<int64_t>{8, 16}));
  EXPECT_EQ(matrix.warnings,
            (std::vector<std::string>{"m.yaml: axes: 2 specs are given twice; each "
                                      "is measured once"}));
}

TEST(Expansion, NamedBlocksFollowEachOtherAndShareWhatTheFileSays) {
  const Matrix matrix = Parsed(R"(
defaults: {model: resnet50, precision: tf32}
exclude: [{batch: 2}]
stop: {max_seconds: 30}
thermal: cold
matrices:
  one:
    axes: {batch: [1, 2]}
  two:
    axes: {batch: [2, 3]}
    defaults: {precision: fp32}
    exclude: [{batch: 9}, {batch: 3, lane: graph}]
    stop: {min_seconds: 2}
    thermal: settled
    include: [{batch: 3}]
)");
  EXPECT_EQ(Labels(matrix), "0 tf32 1 eager\n1 fp32 3 eager\n");
  EXPECT_EQ(matrix.specs[0].thermal, "cold");
  EXPECT_EQ(matrix.specs[1].thermal, "settled");
  EXPECT_DOUBLE_EQ(matrix.specs[1].stop.max_seconds, 30);
  EXPECT_DOUBLE_EQ(matrix.specs[1].stop.min_seconds, 2);
  EXPECT_EQ(matrix.warnings.size(), 2u);
}

TEST(Expansion, BlocksWithFaultsAreRefused) {
  EXPECT_EQ(Refusal("axes: {model: resnet50}\nmatrices: {a: {axes: {model: resnet50}}}"),
            "m.yaml:1:1: axes: stands beside matrices; move it into one of them");
  EXPECT_EQ(Refusal("matrices: {a: {axis: {model: resnet50}, repeat: 1}}"),
            "m.yaml:1:16: matrices.a.axis: unknown key; did you mean 'axes'?\n"
            "m.yaml:1:41: matrices.a.repeat: unknown key; known: defaults, exclude, stop, limits, "
            "thermal, colocate, data, axes, zip, include");
  EXPECT_EQ(Refusal("matrices: []"),
            "m.yaml:1:11: matrices: a list where a map of named blocks is wanted");
  EXPECT_EQ(Refusal("matrices: {}"), "m.yaml:1:11: matrices: 0 blocks; write 1 to 1000");
}

TEST(Expansion, OneSpecWithTwoStoppingRulesIsRefused) {
  EXPECT_EQ(Refusal("matrices:\n  a: {axes: {model: resnet50}}\n"
                    "  b: {axes: {model: resnet50}, stop: {min_seconds: 1}}\n"),
            "m.yaml:3:7: matrices.b.axes: an earlier block has resnet50 fp32 batch 1 too, with "
            "another stop or limits; exclude it in one of them");
}

TEST(Expansion, MoreThanTenThousandCellsNeedConsent) {
  if (ASSAY_SANITIZED_THREAD) GTEST_SKIP() << "long there, and one thread";
  const std::string text =
      "axes: {model: resnet50, batch: {from: 1, to: 4000, step: 1}}\nrepeat: 3";
  EXPECT_EQ(
      Refusal(text),
      "m.yaml:1:1: axes: 12000 cells (4000 specs, each 3 times), more than 10000; shorten the "
      "axes or agree with --yes");
  EXPECT_EQ(Parsed(text, true).specs.size(), 4000u);
  EXPECT_EQ(Parsed("axes: {model: resnet50, batch: {from: 1, to: 10000, step: 1}}\nrepeat: 1")
                .CellsPerTarget(),
            kMaxCellsUnasked);
}

TEST(Expansion, HugeRangesAndGridsAreCountedNotExpanded) {
  if (ASSAY_SANITIZED_THREAD) GTEST_SKIP() << "long there, and one thread";
  EXPECT_EQ(Refusal("axes: {model: resnet50, batch: {from: 1, to: 1000000000000000000, step: 1}}"),
            "m.yaml:1:46: axes.batch.to: 1000000000000000000 is outside 1 to 1000000000");
  EXPECT_EQ(Refusal("axes: {model: resnet50, batch: {from: 1, to: 1000000000, step: 1}}"),
            "m.yaml:1:32: axes.batch: is a range of 1000000000 values, more than 10000; take a "
            "larger step");
  const std::string nines = "{from: 1, to: 9999, step: 1}";
  const auto grid = ParseMatrix("axes: {model: resnet50, batch: " + nines +
                                    ", accumulate: " + nines + ", nodes: " + nines + "}",
                                "m.yaml", {true});
  EXPECT_EQ(Message(grid.status()),
            "m.yaml:1:1: axes: the grid has more than 1000000 points before exclusion; shorten the "
            "axes");
  const auto specs =
      ParseMatrix("axes: {model: resnet50, batch: " + nines + ", gpus: {from: 1, to: 20, step: 1}}",
                  "m.yaml", {true});
  EXPECT_EQ(Message(specs.status()), "m.yaml:1:1: axes: more than 100000 specs; split the matrix");
}

TEST(Expansion, TooManyConditionsForTheGridAreRefused) {
  std::string text =
      "axes: {model: resnet50, batch: {from: 1, to: 10000, step: 1}, gpus: [1, 2, 3, "
      "4]}\nexclude:\n";
  for (int i = 0; i < 900; ++i) text += "  - {batch: [1, 2]}\n";
  EXPECT_EQ(Refusal(text),
            "m.yaml:1:1: exclude: more than 50000000 conditions to check (40000 points); shorten "
            "the axes instead");
}

TEST(Expansion, KeysDifferAndIndexCounts) {
  const Matrix matrix = Parsed(
      "axes:\n  model: [resnet50, swin_l]\n  mode: [train, infer]\n  batch: [1, 2, max]\n"
      "  accumulate: [1, 2]\n  scaling: [weak, strong]\n  image: [64, 224]\n");
  std::set<std::string> keys;
  for (size_t i = 0; i < matrix.specs.size(); ++i) {
    EXPECT_EQ(matrix.specs[i].index, i);
    keys.insert(matrix.specs[i].key);
  }
  EXPECT_EQ(keys.size(), matrix.specs.size());
}

}  // namespace
}  // namespace assay
