#include "common/catalog/workload_catalog.h"

#include <gtest/gtest.h>

#include "common/catalog/builtin_text.h"
#include "common/status/status.h"

namespace assay {
namespace {

TEST(WorkloadCatalog, BuiltinTextHasNoFault) {
  const auto parsed = WorkloadCatalog::Parse(kWorkloadsYaml, "workloads.yaml");
  ASSERT_TRUE(parsed.ok()) << Message(parsed.status());
}

TEST(WorkloadCatalog, ListsTheSevenModelsAndTheCeilings) {
  for (const char* name : {"resnet50_v1", "resnet50", "resnext101_32x4d", "se_resnext101_32x4d",
                           "swin_l", "fasterrcnn_resnet50_fpn", "gpt2_medium"}) {
    ASSERT_NE(BuiltinWorkloads().Find(name), nullptr) << name;
    EXPECT_GT(BuiltinWorkloads().Find(name)->parameters, 0) << name;
  }
  for (const char* name :
       {"gemm", "gemm_fp16_accumulate", "copy", "host_to_device", "device_to_host", "peer"}) {
    ASSERT_NE(BuiltinWorkloads().Find(name), nullptr) << name;
    EXPECT_TRUE(BuiltinWorkloads().Find(name)->IsPeak()) << name;
  }
  EXPECT_EQ(BuiltinWorkloads().workloads().size(), 13u);
  EXPECT_EQ(BuiltinWorkloads().Find("resnet50")->parameters, 25557032);
  // What the runner counts: tests/unit/runners/train/op_counter_test.cc.
  EXPECT_EQ(BuiltinWorkloads().Find("resnet50")->infer_flops_per_sample, 8178368512);
  EXPECT_EQ(BuiltinWorkloads().Find("resnet50")->train_flops_per_sample, 24299077632);
  EXPECT_EQ(BuiltinWorkloads().Find("ResNet50"), nullptr);
}

TEST(WorkloadCatalog, EveryModelHasAMemoryLineForEachOfItsPrecisionsAndModes) {
  for (const Workload& workload : BuiltinWorkloads().workloads()) {
    if (workload.IsPeak()) continue;
    for (const std::string& precision : workload.precisions) {
      for (const std::string& mode : workload.modes) {
        const auto bytes = workload.MemoryEstimateBytes(precision, mode, "", 1);
        ASSERT_TRUE(bytes.has_value()) << workload.name;
        EXPECT_GT(*bytes, 0);
      }
    }
  }
}

TEST(WorkloadCatalog, LeastComputeCapabilityOfAPrecision) {
  EXPECT_EQ(BuiltinWorkloads().FindPrecision("tf32")->cc_major, 8);
  EXPECT_EQ(BuiltinWorkloads().FindPrecision("amp-bf16")->cc_major, 8);
  EXPECT_EQ(BuiltinWorkloads().FindPrecision("amp-fp16")->cc_major, 5);
  EXPECT_EQ(BuiltinWorkloads().FindPrecision("fp32")->cc_major, 0);
}

TEST(WorkloadCatalog, MemoryEstimateGrowsWithBatchAndArea) {
  const Workload& workload = *BuiltinWorkloads().Find("resnet50");
  const double one = *workload.MemoryEstimateBytes("fp32", "train", "", 1);
  const double two = *workload.MemoryEstimateBytes("fp32", "train", "", 2);
  const double wide = *workload.MemoryEstimateBytes("fp32", "train", "224x448", 1);
  EXPECT_GT(two, one);
  EXPECT_DOUBLE_EQ(wide, two);
  EXPECT_FALSE(workload.MemoryEstimateBytes("fp8", "train", "", 1).has_value());
}

TEST(ImageSize, IsHeightByWidthOrNothing) {
  EXPECT_EQ(ParseImageSize("800x1333"), (std::pair<int64_t, int64_t>(800, 1333)));
  for (const char* wrong : {"", "x", "800", "800x", "x800", "0x10", "08x8", "8x8x8", "8X8", "-1x8",
                            "65537x1", "99999999999999999999x1", "8 x8"}) {
    EXPECT_FALSE(ParseImageSize(wrong).has_value()) << wrong;
  }
}

}  // namespace
}  // namespace assay
