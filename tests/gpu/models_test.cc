// Every model of the registry on a GPU, and that small versions of each train in every precision.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "runners/train/lanes/lane.h"
#include "tests/gpu/gpu_fixture.h"
#include "tests/unit/runners/train/shallow_models.h"

namespace assay::train {
namespace {

using GpuModels = GpuTest;

// One batch, again and again.
class FixedData final : public DataSource {
 public:
  explicit FixedData(Batch batch) : batch_(std::move(batch)) {}
  const Batch& Next() override { return batch_; }
  int64_t batches() const override { return 1; }
  int64_t places() const override { return 1; }
  void BringAhead(bool) override {}

 private:
  const Batch batch_;
};

TEST_F(GpuModels, EachMeasuresInEveryModeLaneAndPrecision) {
  for (const ModelEntry& entry : Models()) {
    for (const std::string precision : {"fp32", "tf32", "amp-fp16", "amp-bf16"}) {
      for (const std::string mode : {"train", "infer"}) {
        for (const std::string lane : {"eager", "graph"}) {
          CellFile cell = Cell(precision, 2);
          cell.spec.model = entry.name;
          cell.spec.image = entry.least_image.height == 32 ? "32x32" : "";
          cell.spec.mode = mode;
          cell.spec.lane = lane;
          cell.spec.accumulate = 2;
          cell.spec.stop = {.confidence = 0.01, .min_seconds = 0.1, .max_seconds = 0.2};
          const RunnerResult result = Run(cell);
          if (result.reason == "unsupported_precision") continue;
          EXPECT_EQ(result.outcome, "ok") << entry.name << " " << precision << " " << mode << " "
                                          << lane << ": " << result.message;
        }
      }
    }
  }
}

// In a graph, so that what is drawn at random in a replay is drawn anew.
TEST_F(GpuModels, LossFallsOverFiftyStepsOnAFixedBatchInEveryPrecisionAndLane) {
  for (const ModelEntry& entry : TinyModels()) {
    for (const Precision precision :
         {Precision::kFp32, Precision::kTf32, Precision::kAmpFp16, Precision::kAmpBf16}) {
      for (const std::string lane_name : {"eager", "graph"}) {
        const std::unique_ptr<Device> device = MakeCudaDevice("", 0);
        SetMath(precision);
        if (lane_name == "graph") device->PrepareToRecord();
        at::manual_seed(3);
        const std::unique_ptr<Model> model = entry.make({.device = device->torch()});
        Trainer trainer(*model, precision, 1, {.learning_rate = 0.02});
        FixedData data(RandomBatch({.batch = 4,
                                    .image = SmallImage(entry),
                                    .classes = model->classes(),
                                    .input = entry.input},
                                   device->torch()));
        const std::unique_ptr<Lane> lane = MakeLane(lane_name, *device, trainer, data);
        const float first = lane->Step().loss.item<float>();
        float last = first;
        for (int i = 1; i < 50; ++i) last = lane->Step().loss.item<float>();
        EXPECT_LT(last, 0.9f * first)
            << entry.name << " " << static_cast<int>(precision) << " " << lane_name;
      }
    }
  }
}

TEST_F(GpuModels, StochasticDepthIsDrawnAnewInEveryReplay) {
  const ModelEntry entry = ShallowSwinEntry();
  const std::unique_ptr<Device> device = MakeCudaDevice("", 0);
  SetMath(Precision::kFp32);
  device->PrepareToRecord();
  at::manual_seed(3);
  const std::unique_ptr<Model> model = entry.make({.device = device->torch()});
  // No rate: only what is drawn makes a loss another.
  Trainer trainer(*model, Precision::kFp32, 1, {.learning_rate = 0});
  FixedData data(
      RandomBatch({.batch = 4, .image = SmallImage(entry), .classes = 1000}, device->torch()));
  const std::unique_ptr<Lane> lane = MakeLane("graph", *device, trainer, data);
  for (int64_t i = 0; i <= GraphLane::kEagerSteps; ++i) lane->Step();
  const float first = lane->Step().loss.item<float>();
  bool same = true;
  for (int i = 0; i < 8; ++i) same = same && lane->Step().loss.item<float>() == first;
  EXPECT_FALSE(same);
}

}  // namespace
}  // namespace assay::train
