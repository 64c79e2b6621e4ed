#include "runners/simulate/simulate_runner.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "runners/common/bad_input.h"
#include "runners/simulate/behaviour.h"
#include "runners/simulate/catalog.h"
#include "runners/simulate/roofline.h"

namespace assay::simulate {
namespace {

using testing::HasSubstr;

CellFile Cell(const std::string& card, const std::string& precision = "amp-fp16",
              int64_t batch = 64) {
  CellFile cell;
  cell.card = card;
  cell.device_kind = "simulated";
  cell.device_uuid = "GPU-1";
  cell.spec.model = "resnet50";
  cell.spec.precision = precision;
  cell.spec.batch = batch;
  cell.seed = 1;
  return cell;
}

RunnerResult RunOf(const CellFile& cell, const std::string& rules = "") {
  RecordWriter records(open("/dev/null", O_WRONLY | O_CLOEXEC), true);
  return SimulateRunner(rules).Run(cell, records);
}

double Throughput(const CellFile& cell) {
  const RunnerResult result = RunOf(cell);
  EXPECT_EQ(result.outcome, "ok") << result.message;
  return result.fields.value("throughput", 0.0);
}

TEST(Simulator, AnA100IsFasterThanAnRtx3090WithTensorCoresOnly) {
  EXPECT_GT(Throughput(Cell("A100-SXM4-40GB")), 1.5 * Throughput(Cell("RTX 3090")));
  EXPECT_GT(Throughput(Cell("RTX 3090", "fp32")), Throughput(Cell("A100-SXM4-40GB", "fp32")));
}

TEST(Simulator, CardsOrderAsTheirRooflinesDo) {
  const double h200 = Throughput(Cell("H200")), a100 = Throughput(Cell("A100-SXM4-40GB")),
               v100 = Throughput(Cell("V100-SXM2-16GB")), old = Throughput(Cell("GTX 1080 Ti"));
  EXPECT_GT(h200, a100);
  EXPECT_GT(a100, v100);
  EXPECT_GT(v100, old);
}

TEST(Simulator, IsTheSameForTheSameSeedAndNearForAnother) {
  CellFile cell = Cell("RTX 3090");
  const double first = Throughput(cell);
  EXPECT_EQ(first, Throughput(cell));
  cell.repeat = 2;
  EXPECT_NE(first, Throughput(cell));
  EXPECT_NEAR(Throughput(cell) / first, 1, 0.05);
}

TEST(Simulator, FillsTheFieldsOfARealRunner) {
  const RunnerResult result = RunOf(Cell("RTX 3090"));
  for (const char* field :
       {"throughput",          "unit",          "ci95_ratio",  "step_p50_ms",
        "step_p95_ms",         "step_p99_ms",   "cv_ratio",    "steps",
        "device_steps",        "samples",       "seconds",     "host_seconds",
        "warmup_seconds",      "warmup_steps",  "stop_reason", "skipped_steps",
        "loss_scale",          "loss_first",    "loss_last",   "allocated_peak_bytes",
        "reserved_peak_bytes", "world_size",    "parameters",  "seed",
        "method_version",      "gpu_busy_ratio"}) {
    EXPECT_TRUE(result.fields.contains(field) && !result.fields[field].is_null()) << field;
  }
  const auto& f = result.fields;
  EXPECT_EQ(f["steps"], f["device_steps"]);
  EXPECT_EQ(f["samples"].get<int64_t>(), f["steps"].get<int64_t>() * 64);
  EXPECT_NEAR(f["throughput"].get<double>(),
              f["samples"].get<double>() / f["seconds"].get<double>(), 1e-6);
  EXPECT_NEAR(f["host_seconds"].get<double>() / f["seconds"].get<double>(), 1, 0.02);
  EXPECT_LE(f["allocated_peak_bytes"], f["reserved_peak_bytes"]);
}

TEST(Simulator, EveryWorkloadPrecisionLaneAndLayoutRuns) {
  for (const WorkloadFigures& workload : Workloads()) {
    for (const std::string& precision : Precisions()) {
      for (const std::string& mode : Modes()) {
        for (const std::string& lane : Lanes()) {
          for (const std::string& layout : workload.layouts) {
            CellFile cell = Cell("H200", precision, 2);
            cell.spec.model = workload.name;
            cell.spec.mode = mode;
            cell.spec.lane = lane;
            cell.spec.layout = layout;
            cell.spec.stop = {0.05, 0.1, 0.2};
            EXPECT_EQ(RunOf(cell).outcome, "ok") << workload.name << precision << mode << lane;
          }
        }
      }
    }
  }
}

// Case 32: without tensor cores mixed precision gains little; case 30: no TF32 before Ampere.
TEST(Simulator, APascalCardGainsLittleFromAmpAndHasNoTf32) {
  EXPECT_LT(PeakTflops(CardOf("GTX 1080 Ti", "gpu"), "amp-fp16"), 12);
  for (const char* precision : {"tf32", "amp-bf16"}) {
    const RunnerResult result = RunOf(Cell("GTX 1080 Ti", precision));
    EXPECT_EQ(result.outcome, "unsupported") << precision;
    EXPECT_EQ(result.reason, "unsupported_precision");
  }
}

TEST(Simulator, MemoryAboveTheCardsIsMemLimit) {
  EXPECT_EQ(RunOf(Cell("RTX 3090", "fp32", 64)).outcome, "ok");
  const RunnerResult result = RunOf(Cell("RTX 3090", "fp32", 512));
  EXPECT_EQ(result.outcome, "mem_limit");
  EXPECT_EQ(result.reason, "out_of_memory");
  EXPECT_THAT(result.message, HasSubstr("rank 0 on GPU-1"));
  CellFile accumulated = Cell("RTX 3090", "fp32", 512);
  accumulated.spec.accumulate = 8;
  EXPECT_EQ(RunOf(accumulated).outcome, "ok");
}

// Case 12.
TEST(Simulator, AnUnknownCardRuns) {
  EXPECT_GT(Throughput(Cell("GRID V100DX-16Q")), 0);
  EXPECT_GT(Throughput(Cell("", "fp32", 8)), 0);
}

TEST(Simulator, AnUnknownModelIsUnsupported) {
  CellFile cell = Cell("RTX 3090");
  cell.spec.model = "resnet51";
  EXPECT_EQ(RunOf(cell).reason, "model_not_in_stack");
}

TEST(Simulator, GraphsHelpSmallBatchesMost) {
  CellFile eager = Cell("H200", "amp-fp16", 4);
  CellFile graph = eager;
  graph.spec.lane = "graph";
  EXPECT_GT(Throughput(graph), 2 * Throughput(eager));
}

TEST(Behaviour, TheFirstRuleThatHoldsIsTaken) {
  const std::string rules =
      "model=swin_l:hang;batch=128,precision=fp32:crash=9; rank=1:oom\ndefault:realtime=0.02";
  EXPECT_TRUE(BehaviourFor(rules,
                           [] {
                             CellFile cell = Cell("x");
                             cell.spec.model = "swin_l";
                             return cell;
                           }())
                  .hang);
  EXPECT_EQ(BehaviourFor(rules, Cell("x", "fp32", 128)).crash_signal, 9);
  EXPECT_EQ(BehaviourFor(rules, Cell("x", "tf32", 128)).realtime, 0.02);
  CellFile second = Cell("x");
  second.rank = 1;
  EXPECT_TRUE(BehaviourFor(rules, second).oom);
}

TEST(Behaviour, ActionsCombine) {
  const Behaviour behaviour = BehaviourFor("default:hang_ignore_term+grandchild", Cell("x"));
  EXPECT_TRUE(behaviour.hang && behaviour.ignore_term && behaviour.grandchild);
}

TEST(Behaviour, WrongRulesAreRefusedEvenWhereNotTaken) {
  for (const char* rules : {"crash", "batch=1:bogus", "color=red:crash", "batch:crash",
                            "default:realtime=x", "default:exit=999", "default:hang=3"}) {
    EXPECT_THROW(BehaviourFor(rules, Cell("x")), BadInput) << rules;
  }
}

TEST(Behaviour, WrongFiguresOnCommand) {
  const RunnerResult steps = RunOf(Cell("RTX 3090"), "default:wrong_device_steps");
  EXPECT_NE(steps.fields["steps"], steps.fields["device_steps"]);
  const RunnerResult loss = RunOf(Cell("RTX 3090"), "default:non_finite_loss");
  EXPECT_EQ(loss.outcome, "fail");
  EXPECT_EQ(loss.reason, "non_finite_loss");
  EXPECT_EQ(RunOf(Cell("RTX 3090"), "default:oom").outcome, "mem_limit");
  EXPECT_THROW(RunOf(Cell("RTX 3090"), "default:error"), std::runtime_error);
}

}  // namespace
}  // namespace assay::simulate
