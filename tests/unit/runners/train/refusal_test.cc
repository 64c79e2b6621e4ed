#include "runners/train/refusal.h"

#include <gtest/gtest.h>

#include "runners/train/models/registry.h"

namespace assay::train {
namespace {

CellFile CpuCell() {
  CellFile cell;
  cell.spec.model = "resnet50";
  cell.spec.batch = 4;
  cell.device_kind = "cpu";
  return cell;
}

std::string ReasonOf(const CellFile& cell) {
  const auto refusal = Refuse(cell);
  if (!refusal) return "runs";
  EXPECT_EQ(refusal->outcome, "unsupported");
  EXPECT_FALSE(refusal->message.empty());
  return refusal->reason;
}

TEST(Refuse, LetsAPlainCellPass) { EXPECT_EQ(ReasonOf(CpuCell()), "runs"); }

TEST(Refuse, ModelThatThisStackLacks) {
  CellFile cell = CpuCell();
  cell.spec.model = "resnet51";
  EXPECT_EQ(ReasonOf(cell), "model_not_in_stack");
}

TEST(Refuse, LanesThatThisStackLacks) {
  CellFile cell = CpuCell();
  cell.spec.lane = "fused";
  EXPECT_EQ(ReasonOf(cell), "lane_not_in_stack");
}

TEST(Refuse, GraphsOnACpuAloneAndNeverByRunningEager) {
  CellFile cell = CpuCell();
  cell.spec.lane = "graph";
  EXPECT_EQ(ReasonOf(cell), "lane_not_in_stack");
  EXPECT_NE(Refuse(cell)->message.find("CUDA Graph"), std::string::npos);
  cell.device_kind = "cuda";
  EXPECT_EQ(ReasonOf(cell), "runs");
}

TEST(Refuse, AGraphOfAModelWhoseShapesDependOnItsData) {
  CellFile cell = CpuCell();
  cell.spec.model = "fasterrcnn_resnet50_fpn";
  EXPECT_EQ(ReasonOf(cell), "runs");
  cell.device_kind = "cuda";
  cell.spec.lane = "graph";
  EXPECT_EQ(ReasonOf(cell), "lane_not_in_stack");
  EXPECT_NE(Refuse(cell)->message.find("depends on the data"), std::string::npos);
}

TEST(Refuse, DataThatHasNowhereToBeCopied) {
  CellFile cell = CpuCell();
  cell.spec.data = "host";
  EXPECT_EQ(ReasonOf(cell), "value_not_in_stack");
  cell.device_kind = "cuda";
  EXPECT_EQ(ReasonOf(cell), "runs");
  cell.spec.data = "tape";
  EXPECT_EQ(ReasonOf(cell), "value_not_in_stack");
}

TEST(Refuse, OtherModes) {
  CellFile cell = CpuCell();
  cell.spec.mode = "sing";
  EXPECT_EQ(ReasonOf(cell), "mode_not_in_stack");
}

TEST(Refuse, SeveralRanks) {
  CellFile cell = CpuCell();
  cell.world_size = 2;
  EXPECT_EQ(ReasonOf(cell), "value_not_in_stack");
}

TEST(Refuse, ImageThatIsNoSize) {
  for (const char* image : {"224", "x224", "224x", "0x224", "224x224x3", "-224x224", "16x16",
                            "99999999999999999999x224", "224 x 224"}) {
    CellFile cell = CpuCell();
    cell.spec.image = image;
    EXPECT_EQ(ReasonOf(cell), "value_not_in_stack") << image;
  }
}

TEST(Refuse, PrecisionsThatACpuLacks) {
  for (const char* precision : {"tf32", "amp-fp16", "int4"}) {
    CellFile cell = CpuCell();
    cell.spec.precision = precision;
    EXPECT_EQ(ReasonOf(cell), "unsupported_precision") << precision;
  }
}

TEST(RefusePrecision, Tf32AndBfloat16NeedAmpere) {           // cases 30 and 32
  EXPECT_TRUE(RefusePrecision("tf32", 75).has_value());      // RTX 2080 Ti
  EXPECT_TRUE(RefusePrecision("amp-bf16", 70).has_value());  // V100
  EXPECT_FALSE(RefusePrecision("amp-fp16", 61).has_value());
  EXPECT_FALSE(RefusePrecision("amp-fp16", 53).has_value());
  EXPECT_TRUE(RefusePrecision("amp-fp16", 52).has_value());
  EXPECT_FALSE(RefusePrecision("fp32", 37).has_value());
  EXPECT_FALSE(RefusePrecision("tf32", 80).has_value());
  EXPECT_FALSE(RefusePrecision("amp-bf16", 90).has_value());
}

TEST(ParseImage, GivesTheModelsDefaultForNone) {
  const ModelEntry* model = FindModel("resnet50");
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(ParseImage("", *model)->height, 224);
  EXPECT_EQ(ParseImage("160x192", *model)->width, 192);
}

TEST(Registry, ResNet50FlopsAreThoseOfThePaperTimesTwo) {
  const ModelEntry* model = FindModel("resnet50");
  ASSERT_NE(model, nullptr);
  // 4.09 G multiply-adds, as TorchVision lists for its ResNet-50 weights.
  EXPECT_NEAR(static_cast<double>(model->forward_flops(224, 224)), 2 * 4.09e9, 0.01e9);
}

}  // namespace
}  // namespace assay::train
