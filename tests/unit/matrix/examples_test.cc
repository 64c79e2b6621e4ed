// The examples that ship are accepted, and are what their comments say.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "common/matrix/matrix.h"
#include "common/matrix/plan.h"
#include "tests/unit/matrix/matrix_text.h"

namespace assay {
namespace {

Matrix Example(const std::string& name) {
  const auto text = ReadMatrixFile(ASSAY_SOURCE_DIR "/examples/" + name);
  EXPECT_TRUE(text.ok()) << Message(text.status());
  if (!text.ok()) return {};
  Matrix matrix = Parsed(*text);
  EXPECT_EQ(matrix.warnings, std::vector<std::string>{}) << name;
  return matrix;
}

TEST(Examples, QuickstartIsTwoMinutesOfMeasuringAtMost) {
  const Matrix matrix = Example("quickstart.yaml");
  EXPECT_EQ(matrix.CellsPerTarget(), 12u);
  for (const Spec& spec : matrix.specs) {
    EXPECT_EQ(spec.model, "resnet50");
    EXPECT_LE(spec.stop.max_seconds * 12, 120);
  }
  const auto cpu = PlanCardsFromNames({"cpu"});
  ASSERT_TRUE(cpu.ok());
  EXPECT_EQ(BuildPlan(matrix, *cpu).infeasible_cells, 0u);
}

TEST(Examples, PeaksAreThoseOfTheirRunnerAndOfNoProcessor) {
  const Matrix matrix = Example("peaks.yaml");
  EXPECT_EQ(matrix.specs.size(), 9u);
  for (const Spec& spec : matrix.specs) EXPECT_EQ(spec.mode, "peak");
  const auto cards = PlanCardsFromNames({"H200"});
  ASSERT_TRUE(cards.ok());
  EXPECT_EQ(BuildPlan(matrix, *cards).infeasible_cells, 0u);
}

TEST(Examples, QuickstartOfGpusIsFourMinutesOfMeasuringAtMost) {
  const Matrix matrix = Example("quickstart-gpu.yaml");
  EXPECT_EQ(matrix.CellsPerTarget(), 12u);
  for (const Spec& spec : matrix.specs) EXPECT_LE(spec.stop.max_seconds * 12, 240);
}

TEST(Examples, CardsCnnHasTheFourNetworksAtTenBatches) {
  const Matrix matrix = Example("cards-cnn.yaml");
  std::set<std::string> models, lanes, stacks;
  std::set<int64_t> batches;
  for (const Spec& spec : matrix.specs) {
    models.insert(spec.model);
    lanes.insert(spec.lane);
    stacks.insert(spec.stack);
    batches.insert(spec.batch);
    EXPECT_EQ(spec.precision, "amp-fp16");
  }
  EXPECT_EQ(models, (std::set<std::string>{"resnet50_v1", "resnet50", "resnext101_32x4d",
                                           "se_resnext101_32x4d"}));
  EXPECT_EQ(lanes, (std::set<std::string>{"eager", "graph", "compile"}));
  EXPECT_EQ(stacks.size(), 2u);
  EXPECT_EQ(batches.size(), 10u);
  EXPECT_EQ(*batches.rbegin(), 640);
  EXPECT_EQ(matrix.specs.size(), 240u);
}

TEST(Examples, MemoryLimitsAsksForTheLargestBatchAndAccumulation) {
  const Matrix matrix = Example("memory-limits.yaml");
  const auto count = [&](auto&& holds) {
    return std::count_if(matrix.specs.begin(), matrix.specs.end(), holds);
  };
  EXPECT_EQ(count([](const Spec& spec) { return spec.batch == kBatchMax; }), 12);
  EXPECT_EQ(count([](const Spec& spec) { return spec.accumulate > 1; }), 16);
  EXPECT_GT(count([](const Spec& spec) { return spec.image == "1024x1024"; }), 0);
  EXPECT_GT(count([](const Spec& spec) { return spec.image == "800x1333"; }), 0);
  EXPECT_GT(count([](const Spec& spec) { return spec.mode == "infer"; }), 0);
}

TEST(Examples, H200HasOneBatchThatDoesNotFit) {
  const Matrix matrix = Example("h200-resnet50.yaml");
  EXPECT_EQ(Batches(matrix), (std::vector<int64_t>{64, 128, 256, 8192}));
  const auto cards = PlanCardsFromNames({"H200"});
  ASSERT_TRUE(cards.ok());
  const Plan plan = BuildPlan(matrix, *cards);
  EXPECT_EQ(plan.rows[2].warning, "");
  EXPECT_NE(plan.rows[3].warning, "");
}

}  // namespace
}  // namespace assay
