#include "common/results/compare/compare.h"

#include <cmath>

#include "compared.h"

namespace assay::compare {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Options Against(const std::string& baseline) {
  Options options;
  options.baseline = baseline;
  return options;
}

TEST(Compare, ACardsRatioIsThatOfItsProcesses) {
  const Comparison comparison =
      Fleet().AddTwo(kOld, {100, 101, 99}).AddTwo(kNew, {200, 202, 198}).Compare();
  EXPECT_EQ(comparison.baseline, "RTX 2080 Ti");
  ASSERT_EQ(comparison.groups.size(), 1u);
  const SideRow row = SideOf(comparison, "RTX 3090");
  ASSERT_TRUE(row.geomean.has_value() && row.geomean->interval.has_value());
  EXPECT_NEAR(row.geomean->value, 2, 1e-9);
  EXPECT_EQ(row.verdict, Standing::kFaster);
  ASSERT_EQ(row.workloads.size(), 1u);
  EXPECT_EQ(row.workloads[0].gpus, 2);
  EXPECT_EQ(row.workloads[0].processes, 6);
  EXPECT_EQ(row.workloads[0].batch, "64");
  EXPECT_EQ(SideOf(comparison, "RTX 2080 Ti").geomean->value, 1);
}

TEST(Compare, OneGpuOrOneProcessGivesAtMostAnIndicativeVerdict) {
  const SideRow one_gpu =
      SideOf(Fleet().Add(kOld, {100, 101}).Add(kNew, {200, 201}).Compare(), "RTX 3090");
  EXPECT_EQ(one_gpu.verdict, Standing::kIndicative);
  EXPECT_TRUE(one_gpu.geomean->interval.has_value());
  const SideRow one_process =
      SideOf(Fleet().AddTwo(kOld, {100, 101}).AddTwo(kNew, {200}).Compare(), "RTX 3090");
  EXPECT_EQ(one_process.verdict, Standing::kIndicative);
}

TEST(Compare, TheBaselineIsFoundByNameWithoutCaseOrRefusedWithWhatThereIs) {
  const Fleet fleet = Fleet().Add(kOld, {100, 101}).Add(kNew, {200, 201});
  EXPECT_EQ(fleet.Compare(Against("rtx3090")).baseline, "RTX 3090");
  EXPECT_NEAR(SideOf(fleet.Compare(Against("RTX 3090")), "RTX 2080 Ti").geomean->value, 0.5, 0.01);
  const std::string refusal = fleet.Refusal(Against("RTX 3080"));
  EXPECT_THAT(refusal, HasSubstr("there is no card 'RTX 3080'"));
  EXPECT_THAT(refusal, HasSubstr("RTX 2080 Ti, RTX 3090"));
}

// Case 30: what one card calls fp32 and another tf32 never meets.
TEST(Compare, PrecisionsAreNeverPooledAndLanesNeither) {
  Made tf32 = kNew, graph = kNew;
  tf32.precision = "tf32";
  graph.lane = "graph";
  const Comparison comparison = Fleet()
                                    .Add(kOld, {100, 100})
                                    .Add(kNew, {200, 200})
                                    .Add(tf32, {900, 900})
                                    .Add(graph, {300, 300})
                                    .Compare();
  ASSERT_EQ(comparison.groups.size(), 1u);  // the baseline has fp32 eager alone
  EXPECT_NEAR(SideOf(comparison, "RTX 3090").geomean->value, 2, 1e-9);
  EXPECT_THAT(ReasonsOf(comparison, "RTX 3090"),
              ElementsAre("all of tf32 eager: the baseline RTX 2080 Ti has no figure for it",
                          "all of fp32 graph: the baseline RTX 2080 Ti has no figure for it"));
}

TEST(Compare, AskedToCrossAFingerprintItRefusesAndNamesTheFields) {
  Made graph = kNew;
  graph.lane = "graph";
  const Fleet fleet =
      Fleet().Add(kOld, {100, 100}).Add(graph, {300, 300}, {{Field::kEccEnabled, true}});
  EXPECT_THAT(fleet.Refusal(), HasSubstr("RTX 2080 Ti and RTX 3090: lane (eager against graph)"));
  Options across;
  across.across = {"lane"};
  const SideRow row = SideOf(fleet.Compare(across), "RTX 3090");
  EXPECT_NEAR(row.geomean->value, 3, 1e-9);
  EXPECT_THAT(row.marks, Contains("across lane: graph against eager"));
  across.across = {"lnae"};
  EXPECT_THAT(fleet.Refusal(across), HasSubstr("did you mean 'lane'?"));
  across.across = {"model"};
  EXPECT_THAT(fleet.Refusal(across), HasSubstr("no ratio of them means anything"));
}

TEST(Compare, AcrossAFieldThatASideHasTwiceAsksWhichIsMeant) {
  Made graph = kNew;
  graph.lane = "graph";
  Options across;
  across.across = {"lane"};
  EXPECT_THAT(Fleet().Add(kOld, {100}).Add(kNew, {200}).Add(graph, {300}).Refusal(across),
              HasSubstr("choose one by --where lane=VALUE"));
}

TEST(Compare, WhatIsSeenOtherwiseIsLeftOutWithTheField) {
  const Comparison comparison = Fleet()
                                    .Add(kOld, {100, 100}, {{Field::kMethodVersion, int64_t{2}}})
                                    .Add(kNew, {200, 200}, {{Field::kMethodVersion, int64_t{2}}})
                                    .Add(kNew, {50, 50})
                                    .Compare();
  EXPECT_NEAR(SideOf(comparison, "RTX 3090").geomean->value, 2, 1e-9);
  EXPECT_THAT(ReasonsOf(comparison, "RTX 3090"),
              ElementsAre("resnet50 train fp32 eager: method_version 1, where 2 is compared"));
}

// A card without ECC has no value of it, and is no other fingerprint for that.
TEST(Compare, WhatIsNotKnownAgreesWithAnything) {
  const Comparison comparison =
      Fleet().Add(kOld, {100, 100}).Add(kNew, {200, 200}, {{Field::kEccEnabled, true}}).Compare();
  EXPECT_NEAR(SideOf(comparison, "RTX 3090").geomean->value, 2, 1e-9);
}

// Case 8: a slice of a card is no card.
TEST(Compare, ASliceIsNotHeldAgainstAWholeCard) {
  Made slice = kNew;
  slice.gpu = "MIG-feee0c61";
  EXPECT_THAT(Fleet().Add(kOld, {100, 100}).Add(slice, {50, 50}).Refusal(),
              HasSubstr("mig (false against true)"));
}

// Case 18: with another transport between nodes networks are compared, not cards.
TEST(Compare, TransportCountsBetweenNodesAndNotInsideOne) {
  const std::vector<Change> socket = {{Field::kTransport, std::string("socket")}};
  const std::vector<Change> nvlink = {{Field::kTransport, std::string("nvlink")}};
  EXPECT_EQ(Fleet().Add(kOld, {100}, socket).Add(kNew, {200}, nvlink).Compare().groups.size(), 1u);
  const auto gang = [](std::vector<Change> changes) {
    changes.emplace_back(Field::kNodes, int64_t{2});
    changes.emplace_back(Field::kWorldSize, int64_t{2});
    changes.emplace_back(Field::kGpuUuids, std::string("GPU-x;GPU-y"));
    return changes;
  };
  EXPECT_THAT(Fleet().Add(kOld, {100}, gang(socket)).Add(kNew, {200}, gang(nvlink)).Refusal(),
              HasSubstr("transport (socket against nvlink)"));
}

// Case 36: nothing is imputed, and the number of workloads in a mean is shown.
TEST(Compare, TheMeanIsOverWhatEveryRankedCardCompleted) {
  Made old_swin = kOld, new_swin = kNew, new_vgg = kNew, old_vgg = kOld;
  old_swin.model = new_swin.model = "swin_l";
  old_vgg.model = new_vgg.model = "vgg16";
  const Comparison comparison = Fleet()
                                    .Add(kOld, {100, 100})
                                    .Add(kNew, {200, 200})
                                    .Add(old_vgg, {10, 10})
                                    .Add(new_vgg, {80, 80})
                                    .Fail(old_swin, "mem_limit", "out_of_memory")
                                    .Add(new_swin, {9, 9})
                                    .Compare();
  const Group& group = comparison.groups.at(0);
  EXPECT_EQ(group.asked, 3u);
  EXPECT_THAT(group.common, ElementsAre("resnet50 train", "vgg16 train"));
  EXPECT_TRUE(group.ranked);
  EXPECT_NEAR(SideOf(comparison, "RTX 3090").geomean->value, 4, 1e-9);  // sqrt(2 * 8)
  const SideRow old_row = SideOf(comparison, "RTX 2080 Ti");
  EXPECT_EQ(old_row.completed, 2u);
  EXPECT_EQ(old_row.missing.at("mem_limit"), 1u);
  EXPECT_THAT(ReasonsOf(comparison, "RTX 2080 Ti"),
              ElementsAre("swin_l train fp32 eager: mem_limit"));
}

TEST(Compare, UnderHalfInCommonIsNoRankingButPairsAreShown) {
  Made old_swin = kOld, new_swin = kNew, new_vgg = kNew;
  old_swin.model = new_swin.model = "swin_l";
  new_vgg.model = "vgg16";
  const Made third{.card = "V100", .model = "vgg16", .gpu = "GPU-v"};
  const Comparison comparison = Fleet()
                                    .Add(kOld, {100, 100})
                                    .Add(kNew, {200, 200})
                                    .Add(old_swin, {10, 10})
                                    .Add(new_swin, {30, 30})
                                    .Add(new_vgg, {5, 5})
                                    .Add(third, {4, 4})
                                    .Compare();
  EXPECT_FALSE(comparison.groups.at(0).ranked);
  const SideRow row = SideOf(comparison, "RTX 3090");
  EXPECT_FALSE(row.geomean.has_value());
  EXPECT_NEAR(row.pairwise->value, std::sqrt(6), 1e-9);
  EXPECT_EQ(row.pairs, 2u);
}

TEST(Compare, SimulatedAndHostBoundFiguresAreLeftOutWithTheirReason) {
  const Fleet fleet = Fleet()
                          .Add(kOld, {100, 100})
                          .Add(kNew, {200, 200}, {{Field::kGpuBusyRatio, 0.5}})
                          .Add({.card = "V100", .gpu = "GPU-v"}, {7}, {{Field::kSimulated, true}});
  const std::string refusal = fleet.Refusal();
  EXPECT_THAT(refusal, HasSubstr("nothing is comparable"));
  Options options;
  options.host_bound = true;
  const Comparison comparison = fleet.Compare(options);
  EXPECT_NEAR(SideOf(comparison, "RTX 3090").geomean->value, 2, 1e-9);
  EXPECT_THAT(SideOf(comparison, "RTX 3090").marks, Contains("host_bound"));
  EXPECT_THAT(ReasonsOf(comparison, "V100"),
              ElementsAre("resnet50 train fp32 eager: simulated, among measured ones"));
}

TEST(Compare, SimulatedFiguresAloneAreComparedAndMarked) {
  const std::vector<Change> simulated = {{Field::kSimulated, true}};
  const Comparison comparison =
      Fleet().Add(kOld, {100, 100}, simulated).Add(kNew, {200, 200}, simulated).Compare();
  EXPECT_THAT(SideOf(comparison, "RTX 3090").marks, Contains("simulated"));
}

TEST(Compare, WhereNarrowsAndUnknownFieldsAreRefused) {
  Made vgg = kNew;
  vgg.model = "vgg16";
  const Fleet fleet = Fleet().Add(kOld, {100, 100}).Add(kNew, {200, 200}).Add(vgg, {5, 5});
  Options options;
  options.where = {{"model", "resnet50"}};
  EXPECT_EQ(fleet.Compare(options).groups.at(0).asked, 1u);
  options.where = {{"modle", "resnet50"}};
  EXPECT_THAT(fleet.Refusal(options), HasSubstr("did you mean 'model'?"));
  options.where = {{"model", "none"}};
  EXPECT_THAT(fleet.Refusal(options), HasSubstr("no result has what --where asks for"));
}

TEST(Compare, AnotherDriverIsAMark) {
  const std::vector<Change> old_driver = {{Field::kDriverVersion, std::string("455.32")}};
  const std::vector<Change> new_driver = {{Field::kDriverVersion, std::string("520.61")}};
  const Comparison comparison =
      Fleet().Add(kOld, {100, 100}, old_driver).Add(kNew, {200, 200}, new_driver).Compare();
  EXPECT_THAT(SideOf(comparison, "RTX 3090").marks, ElementsAre("driver 520.61 against 455.32"));
}

TEST(Compare, CeilingsOfACardAreNoWorkload) {
  const Fleet fleet = Fleet().Add(kOld, {100, 100}, {{Field::kMode, std::string("peak")}});
  EXPECT_THAT(fleet.Refusal(), HasSubstr("there are no results"));
  EXPECT_THAT(fleet.cells().cells(), IsEmpty());
}

TEST(Compare, OneCardAloneIsNothingToCompare) {
  EXPECT_THAT(Fleet().Add(kOld, {100, 100}).Refusal(), HasSubstr("is the only card"));
}

}  // namespace
}  // namespace assay::compare
