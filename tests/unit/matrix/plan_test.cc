#include "common/matrix/plan.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/results/outcome.h"
#include "tests/unit/matrix/matrix_text.h"

namespace assay {
namespace {

constexpr uint64_t kGib = uint64_t{1} << 30;

std::vector<PlanCard> Cards(const std::vector<std::string>& names) {
  auto cards = PlanCardsFromNames(names);
  EXPECT_TRUE(cards.ok()) << Message(cards.status());
  return cards.ok() ? *std::move(cards) : std::vector<PlanCard>{};
}

Device GpuDevice(std::string uuid, std::string name, int gib, int major, int minor) {
  Device device;
  device.uuid = std::move(uuid);
  device.raw_name = std::move(name);
  device.memory_total_bytes = static_cast<uint64_t>(gib) * kGib;
  device.cc_major = major;
  device.cc_minor = minor;
  return device;
}

Stack EagerStack() {
  Stack stack;
  stack.name = "libtorch-2.11.0";
  stack.models = {"resnet50"};
  stack.modes = {"train"};
  stack.precisions = {"fp32", "tf32"};
  stack.lanes = {"eager"};
  stack.arch_list = {"sm_75", "sm_86"};
  stack.device_kinds = {"gpu"};
  stack.max_world_size = 8;
  return stack;
}

TEST(BuildPlan, WithNoFleetCardAndFeasibleAreUnknown) {
  const Plan plan = BuildPlan(Parsed("axes: {model: resnet50, precision: [fp32, tf32]}"), {});
  ASSERT_EQ(plan.rows.size(), 2u);
  EXPECT_EQ(plan.rows[0].card, "");
  EXPECT_FALSE(plan.rows[0].feasible.has_value());
  EXPECT_EQ(plan.rows[1].repeat, 3);
  EXPECT_EQ(plan.cells, 6u);
  EXPECT_EQ(plan.targets, 1u);
}

// Case 30: matrix with fp32 and tf32 on A100, V100, 2080 Ti.
TEST(BuildPlan, Case30EachCardGetsItsOwnRow) {
  const Plan plan = BuildPlan(Parsed("axes: {model: resnet50, precision: [fp32, tf32]}"),
                              Cards({"A100-SXM4-40GB", "V100-SXM2-16GB", "RTX 2080 Ti"}));
  std::string seen;
  for (const PlanRow& row : plan.rows) {
    seen += row.spec.precision + " " + row.card + " " + (*row.feasible ? "yes" : row.reason) + "\n";
  }
  EXPECT_EQ(seen,
            "fp32 A100-SXM4-40GB yes\nfp32 V100-SXM2-16GB yes\nfp32 RTX 2080 Ti yes\n"
            "tf32 A100-SXM4-40GB yes\ntf32 V100-SXM2-16GB unsupported_precision\n"
            "tf32 RTX 2080 Ti unsupported_precision\n");
  EXPECT_EQ(plan.cells, 12u);
  EXPECT_EQ(plan.infeasible_cells, 6u);
}

TEST(BuildPlan, TimeIsBoundedByStopAndLimit) {
  const std::string axes = "axes: {model: resnet50, batch: [1, 2]}\nrepeat: 3\n";
  EXPECT_DOUBLE_EQ(BuildPlan(Parsed(axes + "stop: {max_seconds: 40}"), {}).upper_bound_seconds,
                   2 * 3 * (40 + kCellOverheadSeconds));
  EXPECT_DOUBLE_EQ(BuildPlan(Parsed(axes + "limits: {cell_seconds: 50}"), {}).upper_bound_seconds,
                   2 * 3 * 50);
  EXPECT_DOUBLE_EQ(BuildPlan(Parsed(axes + "limits: {cell_seconds: 50}"), Cards({"H200", "A10"}))
                       .upper_bound_seconds,
                   2 * 2 * 3 * 50);
  EXPECT_DOUBLE_EQ(
      BuildPlan(Parsed(axes + "defaults: {precision: tf32}"), Cards({"T4"})).upper_bound_seconds,
      0);
}

TEST(BuildPlan, AnEstimateOfMemoryIsAWarningOnly) {
  const Plan plan =
      BuildPlan(Parsed("axes: {model: resnet50, batch: [8, 8192]}"), Cards({"H200", "RTX 3070"}));
  for (const PlanRow& row : plan.rows) EXPECT_TRUE(*row.feasible);
  EXPECT_EQ(plan.warnings,
            (std::vector<std::string>{
                "H200: 3 cells may end as mem_limit, by the catalogue's estimate of their memory",
                "RTX 3070: 3 cells may end as mem_limit, by the catalogue's estimate of their "
                "memory"}));
}

TEST(PlanCardsFromNames, UnknownNamesGetTheNearest) {
  EXPECT_EQ(Message(PlanCardsFromNames({"RTX 2008 Ti"}).status()),
            "--cards: the catalogue has no card 'RTX 2008 Ti'; did you mean 'RTX 2080 Ti'?");
  EXPECT_EQ(Message(PlanCardsFromNames({"Voodoo"}).status()),
            "--cards: the catalogue has no card 'Voodoo'; `cpu` stands for a processor");
  EXPECT_FALSE(PlanCardsFromNames({}).ok());
}

TEST(PlanCardsFromNames, ANameOfTwoProductsGivesBothAndOneTwiceOnlyOnce) {
  const auto cards = Cards({"RTX 3080", "rtx 3080 12gb", "cpu", "CPU"});
  ASSERT_EQ(cards.size(), 3u);
  EXPECT_EQ(cards[0].name, "RTX 3080 10GB");
  EXPECT_EQ(cards[1].name, "RTX 3080 12GB");
  EXPECT_EQ(cards[2].device.kind, "cpu");
}

class FleetTest : public ::testing::Test {
 protected:
  FleetTest() {
    NodeInventory a;
    a.node = "a";
    a.devices = {GpuDevice("GPU-1", "GeForce RTX 3090", 24, 8, 6),
                 GpuDevice("GPU-2", "GeForce RTX 3090", 24, 8, 6),
                 GpuDevice("GPU-3", "Some Card", 8, 6, 1)};
    a.devices.push_back(GpuDevice("GPU-4", "Tesla T4", 16, 7, 5));
    a.devices.back().usable = false;
    a.stacks = {EagerStack()};
    NodeInventory b;
    b.node = "b";
    b.devices = {GpuDevice("GPU-5", "NVIDIA GeForce RTX 3090", 24, 8, 6)};
    nodes_ = {a, b};
  }
  std::string Targets(std::string_view select) {
    const Matrix matrix =
        Parsed("axes: {model: resnet50}\nselect: {" + std::string(select) + "}\n");
    std::string out;
    for (const PlanCard& card : PlanCardsFromFleet(nodes_, matrix.select)) {
      out += card.target + ":" + std::to_string(card.gpus) + "x" + std::to_string(card.nodes) + " ";
    }
    return out;
  }
  std::vector<NodeInventory> nodes_;
};

TEST_F(FleetTest, PlacementDecidesWhatATargetIs) {
  EXPECT_EQ(Targets("placement: per-card"), "RTX 3090:2x2 Some Card:1x1 ");
  EXPECT_EQ(Targets("placement: per-node"), "a/RTX 3090:2x1 a/Some Card:1x1 b/RTX 3090:1x1 ");
  EXPECT_EQ(Targets("placement: per-gpu"), "GPU-1:1x1 GPU-2:1x1 GPU-3:1x1 GPU-5:1x1 ");
  EXPECT_EQ(Targets("cards: [RTX 3090]"), "RTX 3090:2x2 ");
}

TEST_F(FleetTest, StackIsChosenAndReasonsAreGiven) {
  const Matrix matrix = Parsed("axes: {model: resnet50, gpus: [1, 4], lane: [eager, graph]}");
  const Plan plan = BuildPlan(matrix, PlanCardsFromFleet(nodes_, matrix.select));
  ASSERT_EQ(plan.rows.size(), 8u);
  EXPECT_TRUE(*plan.rows[0].feasible);
  EXPECT_EQ(plan.rows[0].spec.stack, "libtorch-2.11.0");
  EXPECT_EQ(plan.rows[0].spec.key, matrix.specs[0].key);
  EXPECT_EQ(plan.rows[1].reason, reason::kUnsupportedArch);
  EXPECT_EQ(plan.rows[2].reason, reason::kUnsupportedLane);
  EXPECT_EQ(plan.rows[4].reason, reason::kTooFewGpus);
  EXPECT_EQ(plan.rows[4].message,
            "4 GPUs of one node are asked for, and no node has more than 2 of RTX 3090");
}

}  // namespace
}  // namespace assay
