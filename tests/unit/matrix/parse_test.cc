// The checker of the matrix file: each fault with its place, path and remedy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/matrix/matrix.h"
#include "tests/unit/matrix/matrix_text.h"

namespace assay {
namespace {

using ::testing::StartsWith;

TEST(ParseMatrix, ReadsTheExampleOfTheManual) {
  const Matrix matrix = Parsed(R"(
name: cards-cnn
baseline: RTX 2080 Ti
select: {cards: all, placement: per-card}
axes:
  model: [resnet50, se_resnext101_32x4d]
  mode: [train]
  precision: [fp32, amp-fp16]
  batch: [64, 128, {from: 192, to: 640, step: 64}]
  lane: [eager, graph]
exclude:
  - {precision: fp32, batch: {above: 256}}
repeat: 3
stop: {confidence: 0.01, min_seconds: 5, max_seconds: 60}
limits: {cell_seconds: 900}
)");
  EXPECT_EQ(matrix.name, "cards-cnn");
  EXPECT_EQ(matrix.baseline, "RTX 2080 Ti");
  // 2 models x 2 lanes x (4 batches of fp32, 10 of amp-fp16).
  EXPECT_EQ(matrix.specs.size(), 56u);
  EXPECT_EQ(matrix.CellsPerTarget(), 168u);
  EXPECT_TRUE(matrix.warnings.empty());
}

TEST(ParseMatrix, HasTheStatedDefaults) {
  const Matrix matrix = Parsed("axes: {model: resnet50}");
  EXPECT_EQ(matrix.name, "m");
  EXPECT_EQ(matrix.repeat, 3);
  EXPECT_FALSE(matrix.seed.has_value());
  EXPECT_TRUE(matrix.select.all_cards);
  EXPECT_EQ(matrix.select.placement, Placement::kPerCard);
  EXPECT_DOUBLE_EQ(matrix.select.wait_seconds, 60);
  EXPECT_FALSE(matrix.select.include_late);
  ASSERT_EQ(matrix.specs.size(), 1u);
  const Spec& spec = matrix.specs[0];
  EXPECT_EQ(spec.mode, "train");
  EXPECT_EQ(spec.precision, "fp32");
  EXPECT_EQ(spec.batch, 1);
  EXPECT_EQ(spec.layout, "channels-last");
  EXPECT_EQ(spec.image, "224x224");
  EXPECT_EQ(spec.thermal, "settled");
  EXPECT_DOUBLE_EQ(spec.limits.cell_seconds, 900);
}

TEST(ParseMatrix, DefaultsOfAModelAreItsOwn) {
  const Matrix matrix = Parsed("axes: {model: [fasterrcnn_resnet50_fpn, gpt2_medium, swin_l]}");
  ASSERT_EQ(matrix.specs.size(), 3u);
  EXPECT_EQ(matrix.specs[0].image, "800x1333");
  EXPECT_EQ(matrix.specs[1].image, "");
  EXPECT_EQ(matrix.specs[1].layout, "contiguous");
  EXPECT_EQ(matrix.specs[2].layout, "contiguous");
}

TEST(ParseMatrix, UnknownKeysNameTheNearest) {
  EXPECT_EQ(Refusal("axis: {model: resnet50}\naxes: {model: resnet50}\n"),
            "m.yaml:1:1: axis: unknown key; did you mean 'axes'?");
  EXPECT_EQ(Refusal("axes: {model: resnet50, prescision: fp32}"),
            "m.yaml:1:25: axes.prescision: unknown key; did you mean 'precision'?");
  EXPECT_EQ(Refusal("axes: {model: resnet50}\nselect: {placment: per-gpu}"),
            "m.yaml:2:10: select.placment: unknown key; did you mean 'placement'?");
  EXPECT_EQ(Refusal("axes: {model: resnet50}\nexclude: [{btach: 1}]"),
            "m.yaml:2:12: exclude[0].btach: unknown key; did you mean 'batch'?");
  EXPECT_EQ(Refusal("axes: {model: resnet50, thermal: cold}"),
            "m.yaml:1:25: axes.thermal: unknown key; known: stack, model, mode, precision, batch, "
            "lane, layout, accumulate, scaling, image, gpus, nodes");
}

TEST(ParseMatrix, UnknownValuesNameTheNearest) {
  EXPECT_EQ(Refusal("axes: {model: [resnet5]}"),
            "m.yaml:1:16: axes.model[0]: unknown model 'resnet5'; did you mean 'resnet50'?");
  EXPECT_EQ(Refusal("axes: {model: resnet50, precision: amp_fp16}"),
            "m.yaml:1:36: axes.precision: unknown precision 'amp_fp16'; did you mean 'amp-fp16'?");
  EXPECT_EQ(Refusal("axes: {model: resnet50, lane: fast}"),
            "m.yaml:1:31: axes.lane: unknown lane 'fast'; known: eager, graph, fused, compile");
  EXPECT_EQ(Refusal("axes: {model: resnet50}\ndefaults: {scaling: weka}"),
            "m.yaml:2:21: defaults.scaling: unknown scaling 'weka'; did you mean 'weak'?");
  EXPECT_EQ(Refusal("axes: {model: resnet50}\ncolocate: some"),
            "m.yaml:2:11: colocate: unknown colocate 'some'; known: none, all");
}

// Case 49's neighbours: what YAML readers disagree on.
TEST(ParseMatrix, Case49NumbersThatReadersDisagreeOnAreRefused) {
  EXPECT_EQ(Refusal("axes: {model: resnet50, batch: [064]}"),
            "m.yaml:1:33: axes.batch[0]: '064' has a leading zero, which some readers take for "
            "octal; write 64");
  EXPECT_EQ(Refusal("axes: {model: resnet50, batch: no}"),
            "m.yaml:1:32: axes.batch: 'no' is a yes/no word, not a number; write a whole number");
  EXPECT_EQ(Refusal("axes: {model: resnet50, batch: 1e3}"),
            "m.yaml:1:32: axes.batch: '1e3' has an exponent; write 1000");
  EXPECT_EQ(Refusal("axes: {model: resnet50, batch: mx}"),
            "m.yaml:1:32: axes.batch: 'mx' is not a number; did you mean 'max'?");
  EXPECT_EQ(Refusal("axes: {model: no}"),
            "m.yaml:1:15: axes.model: 'no' is a yes/no word; write one of resnet50_v1, resnet50, "
            "resnext101_32x4d, se_resnext101_32x4d, swin_l, fasterrcnn_resnet50_fpn, gpt2_medium, "
            "gemm, gemm_fp16_accumulate, copy, host_to_device, device_to_host, peer");
}

TEST(ParseMatrix, AModelOfOnesOwnHasAPrefix) {
  const Matrix matrix = Parsed("axes: {model: [own/resnet-9_v1.2, resnet50]}");
  ASSERT_EQ(matrix.specs.size(), 2u);
  EXPECT_EQ(matrix.specs[0].model, "own/resnet-9_v1.2");
  EXPECT_EQ(matrix.specs[0].image, "");
  EXPECT_EQ(matrix.specs[0].layout, "channels-last");
  EXPECT_EQ(Refusal("axes: {model: own/}"),
            "m.yaml:1:15: axes.model: 'own/' is no model of one's own; write own/ and 1 to 64 "
            "letters, digits and . _ + -");
  EXPECT_NE(Refusal("axes: {model: 'own/a b'}"), "");
  EXPECT_NE(Refusal("axes: {model: mine/a}"), "");
}

TEST(ParseMatrix, WrongTypesAreNamed) {
  EXPECT_EQ(Refusal("hello"),
            "m.yaml:1:1: (file): 'hello' where a map is wanted; write `key: value`");
  EXPECT_EQ(Refusal("- axes"),
            "m.yaml:1:1: (file): a list where a map is wanted; write `key: value`");
  EXPECT_EQ(Refusal("~"),
            "m.yaml:1:1: (file): the file is empty; write at least `axes: {model: "
            "resnet50}`");
  EXPECT_EQ(Refusal("axes: [model]"),
            "m.yaml:1:7: axes: a list where a map is wanted; write `key: value`");
  EXPECT_EQ(Refusal("axes: {model: resnet50, batch: }"),
            "m.yaml:1:32: axes.batch: nothing where a whole number is wanted");
  EXPECT_EQ(Refusal("axes: {model: []}"),
            "m.yaml:1:15: axes.model: an empty list; name a value or leave the key out");
  EXPECT_EQ(Refusal("axes: {model: resnet50}\nrepeat: [3]"),
            "m.yaml:2:9: repeat: a list where a whole number is wanted");
  EXPECT_EQ(Refusal("axes: {model: resnet50}\nexclude: {batch: 1}"),
            "m.yaml:2:10: exclude: a map where a list of conditions is wanted; write `- {model: "
            "...}`");
}

TEST(ParseMatrix, NumbersOutsideTheirBoundsAreNamed) {
  EXPECT_EQ(Refusal("axes: {model: resnet50, batch: 0}"),
            "m.yaml:1:32: axes.batch: 0 is outside 1 to 1000000000");
  EXPECT_EQ(Refusal("axes: {model: resnet50}\nrepeat: 0"),
            "m.yaml:2:9: repeat: 0 is outside 1 to 1000");
  EXPECT_EQ(Refusal("axes: {model: resnet50}\nstop: {confidence: 2}"),
            "m.yaml:2:20: stop.confidence: 2 is outside 0.000001 to 1");
  EXPECT_EQ(Refusal("axes: {model: resnet50}\nstop: {min_seconds: 90}"),
            "m.yaml:2:7: stop: max_seconds 60 is below min_seconds 90; raise it");
  EXPECT_EQ(Refusal("axes: {model: resnet50}\nlimits: {cell_seconds: 4}"),
            "m.yaml:2:9: limits.cell_seconds: 4 is not above stop.min_seconds 5; raise it");
  EXPECT_EQ(
      Refusal("axes: {model: resnet50}\nselect: {wait: 60}"),
      "m.yaml:2:16: select.wait: '60' has no unit; write a time with its unit, such as 500ms, "
      "60s, 5m or 1h");
}

TEST(ParseMatrix, KeysWithoutLettersAreShown) {
  const std::string known = "unknown key; known: ";
  EXPECT_THAT(Refusal("'': 1\naxes: {model: resnet50}"), StartsWith("m.yaml:1:1: '': " + known));
  EXPECT_THAT(Refusal("~: 1\naxes: {model: resnet50}"), StartsWith("m.yaml:1:1: null: " + known));
  EXPECT_THAT(Refusal("axes: {model: resnet50, '': 1}"), StartsWith("m.yaml:1:25: axes.'': "));
  EXPECT_THAT(Refusal("axes: {model: resnet50}\nexclude: [{~: 1}]"),
              StartsWith("m.yaml:2:12: exclude[0].null: "));
  EXPECT_EQ(Refusal("'': 1\n'': 2\n"), "m.yaml:2:1: '': this key is given twice; keep one of them");
  EXPECT_EQ(Refusal("matrices: {'': {axes: {model: resnet50}}}"),
            "m.yaml:1:12: matrices.'': a block without a name; give it one");
}

TEST(ParseMatrix, AMisspeltKeyIsOneFault) {
  EXPECT_EQ(Refusal("axis: {model: resnet50}"),
            "m.yaml:1:1: axis: unknown key; did you mean 'axes'?");
}

TEST(ParseMatrix, NothingIsSoughtWhereItsKeyStands) {
  EXPECT_EQ(Refusal("axes: {model: resnet50}\nstop:\nrepeat: 1\n"),
            "m.yaml:2:1: stop: nothing where a map is wanted; write `key: value`");
}

TEST(ParseMatrix, NumbersOfAnOddFormAreShownAsWrittenWithWhatToWrite) {
  const auto confidence = [](const std::string& text) {
    const std::string refusal =
        Refusal("axes: {model: resnet50}\nstop: {confidence: " + text + "}");
    const std::string head = "m.yaml:2:20: stop.confidence: ";
    EXPECT_THAT(refusal, StartsWith(head));
    return refusal.substr(std::min(head.size(), refusal.size()));
  };
  const std::string zeros = "0." + std::string(400, '0');
  EXPECT_EQ(confidence("0.0000000000000001"), "0.0000000000000001 is outside 0.000001 to 1");
  EXPECT_EQ(confidence(zeros + "1"), "'" + zeros.substr(0, 60) + "...' is too small");
  EXPECT_EQ(confidence("-0"), "-0 is outside 0.000001 to 1");
  EXPECT_EQ(confidence("1e-2"), "'1e-2' has an exponent; write it out");
  EXPECT_EQ(confidence(".01"), "'.01' begins with a point; write 0.01");
  EXPECT_EQ(confidence("+1"), "'+1' has a sign; write 1");
}

TEST(ParseMatrix, WhatIsNoValueIsQuotedWithWhatIsWanted) {
  const std::string axes = "axes: {model: resnet50}\n";
  EXPECT_EQ(Refusal(axes + "select: {wait: -1s}"),
            "m.yaml:2:16: select.wait: -1s is outside 0s to 168h");
  EXPECT_EQ(Refusal(axes + "select: {wait: 1d}"),
            "m.yaml:2:16: select.wait: '1d' ends with none of the units ms, s, m and h; write a "
            "time with its unit, such as 500ms, 60s, 5m or 1h");
  EXPECT_EQ(Refusal(axes + "select: {late: yes}"),
            "m.yaml:2:16: select.late: 'yes' is a yes/no word; write one of include, ignore");
  EXPECT_EQ(Refusal(axes + "select: {cards: RTX 3090}"),
            "m.yaml:2:17: select.cards: 'RTX 3090' where all or a list of cards is wanted; write "
            "all or [RTX 3090]");
  EXPECT_EQ(Refusal(axes + "select: {cards: [all]}"),
            "m.yaml:2:18: select.cards[0]: 'all' stands alone; write `cards: all`");
  EXPECT_EQ(Refusal(axes + "name: ' '"),
            "m.yaml:2:7: name: ' ' is no name; use 1 to 100 bytes on one line");
  EXPECT_EQ(Refusal("axes: {model: resnet50, image: big}"),
            "m.yaml:1:32: axes.image: 'big' is no image size; write HEIGHTxWIDTH, such as "
            "800x1333, each side 1 to 65536");
}

TEST(ParseMatrix, ImagesAreSquaresOrHeightByWidth) {
  const Matrix matrix = Parsed("axes: {model: resnet50, image: [224, 800x1333, '1024x1024']}");
  ASSERT_EQ(matrix.specs.size(), 3u);
  EXPECT_EQ(matrix.specs[0].image, "224x224");
  EXPECT_EQ(matrix.specs[1].image, "800x1333");
  EXPECT_EQ(Refusal("axes: {model: resnet50, image: 800X1333}"),
            "m.yaml:1:32: axes.image: '800X1333' is no image size; write HEIGHTxWIDTH, such as "
            "800x1333, each side 1 to 65536");
}

TEST(ParseMatrix, CollectsSeveralFaultsInTheOrderOfTheFile) {
  EXPECT_EQ(Refusal("repeat: three\naxes:\n  batch: 064\n  model: resnet5\nnam: x\n"),
            "m.yaml:1:9: repeat: 'three' is not a number; write a whole number\n"
            "m.yaml:3:10: axes.batch: '064' has a leading zero, which some readers take for octal; "
            "write 64\n"
            "m.yaml:4:10: axes.model: unknown model 'resnet5'; did you mean 'resnet50'?\n"
            "m.yaml:5:1: nam: unknown key; did you mean 'name'?");
}

TEST(ParseMatrix, StopsAtTwentyFaults) {
  std::string text = "axes:\n  model: [";
  for (int i = 0; i < 1000; ++i) text += "x" + std::to_string(i) + ",\n    ";
  EXPECT_EQ(CountLines(Refusal(text + "]\n")), 20u);
}

TEST(ParseMatrix, AMatrixWithoutAModelIsRefused) {
  EXPECT_EQ(Refusal("axes: {batch: 1}"),
            "m.yaml:1:1: axes: no model; name at least one of resnet50_v1, resnet50, "
            "resnext101_32x4d, se_resnext101_32x4d, swin_l, fasterrcnn_resnet50_fpn, gpt2_medium, "
            "gemm, gemm_fp16_accumulate, copy, host_to_device, device_to_host, peer");
  EXPECT_EQ(Refusal("name: x"), Refusal("name: y"));
  EXPECT_EQ(Refusal("defaults: {model: resnet50}"), "");
}

TEST(ParseMatrix, CardsGetTheCataloguesName) {
  const Matrix matrix = Parsed(
      "baseline: nvidia geforce rtx 2080 ti\n"
      "select: {cards: [RTX 3080, h200, Some Card], placement: per-gpu, wait: 2m, late: include}\n"
      "axes: {model: resnet50}\n");
  EXPECT_EQ(matrix.baseline, "RTX 2080 Ti");
  EXPECT_EQ(matrix.select.cards,
            (std::vector<std::string>{"RTX 3080 10GB", "RTX 3080 12GB", "H200", "Some Card"}));
  EXPECT_TRUE(matrix.select.Selects("RTX 3080 12GB"));
  EXPECT_TRUE(matrix.select.Selects("NVIDIA Some Card"));
  EXPECT_FALSE(matrix.select.Selects("RTX 3080 Ti"));
  EXPECT_EQ(matrix.select.placement, Placement::kPerGpu);
  EXPECT_DOUBLE_EQ(matrix.select.wait_seconds, 120);
  EXPECT_TRUE(matrix.select.include_late);
}

TEST(ParseMatrix, Case46ARunMayHaveALimit) {
  EXPECT_DOUBLE_EQ(Parsed("axes: {model: resnet50}\n").select.run_limit_seconds, 0);
  EXPECT_DOUBLE_EQ(Parsed("axes: {model: resnet50}\nrun_limit: 8h\n").select.run_limit_seconds,
                   8 * 3600);
  EXPECT_EQ(Refusal("axes: {model: resnet50}\nrun_limit: 500ms"),
            "m.yaml:2:12: run_limit: 500ms is outside 1s to 720h");
  EXPECT_EQ(Refusal("matrices: {a: {axes: {model: resnet50}, run_limit: 8h}}").find("m.yaml:1:"),
            0u);
}

TEST(ParseMatrix, ARunMayHaveAPriority) {
  EXPECT_EQ(Parsed("axes: {model: resnet50}\n").select.priority, 0);
  EXPECT_EQ(Parsed("axes: {model: resnet50}\npriority: -5\n").select.priority, -5);
  EXPECT_EQ(Refusal("axes: {model: resnet50}\npriority: 101"),
            "m.yaml:2:11: priority: 101 is outside -100 to 100");
  EXPECT_EQ(Refusal("axes: {model: resnet50}\npriority: high").find("m.yaml:2:11: priority: "), 0u);
}

TEST(ParseMatrix, ABaselineOfTwoProductsIsRefusedAndAMisspeltOneNoticed) {
  EXPECT_EQ(Refusal("axes: {model: resnet50}\nbaseline: RTX 3080"),
            "m.yaml:2:11: baseline: 'RTX 3080' is 2 products; write 'RTX 3080 10GB' or 'RTX 3080 "
            "12GB'");
  const Matrix matrix = Parsed("axes: {model: resnet50}\nbaseline: RTX 2008 Ti");
  ASSERT_EQ(matrix.warnings.size(), 1u);
  EXPECT_EQ(
      matrix.warnings[0],
      "m.yaml: baseline: the catalogue has no card 'RTX 2008 Ti'; did you mean 'RTX 2080 Ti'?");
}

TEST(ParseMatrix, AFileNameIsShownFitForOneLine) {
  const auto matrix = ParseMatrix("x", "a\nb\xFF", {});
  EXPECT_EQ(Message(matrix.status()),
            "a?b?:1:1: (file): 'x' where a map is wanted; write `key: value`");
}

}  // namespace
}  // namespace assay
