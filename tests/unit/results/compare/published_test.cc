#include "common/results/compare/published.h"

#include <cmath>
#include <fstream>
#include <iterator>

#include "compared.h"

namespace assay::compare {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

std::string TextOf(const std::string& name) {
  std::ifstream in(std::string(ASSAY_SOURCE_DIR) + "/catalog/published/" + name);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

Cells CellsOf(const std::string& csv, const std::string& name = "f.csv") {
  Cells cells;
  const absl::Status status =
      AddPublished(csv, name, [](const std::string& card) { return card; }, cells);
  EXPECT_TRUE(status.ok()) << status;
  return cells;
}

std::string RefusalOf(const std::string& csv) {
  Cells cells;
  const absl::Status status =
      AddPublished(csv, "f.csv", [](const std::string& card) { return card; }, cells);
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(cells.cells().empty());  // none is half taken
  return std::string(status.message());
}

Comparison Compared(const std::string& file, const Options& options) {
  const Cells cells = CellsOf(TextOf(file), file);
  absl::StatusOr<Comparison> comparison = Compare(cells, options);
  EXPECT_TRUE(comparison.ok()) << comparison.status();
  return comparison.ok() ? *std::move(comparison) : Comparison{};
}

double RatioOf(const Comparison& comparison, const std::string& side, const std::string& workload) {
  for (const WorkloadRow& row : SideOf(comparison, side).workloads) {
    if (row.workload == workload && row.ratio) return row.ratio->value;
  }
  ADD_FAILURE() << "no ratio of " << side << " for " << workload;
  return 0;
}

// A100 over V100, PyTorch 21.03, AMP, one GPU: 2470 over 1200, 1211 over 587, 855 over 443.
TEST(Published, AnA100IsTwiceAV100InAmpByModel) {
  Options options;
  options.baseline = "V100-SXM2-16GB";
  options.where = {{"stack", "PyTorch NGC 21.03"}, {"precision", "amp-fp16"}, {"gpus", "1"}};
  const Comparison comparison = Compared("nvidia_convnets_train.csv", options);
  const char* a100 = "A100-SXM4-80GB";
  EXPECT_NEAR(RatioOf(comparison, a100, "resnet50 train"), 2470.0 / 1200, 1e-9);
  EXPECT_NEAR(RatioOf(comparison, a100, "resnext101_32x4d train"), 1211.0 / 587, 1e-9);
  EXPECT_NEAR(RatioOf(comparison, a100, "se_resnext101_32x4d train"), 855.0 / 443, 1e-9);
  const SideRow row = SideOf(comparison, a100);
  EXPECT_NEAR(row.geomean->value, std::cbrt(2470.0 / 1200 * 1211 / 587 * 855 / 443), 1e-9);
  EXPECT_EQ(row.verdict, Standing::kIndicative);  // one figure a card
  EXPECT_THAT(row.marks, Contains("published"));
}

// TF32 against FP32 is another precision, and must be asked for: 938 over 367.
TEST(Published, Tf32IsHeldAgainstFp32OnlyAcrossPrecision) {
  Options options;
  options.baseline = "V100-SXM2-16GB";
  options.where = {{"stack", "PyTorch NGC 21.03"}, {"gpus", "1"}, {"model", "resnet50"}};
  EXPECT_EQ(Compared("nvidia_convnets_train.csv", options).groups.size(), 2u);
  const Cells cells = CellsOf(
      "card,model,precision,metric,value,unit\nA100,resnet50,tf32,throughput,938,img/s\n"
      "V100,resnet50,fp32,throughput,367,img/s\n");
  Options plain;
  plain.baseline = "V100";
  EXPECT_THAT(std::string(Compare(cells, plain).status().message()),
              HasSubstr("precision (fp32 against tf32)"));
  plain.across = {"precision"};
  EXPECT_NEAR(SideOf(*Compare(cells, plain), "A100").geomean->value, 938.0 / 367, 1e-9);
}

// Swin-L in fp32: training 38.5 over 18.7, inference 65.8 over 32.4.
TEST(Published, A4070TiIsTwiceA1080Ti) {
  Options options;
  options.baseline = "GTX 1080 Ti";
  options.where = {{"model", "swin_l"}};
  const Comparison comparison = Compared("articles.csv", options);
  EXPECT_NEAR(RatioOf(comparison, "RTX 4070 Ti", "swin_l train"), 38.5 / 18.7, 1e-9);
  EXPECT_NEAR(RatioOf(comparison, "RTX 4070 Ti", "swin_l infer"), 65.8 / 32.4, 1e-9);
  EXPECT_NEAR(SideOf(comparison, "RTX 4070 Ti").geomean->value,
              std::sqrt(38.5 / 18.7 * 65.8 / 32.4), 1e-9);
  // Its latency and memory of Faster R-CNN are no workload that is missing.
  EXPECT_EQ(SideOf(comparison, "RTX 4070 Ti").completed, comparison.groups.at(0).asked);
  EXPECT_THAT(ReasonsOf(comparison, "RTX 4070 Ti"),
              Contains("swin_l train: metric max_batch is not compared"));
}

// ResNet-50 with XLA, NGC 20.10, each at the batch that it was given: 1355 over 1052 and 740. At
// equal batch (160 against 448) there is no such ratio. Another container is another stack.
TEST(Published, A3090Over3080And2080TiIsAtEachOnesOwnBatch) {
  Options options;
  options.where = {{"model", "resnet50"}};
  options.baseline = "RTX 3080";
  const Comparison equal = Compared("articles.csv", options);
  EXPECT_FALSE(SideOf(equal, "RTX 3090").pairwise.has_value());
  EXPECT_NEAR(SideOf(equal, "RTX 2080 Ti").pairwise->value, 740.0 / 1052, 1e-9);
  options.score = Score::kTuned;
  EXPECT_NEAR(SideOf(Compared("articles.csv", options), "RTX 3090").geomean->value, 1355.0 / 1052,
              1e-9);
  options.baseline = "RTX 2080 Ti";
  EXPECT_NEAR(SideOf(Compared("articles.csv", options), "RTX 3090").geomean->value, 1355.0 / 740,
              1e-9);
}

// What XLA cost a 3090 in container 20.09: 765 with, 895 without.
TEST(Published, XlaCostA3090InOneContainer) {
  Options options;
  options.by = By::kLane;
  options.baseline = "eager";
  options.where = {{"card", "RTX 3090"}, {"stack", "TensorFlow 1 NGC 20.09"}};
  EXPECT_NEAR(SideOf(Compared("articles.csv", options), "compile").geomean->value, 765.0 / 895,
              1e-9);
}

// Case 36: zero and empty are missing; failures stand as words.
TEST(Published, ZeroAndEmptyAreMissingAndFailuresAreReasons) {
  const Cells cells = CellsOf(
      "card,model,metric,value,unit\na,m1,throughput,10,img/s\nb,m1,throughput,20,img/s\n"
      "b,m2,throughput,0.0,img/s\nb,m3,throughput,,img/s\nb,m4,throughput,mem_limit,img/s\n"
      "b,m5,throughput,fail,img/s\n");
  const Comparison comparison = *Compare(cells, {});
  EXPECT_THAT(ReasonsOf(comparison, "b"),
              ::testing::ElementsAre("m2 train: no figure", "m3 train: no figure",
                                     "m4 train: mem_limit", "m5 train: fail"));
  EXPECT_NEAR(SideOf(comparison, "b").pairwise->value, 2, 1e-9);
}

TEST(Published, LinesThatDoNotFitAreNamedAndNoneIsTaken) {
  const std::string header = "card,model,metric,value,unit,gpus\n";
  const std::string refusal =
      RefusalOf(header +
                "a,m,throughput,10,img/s,1\nb,m,throughput,ten,img/s,1\n"
                "c,,throughput,1,img/s,1\nd,m,speed,1,img/s,1\ne,m,throughput,1,img/s,0\n");
  EXPECT_THAT(refusal, HasSubstr("line 3: value is a number, mem_limit or fail, not 'ten'"));
  EXPECT_THAT(refusal, HasSubstr("line 4: model is empty"));
  EXPECT_THAT(refusal, HasSubstr("line 5: metric is throughput"));
  EXPECT_THAT(refusal, HasSubstr("line 6: gpus is a whole number from 1, not '0'"));
  EXPECT_THAT(RefusalOf("card,model,metric,value\n"), HasSubstr("column 'unit' is missing"));
  EXPECT_THAT(RefusalOf("card,model,metric,value,unit,x\n"), HasSubstr("no column 'x'"));
  EXPECT_THAT(RefusalOf(header + "a,m,throughput,nan,img/s,1\n"), HasSubstr("line 2: value"));
}

TEST(Published, MeetsMeasuredFiguresOnlyWhereAskedAndMarked) {
  Fleet fleet;
  fleet.Add(kOld, {100, 100});
  Cells& cells = fleet.cells();
  ASSERT_TRUE(AddPublished(
                  "card,model,precision,batch,metric,value,unit\n"
                  "RTX 3090,resnet50,fp32,64,throughput,250,img/s\n",
                  "f.csv", [](const std::string& card) { return card; }, cells)
                  .ok());
  Options options;
  options.stack = StackRule::kNewestPerCard;
  EXPECT_FALSE(Compare(cells, options).ok());
  options.across = {"published"};
  options.baseline = "RTX 2080 Ti";
  const absl::StatusOr<Comparison> comparison = Compare(cells, options);
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  EXPECT_THAT(SideOf(*comparison, "RTX 3090").marks,
              Contains("across published: true against false"));
}

}  // namespace
}  // namespace assay::compare
