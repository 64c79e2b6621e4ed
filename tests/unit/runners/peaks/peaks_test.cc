#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "runners/peaks/best_shape.h"
#include "runners/peaks/copies.h"
#include "runners/peaks/cuda_library.h"
#include "runners/peaks/gemm.h"
#include "runners/peaks/normals.h"
#include "runners/peaks/peaks_runner.h"
#include "tests/unit/runners/peaks/fake_timeline.h"

namespace assay::peaks {
namespace {

namespace fs = std::filesystem;

CellFile PeakCell(const std::string& model, const std::string& precision = "fp32") {
  CellFile cell;
  cell.spec.model = model;
  cell.spec.mode = "peak";
  cell.spec.precision = precision;
  cell.device_kind = "cuda";
  return cell;
}

// A shape whose repetition takes `seconds`, does `units`, and whose result has `fault`.
Candidate Shape(FakeTimeline& device, const std::string& name, double units, double seconds,
                const std::string& fault = "") {
  return {.shape = name,
          .units = units,
          .queue = [&device, seconds] { device.Work(seconds); },
          .fault = [fault] { return fault; }};
}

RunnerResult MeasureShapes(FakeTimeline& device, const std::vector<Candidate>& shapes) {
  RecordWriter records(open("/dev/null", O_WRONLY | O_CLOEXEC), true);
  const StopRule stop{.confidence = 0.01, .min_seconds = 1, .max_seconds = 4};
  return MeasurePeak(device, shapes, stop, {{"unit", "GFLOP/s"}}, records);
}

TEST(Refuse, TakesWhatIsAPeakOfAGpu) {
  for (const char* model : {"copy", "host_to_device", "device_to_host"}) {
    EXPECT_FALSE(Refuse(PeakCell(model)).has_value()) << model;
  }
  for (const char* precision : {"fp32", "tf32", "amp-fp16", "amp-bf16"}) {
    EXPECT_FALSE(Refuse(PeakCell("gemm", precision)).has_value()) << precision;
  }
  EXPECT_FALSE(Refuse(PeakCell("gemm_fp16_accumulate", "amp-fp16")).has_value());
}

TEST(Refuse, SaysWhatIsNotForIt) {
  const auto reason = [](const CellFile& cell) {
    const auto refusal = Refuse(cell);
    EXPECT_TRUE(!refusal || refusal->outcome == "unsupported");
    return refusal ? refusal->reason : "";
  };
  EXPECT_EQ(reason(PeakCell("resnet50")), "model_not_in_stack");
  EXPECT_EQ(reason(PeakCell("copy", "amp-bf16")), "unsupported_precision");
  EXPECT_EQ(reason(PeakCell("gemm_fp16_accumulate", "fp32")), "unsupported_precision");
  CellFile cell = PeakCell("gemm");
  cell.device_kind = "cpu";
  EXPECT_EQ(reason(cell), "unsupported_arch");
  cell = PeakCell("gemm");
  cell.spec.mode = "train";
  EXPECT_EQ(reason(cell), "mode_not_in_stack");
  cell = PeakCell("gemm");
  cell.spec.lane = "graph";
  EXPECT_EQ(reason(cell), "lane_not_in_stack");
  cell = PeakCell("gemm");
  cell.spec.batch = 2;
  EXPECT_EQ(reason(cell), "value_not_in_stack");
  cell = PeakCell("gemm");
  cell.world_size = 2;
  EXPECT_EQ(reason(cell), "value_not_in_stack");
  EXPECT_EQ(reason(PeakCell("peer")), "value_not_in_stack");
  cell = PeakCell("peer");
  cell.world_size = 2;
  EXPECT_EQ(reason(cell), "");
  cell.spec.nodes = 2;
  EXPECT_EQ(reason(cell), "value_not_in_stack");
}

TEST(Refuse, ACardThatLacksAPrecisionIsGivenNoOther) {
  EXPECT_FALSE(RefusePrecision("fp32", 30).has_value());
  EXPECT_FALSE(RefusePrecision("tf32", 80).has_value());
  EXPECT_TRUE(RefusePrecision("tf32", 75).has_value());
  EXPECT_TRUE(RefusePrecision("amp-bf16", 75).has_value());
  EXPECT_FALSE(RefusePrecision("amp-fp16", 53).has_value());
  EXPECT_TRUE(RefusePrecision("amp-fp16", 52).has_value());
}

TEST(ChooseShape, TakesTheFastestAndMakesItsStepLongEnough) {
  FakeTimeline device;
  const std::vector<Candidate> shapes = {Shape(device, "slow", 1, 0.002),
                                         Shape(device, "fast", 8, 0.004),
                                         Shape(device, "mean", 4, 0.004)};
  std::vector<double> rates;
  const BestShape best = ChooseShape(device, shapes, [&](double rate) { rates.push_back(rate); });
  EXPECT_EQ(best.candidate, 1u);
  EXPECT_EQ(best.repetitions, 5);  // 20 ms
  ASSERT_GE(rates.size(), 3u);
  EXPECT_NEAR(rates[rates.size() - 2], 2000, 1e-6);
}

TEST(ChooseShape, OneThatGivesTooFewStepsIsLeftOutWhereThereIsAnother) {
  FakeTimeline device;
  EXPECT_EQ(ChooseShape(device, {Shape(device, "short", 1, 0.01), Shape(device, "long", 100, 0.06)},
                        [](double) {})
                .candidate,
            0u);
  EXPECT_EQ(ChooseShape(device, {Shape(device, "long", 100, 0.06)}, [](double) {}).repetitions, 1);
}

TEST(ChooseShape, TheFirstRepetitionLoadsKernelsAndIsNoTime) {
  FakeTimeline device;
  int runs = 0;
  Candidate late = Shape(device, "late", 2, 0.001);
  late.queue = [&] { device.Work(runs++ == 0 ? 5 : 0.001); };
  EXPECT_EQ(ChooseShape(device, {Shape(device, "other", 1, 0.001), late}, [](double) {}).candidate,
            1u);
}

TEST(ChooseShape, AColdCardsFirstSecondIsNoAdvantage) {
  FakeTimeline device;
  const auto shape = [&](const std::string& name, double seconds) {
    Candidate candidate = Shape(device, name, 1, 0);
    candidate.queue = [&device, seconds] { device.Work(device.now() < 1 ? seconds / 2 : seconds); };
    return candidate;
  };
  EXPECT_EQ(ChooseShape(device, {shape("tried cold", 0.011), shape("faster", 0.010)}, [](double) {})
                .candidate,
            1u);
}

TEST(MeasurePeak, ReportsTheWindowOfTheFastestShape) {
  FakeTimeline device;
  const RunnerResult result =
      MeasureShapes(device, {Shape(device, "a", 100, 0.01), Shape(device, "b", 150, 0.01)});
  ASSERT_EQ(result.outcome, "ok") << result.message;
  const nlohmann::json& f = result.fields;
  EXPECT_EQ(f["peak_shape"], "b");
  EXPECT_EQ(f["unit"], "GFLOP/s");
  EXPECT_NEAR(f["throughput"].get<double>(), 15000, 1e-6);
  EXPECT_EQ(f["steps"], f["device_steps"]);
  EXPECT_EQ(f["samples"].get<int64_t>(), f["steps"].get<int64_t>() * 300);  // two a step of 20 ms
  EXPECT_NEAR(f["seconds"].get<double>(), 0.02 * f["steps"].get<double>(), 1e-9);
  EXPECT_EQ(f["stop_reason"], "confidence");
  EXPECT_GE(f["warmup_seconds"].get<double>(), 0);
}

TEST(MeasurePeak, AWrongResultIsNoFigure) {
  FakeTimeline device;
  const RunnerResult result =
      MeasureShapes(device, {Shape(device, "a", 1, 0.01, "element 3 is 0")});
  EXPECT_EQ(result.outcome, "fail");
  EXPECT_NE(result.message.find("element 3 is 0"), std::string::npos);
}

TEST(Half, RoundsToNearestTiesToEven) {
  EXPECT_EQ(HalfOf(1.0f), 0x3c00);
  EXPECT_EQ(HalfOf(-2.0f), 0xc000);
  EXPECT_EQ(HalfOf(65504.0f), 0x7bff);
  EXPECT_EQ(HalfOf(65520.0f), 0x7c00);
  EXPECT_EQ(HalfOf(1.0f + 1.0f / 2048), 0x3c00);  // halfway, to even
  EXPECT_EQ(HalfOf(1.0f + 3.0f / 2048), 0x3c02);  // halfway, to even
  EXPECT_EQ(HalfOf(1.0f + 1.1f / 2048), 0x3c01);
  EXPECT_EQ(HalfOf(1e-6f), 0);
  EXPECT_TRUE(std::isnan(FloatOfHalf(HalfOf(NAN))));
  for (uint32_t bits = 0x0400; bits < 0x7c00; ++bits) {
    ASSERT_EQ(HalfOf(FloatOfHalf(static_cast<uint16_t>(bits))), bits);
  }
}

TEST(Brain, RoundsToNearestTiesToEven) {
  EXPECT_EQ(BrainOf(1.0f), 0x3f80);
  EXPECT_EQ(BrainOf(1.0f + 1.0f / 256), 0x3f80);
  EXPECT_EQ(BrainOf(1.0f + 3.0f / 256), 0x3f82);
  EXPECT_TRUE(std::isnan(FloatOfBrain(BrainOf(NAN))));
  EXPECT_EQ(FloatOfBrain(BrainOf(-0.5f)), -0.5f);
}

TEST(NormalBlock, IsNormalAndRepeatsAfterItsLength) {
  for (const Number number : {Number::kFloat32, Number::kFloat16, Number::kBfloat16}) {
    const NormalBlock block(number, 7);
    EXPECT_EQ(block.bytes(), kBlockValues * BytesOf(number));
    double sum = 0, squares = 0;
    for (uint64_t i = 0; i < 100000; ++i) {
      const double value = block.At(i);
      sum += value;
      squares += value * value;
    }
    EXPECT_NEAR(sum / 100000, 0, 0.02);
    EXPECT_NEAR(squares / 100000, 1, 0.03);
    EXPECT_EQ(block.At(5), block.At(5 + kBlockValues));
    EXPECT_NE(block.At(5), block.At(6));
  }
  EXPECT_NE(NormalBlock(Number::kFloat32, 7).At(5), NormalBlock(Number::kFloat32, 8).At(5));
}

TEST(GemmShapes, FitIntoTheMemoryThatIsFree) {
  EXPECT_EQ(GemmShapes(4, uint64_t{64} << 30).size(), 10u);
  EXPECT_EQ(GemmShapes(4, uint64_t{1} << 30).back().m, 8192);
  EXPECT_EQ(GemmShapes(4, 1).size(), 2u);  // the smallest is tried and may be mem_limit
  EXPECT_EQ((GemmShape{.m = 1, .n = 2, .k = 3, .transposed_a = true}.Text()), "1x2x3 TN");
}

TEST(CopySizes, DivideABillionAndFit) {
  EXPECT_EQ(CopySizes(uint64_t{8} << 30, 2).front(), 1'000'000'000u);
  EXPECT_EQ(CopySizes(1'000'000'000, 2).front(), 500'000'000u);
  EXPECT_EQ(CopySizes(1, 1), (std::vector<uint64_t>{125'000'000}));
  for (const uint64_t size : CopySizes(uint64_t{8} << 30, 2)) EXPECT_EQ(1'000'000'000 % size, 0u);
}

class BlasFolders : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/assay-peaks-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    root_ = name;
  }
  void TearDown() override { fs::remove_all(root_); }
  std::string Make(const std::string& path) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << "x";
    return (root_ / path).parent_path().string();
  }
  fs::path root_;
};

TEST_F(BlasFolders, TheGivenFolderIsTheOnlyOne) {
  const std::string given = Make("given/libcublas.so.12");
  const std::string built = Make("built/libcublas.so.13");
  EXPECT_EQ(BlasCandidates(given, "", {built}),
            (std::vector<std::string>{given + "/libcublas.so.12"}));
  EXPECT_TRUE(BlasCandidates(root_.string(), "", {built}).empty());
}

TEST_F(BlasFolders, WheelsBesideLibTorchComeBeforeTheBuildsAndTheLoaders) {
  const std::string built = Make("built/libcublas.so.13");
  Make("site/torch/lib/libc10.so");
  Make("site/nvidia/cu13/lib/libcublas.so.13");
  const std::vector<std::string> found =
      BlasCandidates("", (root_ / "site/torch").string(), {built});
  ASSERT_EQ(found.size(), 5u);
  EXPECT_TRUE(fs::equivalent(found[0], root_ / "site/nvidia/cu13/lib/libcublas.so.13"));
  EXPECT_EQ(found[1], built + "/libcublas.so.13");
  EXPECT_EQ(found[2], "libcublas.so.13");
}

}  // namespace
}  // namespace assay::peaks
