#include "common/results/compare/score.h"

#include <cmath>

#include "compared.h"

namespace assay::compare {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Made At(Made made, int64_t batch) {
  made.batch = batch;
  return made;
}
Options By(Score score) {
  Options options;
  options.score = score;
  return options;
}

TEST(ScoreEqual, IsTheLargestBatchThatEveryRankedCardCompleted) {
  const SideRow row = SideOf(Fleet()
                                 .Add(At(kOld, 32), {90, 90})
                                 .Add(At(kOld, 64), {100, 100})
                                 .Fail(At(kOld, 128), "mem_limit")
                                 .Add(At(kNew, 32), {100, 100})
                                 .Add(At(kNew, 64), {200, 200})
                                 .Add(At(kNew, 128), {300, 300})
                                 .Compare(),
                             "RTX 3090");
  ASSERT_EQ(row.workloads.size(), 1u);
  EXPECT_EQ(row.workloads[0].batch, "64");
  EXPECT_NEAR(row.geomean->value, 2, 1e-9);
  // 300 at 128 over 200 at 64, the largest that the baseline holds.
  EXPECT_NEAR(*row.memory_bought, 1.5, 1e-9);
}

TEST(ScoreBest, WinnerIsChosenByFirstProcessesAndValuedByLaterOnes) {
  // 128 wins by 310; its later processes, which did not choose it, say 300.
  const SideRow row = SideOf(Fleet()
                                 .Add(At(kOld, 64), {100, 100, 100})
                                 .Fail(At(kOld, 128), "mem_limit")
                                 .Add(At(kNew, 64), {200, 500, 500})
                                 .Add(At(kNew, 128), {310, 300, 300})
                                 .Compare(By(Score::kBest)),
                             "RTX 3090");
  ASSERT_EQ(row.workloads.size(), 1u);
  EXPECT_EQ(row.workloads[0].batch, "128");
  EXPECT_NEAR(row.workloads[0].value, 300, 1e-9);
  EXPECT_EQ(row.workloads[0].base_batch, "64");
  EXPECT_NEAR(row.geomean->value, 3, 1e-9);
}

TEST(ScoreBest, WithOneProcessTheWinnerIsMarked) {
  const SideRow row = SideOf(Fleet()
                                 .Add(At(kOld, 64), {100})
                                 .Add(At(kOld, 128), {110})
                                 .Add(At(kNew, 64), {200})
                                 .Add(At(kNew, 128), {300})
                                 .Compare(By(Score::kBest)),
                             "RTX 3090");
  EXPECT_THAT(row.marks, Contains("winner not measured again"));
}

TEST(ScoreBest, ABatchThatACardWasNeverAskedForIsNotInTheGrid) {
  const SideRow row = SideOf(Fleet()
                                 .Add(At(kOld, 64), {100, 100})
                                 .Add(At(kNew, 64), {200, 200})
                                 .Add(At(kNew, 128), {900, 900})
                                 .Compare(By(Score::kBest)),
                             "RTX 3090");
  EXPECT_EQ(row.workloads.at(0).batch, "64");
}

TEST(ScoreLargest, IsTheResultOfBatchMax) {
  const SideRow row = SideOf(Fleet()
                                 .Add(At(kOld, 64), {100, 100})
                                 .Add(At(kOld, kBatchMax), {110, 110})
                                 .Add(At(kNew, 64), {200, 200})
                                 .Add(At(kNew, kBatchMax), {330, 330})
                                 .Compare(By(Score::kLargest)),
                             "RTX 3090");
  EXPECT_EQ(row.workloads.at(0).batch, "max");
  EXPECT_NEAR(row.geomean->value, 3, 1e-9);
}

TEST(ScoreTuned, EachCardHasItsOwnBestLaneAndLayoutAndSaysWhich) {
  Made graph = kNew;
  graph.lane = "graph";
  const std::vector<Change> contiguous = {{Field::kLayout, std::string("contiguous")}};
  const std::vector<Change> channels = {{Field::kLayout, std::string("channels-last")}};
  const Comparison comparison = Fleet()
                                    .Add(kOld, {100, 100, 100}, contiguous)
                                    .Add(kNew, {200, 200, 200}, contiguous)
                                    .Add(graph, {250, 250, 250}, contiguous)
                                    .Add(graph, {400, 400, 400}, channels)
                                    .Compare(By(Score::kTuned));
  const SideRow row = SideOf(comparison, "RTX 3090");
  EXPECT_EQ(row.workloads.at(0).lane, "graph");
  EXPECT_EQ(row.workloads.at(0).layout, "channels-last");
  EXPECT_NEAR(row.geomean->value, 4, 1e-9);
  EXPECT_EQ(SideOf(comparison, "RTX 2080 Ti").workloads.at(0).lane, "eager");
}

// Case 35: a newer stack looks like a faster card.
TEST(Stacks, TheNewestThatBothRanIsCompared) {
  const std::vector<Change> of_7 = {{Field::kLibtorchVersion, std::string("2.7.1")}};
  const std::vector<Change> of_11 = {{Field::kLibtorchVersion, std::string("2.11.0")}};
  Made old_11 = kOld, old_7 = kOld, new_7 = kNew, new_11 = kNew;
  old_7.stack = new_7.stack = "a";
  old_11.stack = new_11.stack = "b";
  Fleet fleet;
  fleet.Add(old_7, {100, 100}, of_7).Add(new_7, {200, 200}, of_7).Add(new_11, {240, 240}, of_11);
  EXPECT_EQ(fleet.Compare().groups.at(0).stack, "a");
  EXPECT_NEAR(SideOf(fleet.Compare(), "RTX 3090").geomean->value, 2, 1e-9);

  Options newest;
  newest.stack = StackRule::kNewestPerCard;
  const Comparison marked = fleet.Compare(newest);
  EXPECT_NEAR(SideOf(marked, "RTX 3090").geomean->value, 2.4, 1e-9);
  EXPECT_THAT(SideOf(marked, "RTX 3090").marks, Contains("stack b against a"));
  ASSERT_EQ(marked.bridges.size(), 1u);
  EXPECT_EQ(marked.bridges[0].card, "RTX 3090");
  EXPECT_NEAR(marked.bridges[0].ratio.value, 1.2, 1e-9);

  // 2.11 is newer than 2.7, though not as a text.
  fleet.Add(old_11, {300, 300}, of_11);
  EXPECT_EQ(fleet.Compare().groups.at(0).stack, "b");
}

TEST(Stacks, WithNoneInCommonTheFieldsAreNamed) {
  Made other = kNew;
  other.stack = "other";
  EXPECT_THAT(Fleet().Add(kOld, {100}).Add(other, {200}).Refusal(),
              HasSubstr("stack (torch-2.11.0-cu130 against other)"));
}

TEST(ByStack, OneCardIsHeldAgainstItselfGpuByGpu) {
  // The two GPUs differ by far more than the stacks do.
  Options options;
  options.by = compare::By::kStack;
  options.baseline = "a";
  Fleet fleet;
  for (const char* stack : {"a", "b"}) {
    const double factor = std::string(stack) == "a" ? 1 : 1.1;
    Made made = kNew;
    made.stack = stack;
    made.gpu = "GPU-1";
    fleet.Add(made, {100 * factor, 100.2 * factor, 99.8 * factor});
    made.gpu = "GPU-2";
    fleet.Add(made, {150 * factor, 150.2 * factor, 149.8 * factor});
  }
  const SideRow row = SideOf(fleet.Compare(options), "b");
  EXPECT_NEAR(row.geomean->value, 1.1, 1e-6);
  EXPECT_EQ(row.verdict, Standing::kFaster);
}

TEST(ByPrecision, TakesThePrecisionAndWhatItIsMadeOfOut) {
  Made tf32 = kNew;
  tf32.precision = "tf32";
  Options options;
  options.by = compare::By::kPrecision;
  const Comparison comparison =
      Fleet()
          .Add(kNew, {100, 100.1, 99.9}, {{Field::kAllowTf32Cudnn, false}})
          .Add(tf32, {170, 170.1, 169.9}, {{Field::kAllowTf32Cudnn, true}})
          .Compare(options);
  EXPECT_NEAR(SideOf(comparison, "tf32").geomean->value, 1.7, 1e-4);
  EXPECT_EQ(SideOf(comparison, "tf32").verdict, Standing::kFaster);
  EXPECT_EQ(comparison.groups.at(0).card, "RTX 3090");
}

TEST(ByRun, AFallOrAMissingWorkloadIsSlower) {
  Options options;
  options.by = compare::By::kRun;
  Made vgg = kNew;
  vgg.model = "vgg16";
  Fleet same;
  same.Add(kNew, {100, 100.1, 99.9}).Add(kNew, {100, 100.2, 99.8}, {}, "r2");
  EXPECT_FALSE(same.Compare(options).AnySlower());
  EXPECT_EQ(SideOf(same.Compare(options), "r2").verdict, Standing::kSame);
  Fleet slower;
  slower.Add(kNew, {100, 100.1, 99.9}).Add(kNew, {90, 90.1, 89.9}, {}, "r2");
  EXPECT_TRUE(slower.Compare(options).AnySlower());
  // Less memory than before: what still fits is as fast as it was.
  Made large = kNew;
  large.batch = 128;
  Fleet memory;
  memory.Add(kNew, {100, 100.1, 99.9})
      .Add(large, {110, 110})
      .Add(kNew, {100, 100.2, 99.8}, {}, "r2");
  EXPECT_TRUE(memory.Compare(options).AnySlower());
  EXPECT_THAT(SideOf(memory.Compare(options), "r2").marks,
              ElementsAre("resnet50 train lacks batch 128"));
  // Slower by less than the fleet itself may drift.
  Fleet hardly;
  hardly.Add(kNew, {100, 100.1, 99.9}).Add(kNew, {99, 99.1, 98.9}, {}, "r2");
  EXPECT_FALSE(hardly.Compare(options).AnySlower());
  Fleet missing;
  missing.Add(kNew, {100, 100.1, 99.9}).Add(vgg, {10, 10}).Add(kNew, {100, 100.2, 99.8}, {}, "r2");
  EXPECT_TRUE(missing.Compare(options).AnySlower());
}

TEST(Spread, SeveralGpusAreTheirMedianWithSpreadAndCount) {
  Fleet fleet;
  fleet.Add(kOld, {50, 50});
  for (const auto& [gpu, rate] : {std::pair("GPU-1", 100.0), {"GPU-2", 104.0}, {"GPU-3", 10.0}}) {
    Made made = kNew;
    made.gpu = gpu;
    fleet.Add(made, {rate, rate});
  }
  const WorkloadRow row = SideOf(fleet.Compare(), "RTX 3090").workloads.at(0);
  EXPECT_NEAR(row.value, 100, 1e-9);
  EXPECT_EQ(row.gpus, 3);
  EXPECT_NEAR(*row.spread_ratio, 1.4826 * 4 / 100, 1e-9);
}

// Case 34: per watt is by measured power, and there is none where a card told none (case 37).
TEST(PerWatt, IsByMeasuredPowerOrAbsent) {
  const auto watts = [](double value) {
    return std::vector<Change>{{Field::kPowerMeanWatts, value}};
  };
  const SideRow row =
      SideOf(Fleet().Add(kOld, {100, 100}, watts(250)).Add(kNew, {200, 200}, watts(400)).Compare(),
             "RTX 3090");
  EXPECT_NEAR(*row.workloads.at(0).samples_per_joule, 0.5, 1e-9);
  EXPECT_NEAR(*row.per_watt, 1.25, 1e-9);  // 200/400 over 100/250
  EXPECT_FALSE(SideOf(Fleet().Add(kOld, {100}, watts(250)).Add(kNew, {200}).Compare(), "RTX 3090")
                   .per_watt.has_value());
}

TEST(PerDollar, NeedsAPriceOfBothCards) {
  const Fleet fleet = Fleet().Add(kOld, {100, 100}).Add(kNew, {200, 200});
  Options options;
  options.prices = {{"RTX 2080 Ti", 500}};
  EXPECT_FALSE(SideOf(fleet.Compare(options), "RTX 3090").per_dollar.has_value());
  options.prices["RTX 3090"] = 1250;
  EXPECT_NEAR(*SideOf(fleet.Compare(options), "RTX 3090").per_dollar, 0.8, 1e-9);
}

TEST(ByNode, TheOddOneIsNamedAgainstTheMedianOfItsFleet) {
  Options options;
  options.by = compare::By::kNode;
  Fleet fleet;
  for (const auto& [node, rate] :
       {std::pair("n1", 100.0), {"n2", 101.0}, {"n3", 99.0}, {"n4", 100.5}, {"n5", 88.0}}) {
    Made made = kNew;
    made.node = node;
    made.gpu = std::string("GPU-") + node;
    fleet.Add(made, {rate, rate});
  }
  const Comparison comparison = fleet.Compare(options);
  EXPECT_EQ(SideOf(comparison, "n5").verdict, Standing::kSlower);
  EXPECT_NEAR(SideOf(comparison, "n5").geomean->value, 0.88, 1e-9);
  EXPECT_LT(*SideOf(comparison, "n5").deviation, -kOddDeviation);
  for (const char* node : {"n1", "n2", "n3", "n4"}) {
    EXPECT_EQ(SideOf(comparison, node).verdict, Standing::kSame) << node;
  }
}

TEST(ByNode, OfThreeNoneIsOdd) {
  Options options;
  options.by = compare::By::kNode;
  Fleet fleet;
  for (const auto& [node, rate] : {std::pair("n1", 100.0), {"n2", 101.0}, {"n3", 50.0}}) {
    Made made = kNew;
    made.node = node;
    made.gpu = std::string("GPU-") + node;
    fleet.Add(made, {rate, rate});
  }
  EXPECT_EQ(SideOf(fleet.Compare(options), "n3").verdict, Standing::kIndicative);
}

}  // namespace
}  // namespace assay::compare
