// The key of a spec: the same on every machine and in every later version.
#include <gtest/gtest.h>

#include <string>

#include "common/matrix/matrix.h"
#include "tests/unit/matrix/comma_locale.h"
#include "tests/unit/matrix/matrix_text.h"

namespace assay {
namespace {

std::string KeyOf(std::string_view text) {
  const Matrix matrix = Parsed(text);
  EXPECT_EQ(matrix.specs.size(), 1u);
  return matrix.specs.empty() ? "" : matrix.specs[0].key;
}

// Stored results are found by these: a change here orphans every one of them.
TEST(SpecKey, GoldenKeys) {
  EXPECT_EQ(KeyOf("axes: {model: resnet50}"), "4c91cfd0bfa8702b");
  EXPECT_EQ(KeyOf("axes: {model: resnet50, precision: amp-fp16, batch: 256}"), "ae68f006a7872419");
  EXPECT_EQ(KeyOf("axes: {model: swin_l, mode: infer, batch: max, stack: libtorch-2.7.1}"),
            "78b785a85634cbf5");
  EXPECT_EQ(KeyOf("axes: {model: gpt2_medium, accumulate: 4, batch: 64, lane: graph, gpus: 8, "
                  "nodes: 2, scaling: strong}\nthermal: cold\ncolocate: all\ndata: host"),
            "7a479a971485beb8");
}

TEST(SpecKey, CanonicalTextIsSortedWithoutDefaults) {
  EXPECT_EQ(CanonicalSpecText(Parsed("axes: {model: resnet50}").specs[0]), "model=resnet50\n");
  EXPECT_EQ(
      CanonicalSpecText(Parsed("axes: {precision: tf32, model: swin_l, batch: max, image: 384, "
                               "layout: channels-last}\nthermal: cold")
                            .specs[0]),
      "batch=max\nimage=384x384\nlayout=channels-last\nmodel=swin_l\nprecision=tf32\n"
      "thermal=cold\n");
}

TEST(SpecKey, AnAxisWithItsDefaultChangesNothing) {
  const std::string key = KeyOf("axes: {model: swin_l}");
  for (const char* axis : {"stack: newest", "mode: train", "precision: fp32", "batch: 1",
                           "lane: eager", "layout: contiguous", "accumulate: 1", "scaling: weak",
                           "image: 224", "image: 224x224", "gpus: 1", "nodes: 1"}) {
    EXPECT_EQ(KeyOf("axes: {model: swin_l, " + std::string(axis) + "}"), key) << axis;
    EXPECT_EQ(KeyOf("axes: {model: swin_l}\ndefaults: {" + std::string(axis) + "}"), key) << axis;
  }
  for (const char* setting : {"thermal: settled", "colocate: none", "data: synthetic"}) {
    EXPECT_EQ(KeyOf("axes: {model: swin_l}\n" + std::string(setting)), key) << setting;
  }
}

TEST(SpecKey, StopLimitsAndRepeatChangeNothing) {
  EXPECT_EQ(KeyOf("axes: {model: swin_l}\nstop: {max_seconds: 9}\nlimits: {cell_seconds: 99}\n"
                  "repeat: 9\nname: x\nseed: 4"),
            KeyOf("axes: {model: swin_l}"));
}

TEST(SpecKey, OrderOfAxesChangesNothing) {
  EXPECT_EQ(KeyOf("axes: {model: swin_l, batch: 4, lane: graph}"),
            KeyOf("axes: {lane: graph, batch: 4, model: swin_l}"));
}

TEST(SpecKey, DoesNotFollowTheLocale) {
  const CommaLocale comma;
  EXPECT_EQ(KeyOf("axes: {model: resnet50, image: 2048}"), "8ebd5372a29d2052");
  EXPECT_EQ(KeyOf("axes: {model: resnet50, precision: amp-fp16, batch: 256}"), "ae68f006a7872419");
}

}  // namespace
}  // namespace assay
