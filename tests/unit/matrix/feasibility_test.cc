#include "common/matrix/feasibility.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/results/outcome.h"

namespace assay {
namespace {

Device Gpu(int major, int minor) {
  Device device;
  device.uuid = "GPU-1";
  device.cc_major = major;
  device.cc_minor = minor;
  return device;
}

Device Cpu() {
  Device device;
  device.kind = "cpu";
  return device;
}

Spec Resnet(std::string precision) {
  Spec spec;
  spec.model = "resnet50";
  spec.image = "224x224";
  spec.precision = std::move(precision);
  return spec;
}

Stack LibTorch(std::string name, std::vector<std::string> arch_list) {
  Stack stack;
  stack.name = std::move(name);
  stack.models = {"resnet50"};
  stack.modes = {"train", "infer"};
  stack.precisions = {"fp32", "tf32", "amp-fp16", "amp-bf16"};
  stack.lanes = {"eager"};
  stack.layouts = {"channels-last", "contiguous"};
  stack.arch_list = std::move(arch_list);
  stack.device_kinds = {"cpu", "gpu"};
  return stack;
}

std::string Reason(const Spec& spec, const Device& device, const Stack* stack = nullptr) {
  const auto why = FeasibilityOf(spec, device, "the card", stack);
  EXPECT_TRUE(!why || !why->message.empty());
  return why ? std::string(why->reason) : "";
}

// Case 30: FP32 that is TF32.
TEST(Feasibility, Case30Tf32IsUnsupportedBeforeAmpere) {
  EXPECT_EQ(Reason(Resnet("tf32"), Gpu(8, 0)), "");
  EXPECT_EQ(Reason(Resnet("tf32"), Gpu(7, 0)), reason::kUnsupportedPrecision);
  EXPECT_EQ(Reason(Resnet("tf32"), Gpu(7, 5)), reason::kUnsupportedPrecision);
  EXPECT_EQ(Reason(Resnet("fp32"), Gpu(7, 5)), "");
  EXPECT_EQ(FeasibilityOf(Resnet("tf32"), Gpu(7, 5), "RTX 2080 Ti", nullptr)->message,
            "tf32 needs compute capability 8.0, and RTX 2080 Ti has 7.5; leave it out there");
}

// Case 32: bf16 on 1080 Ti, V100, 2080 Ti; AMP that gains nothing is still run.
TEST(Feasibility, Case32Bf16IsUnsupportedBeforeAmpereAndFp16RunsOnPascal) {
  for (const auto& [major, minor] : {std::pair(6, 1), std::pair(7, 0), std::pair(7, 5)}) {
    EXPECT_EQ(Reason(Resnet("amp-bf16"), Gpu(major, minor)), reason::kUnsupportedPrecision);
    EXPECT_EQ(Reason(Resnet("amp-fp16"), Gpu(major, minor)), "");
  }
  EXPECT_EQ(Reason(Resnet("amp-fp16"), Gpu(5, 2)), reason::kUnsupportedPrecision);
}

TEST(Feasibility, AProcessorRunsFp32AndBf16Only) {
  const Stack stack = LibTorch("libtorch-2.11.0", {"sm_90"});
  EXPECT_EQ(Reason(Resnet("fp32"), Cpu(), &stack), "");
  EXPECT_EQ(Reason(Resnet("amp-bf16"), Cpu(), &stack), "");
  EXPECT_EQ(Reason(Resnet("tf32"), Cpu(), &stack), reason::kUnsupportedPrecision);
  EXPECT_EQ(Reason(Resnet("amp-fp16"), Cpu(), &stack), reason::kUnsupportedPrecision);
}

// Case 41: no kernel image.
TEST(Feasibility, Case41ArchListOfTheStack) {
  const Stack until_9 = LibTorch("libtorch-2.7.1", {"sm_80", "sm_90"});
  EXPECT_EQ(Reason(Resnet("fp32"), Gpu(12, 0), &until_9), reason::kUnsupportedArch);
  EXPECT_EQ(Reason(Resnet("fp32"), Gpu(8, 6), &until_9), "");
  const Stack from_7 = LibTorch("libtorch-2.11.0", {"sm_70", "sm_80"});
  EXPECT_EQ(Reason(Resnet("fp32"), Gpu(6, 1), &from_7), reason::kUnsupportedArch);
  EXPECT_EQ(FeasibilityOf(Resnet("fp32"), Gpu(12, 0), "RTX 5090", &until_9)->message,
            "RTX 5090 has compute capability 12.0, and stack libtorch-2.7.1 is built for sm_80, "
            "sm_90; use another stack");
}

TEST(Feasibility, Case41ArchNames) {
  const auto runs = [](std::vector<std::string> list, int major, int minor) {
    return ArchListRunsOn(list, major, minor);
  };
  EXPECT_TRUE(runs({"sm_80"}, 8, 9));
  EXPECT_FALSE(runs({"sm_86"}, 8, 0));
  EXPECT_FALSE(runs({"sm_80"}, 9, 0));
  EXPECT_TRUE(runs({"sm_70", "compute_80"}, 12, 0));
  EXPECT_FALSE(runs({"compute_80"}, 7, 5));
  EXPECT_TRUE(runs({"sm_90a"}, 9, 0));
  EXPECT_FALSE(runs({"sm_100a"}, 10, 3));
  EXPECT_TRUE(runs({"sm_120"}, 12, 1));
  EXPECT_FALSE(runs({"", "nonsense", "sm_999999999999999999999"}, 8, 0));
}

TEST(Feasibility, AProcessorHasNoCudaGraphs) {
  Spec spec = Resnet("fp32");
  for (const char* lane : {"graph", "fused"}) {
    spec.lane = lane;
    EXPECT_EQ(Reason(spec, Cpu()), reason::kUnsupportedLane) << lane;
    EXPECT_EQ(Reason(spec, Gpu(8, 0)), "") << lane;
  }
  spec.lane = "compile";
  EXPECT_EQ(Reason(spec, Cpu()), "");
}

TEST(Feasibility, WhatTheStackLacksIsNamed) {
  Stack stack = LibTorch("libtorch-2.11.0", {});
  Spec spec = Resnet("fp32");
  spec.model = "swin_l";
  spec.layout = "contiguous";
  EXPECT_EQ(Reason(spec, Gpu(8, 0), &stack), reason::kUnknownModel);
  spec = Resnet("fp32");
  spec.lane = "graph";
  EXPECT_EQ(Reason(spec, Gpu(8, 0), &stack), reason::kUnsupportedLane);
  EXPECT_EQ(FeasibilityOf(spec, Gpu(8, 0), "A100", &stack)->message,
            "stack libtorch-2.11.0 has no lane graph; it has eager");
  stack.modes = {"train"};
  spec = Resnet("fp32");
  spec.mode = "infer";
  EXPECT_EQ(Reason(spec, Gpu(8, 0), &stack), reason::kUnsupportedMode);
  stack.layouts = {"contiguous"};
  EXPECT_EQ(Reason(Resnet("fp32"), Gpu(8, 0), &stack), reason::kUnsupportedValue);
  stack.precisions = {"fp32"};
  EXPECT_EQ(Reason(Resnet("tf32"), Gpu(8, 0), &stack), reason::kUnsupportedPrecision);
  stack = LibTorch("libtorch-2.11.0", {});
  spec = Resnet("fp32");
  spec.gpus = 2;
  EXPECT_EQ(Reason(spec, Gpu(8, 0), &stack), reason::kUnsupportedValue);
  stack.device_kinds = {"cpu"};
  EXPECT_EQ(Reason(Resnet("fp32"), Gpu(8, 0), &stack), reason::kUnsupportedArch);
}

TEST(Feasibility, WhatTheModelLacksIsNamed) {
  Spec spec;
  spec.model = "gpt2_medium";
  EXPECT_EQ(Reason(spec, Gpu(8, 0)), reason::kUnsupportedValue);  // channels-last
  spec.layout = "contiguous";
  EXPECT_EQ(Reason(spec, Gpu(8, 0)), "");
  spec.image = "224x224";
  EXPECT_EQ(Reason(spec, Gpu(8, 0)), reason::kUnsupportedValue);
}

// Case 40: driver too old, with both versions.
TEST(Feasibility, Case40DriverOlderThanTheStacksCudaNeeds) {
  Stack stack = LibTorch("libtorch-2.11.0", {"sm_80"});
  stack.versions["cuda"] = "13.0";
  Device device = Gpu(8, 0);
  device.driver_version = "550.90.07";
  EXPECT_EQ(Reason(Resnet("fp32"), device, &stack), reason::kDriverTooOld);
  EXPECT_EQ(FeasibilityOf(Resnet("fp32"), device, "A10", &stack)->message,
            "stack libtorch-2.11.0 is built for CUDA 13.0, which needs driver 580.65.06 or later, "
            "and A10 has driver 550.90.07; update the driver or use an older stack");
  device.driver_version = "580.95.05";
  EXPECT_EQ(Reason(Resnet("fp32"), device, &stack), "");
  device.driver_version = "";
  EXPECT_EQ(Reason(Resnet("fp32"), device, &stack), "");
  stack.versions["cuda"] = "12.6";
  device.driver_version = "535.161.08";
  EXPECT_EQ(Reason(Resnet("fp32"), device, &stack), "");
}

// Case 8: multi-GPU across slices.
TEST(Feasibility, Case8AGangOfSlicesIsRefused) {
  Device slice = Gpu(8, 0);
  slice.kind = "mig";
  Spec spec = Resnet("fp32");
  EXPECT_EQ(Reason(spec, slice), "");
  spec.gpus = 2;
  EXPECT_EQ(Reason(spec, slice), reason::kMigWorldSize);
}

TEST(Feasibility, FactsThatAreNotKnownAndEstimatesSpeakAgainstNothing) {
  EXPECT_EQ(Reason(Resnet("tf32"), Gpu(0, 0)), "");
  Device small = Gpu(8, 0);
  small.memory_total_bytes = uint64_t{1} << 30;
  Spec spec = Resnet("fp32");
  spec.batch = 8192;
  EXPECT_EQ(Reason(spec, small), "");
  EXPECT_EQ(MemoryWarning(spec, small, "tiny"),
            "resnet50 train fp32 batch 8192 is estimated to need 1298 GiB, and tiny has 1; it may "
            "end as mem_limit");
  spec.batch = kBatchMax;
  EXPECT_EQ(MemoryWarning(spec, small, "tiny"), "");
}

TEST(ChooseStack, TakesTheNewestThatCanRunIt) {
  std::vector<Stack> stacks = {LibTorch("libtorch-2.7.1", {"sm_61", "sm_90"}),
                               LibTorch("libtorch-2.11.0", {"sm_75", "sm_90"})};
  EXPECT_EQ(ChooseStack(Resnet("fp32"), Gpu(9, 0), "H200", stacks).stack->name, "libtorch-2.11.0");
  EXPECT_EQ(ChooseStack(Resnet("fp32"), Gpu(6, 1), "GTX 1080 Ti", stacks).stack->name,
            "libtorch-2.7.1");
  Spec spec = Resnet("fp32");
  spec.stack = "libtorch-2.7.1";
  EXPECT_EQ(ChooseStack(spec, Gpu(9, 0), "H200", stacks).stack->name, "libtorch-2.7.1");
}

TEST(ChooseStack, GivesTheNewestStacksReasonWhereNoneCan) {
  std::vector<Stack> stacks = {LibTorch("libtorch-2.7.1", {"sm_80"}),
                               LibTorch("libtorch-2.11.0", {"sm_75"})};
  const StackChoice choice = ChooseStack(Resnet("fp32"), Gpu(12, 0), "RTX 5090", stacks);
  EXPECT_EQ(choice.stack, nullptr);
  EXPECT_EQ(choice.infeasible->reason, reason::kUnsupportedArch);
  EXPECT_NE(choice.infeasible->message.find("2.11.0"), std::string::npos);
}

TEST(ChooseStack, TheReasonIsThatOfAStackWithTheModel) {
  Spec spec;
  spec.model = "gemm";
  spec.mode = "peak";
  spec.layout = "contiguous";
  Stack peaks;
  peaks.name = "peaks";
  peaks.models = {"gemm"};
  peaks.modes = {"peak"};
  peaks.precisions = {"fp32"};
  peaks.lanes = {"eager"};
  peaks.device_kinds = {"gpu"};
  const std::vector<Stack> stacks = {LibTorch("libtorch-2.11.0", {"sm_75"}), peaks};
  const StackChoice choice = ChooseStack(spec, Cpu(), "AMD EPYC", stacks);
  ASSERT_TRUE(choice.infeasible.has_value());
  EXPECT_EQ(choice.infeasible->reason, reason::kUnsupportedArch);
  EXPECT_EQ(ChooseStack(spec, Gpu(9, 0), "H200", stacks).stack->name, "peaks");
}

TEST(ChooseStack, AMissingStackIsNamed) {
  Spec spec = Resnet("fp32");
  EXPECT_EQ(ChooseStack(spec, Gpu(9, 0), "H200", {}).infeasible->reason, reason::kStackMissing);
  spec.stack = "libtorch-3";
  const std::vector<Stack> stacks = {LibTorch("libtorch-2.7.1", {})};
  EXPECT_EQ(ChooseStack(spec, Gpu(9, 0), "H200", stacks).infeasible->message,
            "stack libtorch-3 is not installed for H200; install it there or take another");
  spec.precision = "tf32";
  EXPECT_EQ(ChooseStack(spec, Gpu(7, 0), "V100", {}).infeasible->reason,
            reason::kUnsupportedPrecision);
}

TEST(ChooseStack, SimulatedStacksAreForSimulatedDevicesOrByName) {
  Stack simulated = LibTorch("simulate", {});
  simulated.simulated = true;
  const std::vector<Stack> both = {simulated, LibTorch("libtorch-2.7.1", {})};
  const std::vector<Stack> only = {simulated};
  Device device = Gpu(9, 0);
  EXPECT_EQ(ChooseStack(Resnet("fp32"), device, "H200", both).stack->name, "libtorch-2.7.1");
  EXPECT_EQ(ChooseStack(Resnet("fp32"), device, "H200", only).stack, nullptr);
  Spec spec = Resnet("fp32");
  spec.stack = "simulate";
  EXPECT_NE(ChooseStack(spec, device, "H200", only).stack, nullptr);
  device.simulated = true;
  EXPECT_EQ(ChooseStack(Resnet("fp32"), device, "H200", both).stack->name, "simulate");
  spec.stack = "libtorch-2.7.1";
  EXPECT_EQ(ChooseStack(spec, device, "H200", both).stack, nullptr);
}

TEST(ChooseStack, SaysOfWhatIsInstalledWhyItDoesNotServe) {
  Stack simulated = LibTorch("simulate", {});
  simulated.simulated = true;
  const std::vector<Stack> only = {simulated};
  const std::vector<Stack> real = {LibTorch("libtorch-2.7.1", {})};
  const auto why = [](const Spec& spec, const Device& device, const std::vector<Stack>& stacks) {
    const StackChoice choice = ChooseStack(spec, device, "H200", stacks);
    EXPECT_EQ(choice.infeasible->reason, reason::kStackMissing);
    return choice.infeasible->message;
  };
  Spec named = Resnet("fp32");
  named.stack = "libtorch-2.7.1";
  Device card = Gpu(9, 0);
  EXPECT_EQ(why(Resnet("fp32"), card, only),
            "only simulated stacks are installed for H200; install a runner there, or name one of "
            "them as stack for a rehearsal");
  card.simulated = true;
  EXPECT_EQ(why(named, card, real),
            "H200 is a simulated card, which only simulated stacks serve, and libtorch-2.7.1 is a "
            "real one; leave the stack out there");
  EXPECT_EQ(why(Resnet("fp32"), card, real),
            "H200 is a simulated card, and there is no simulated stack; install assay-simulate "
            "there");
  named.stack = "libtorch-3";
  EXPECT_EQ(why(named, card, real),
            "stack libtorch-3 is not installed for H200; install it there or take another");
}

TEST(ChooseStack, AStackThatCannotBeUsedIsNotChosen) {
  Stack broken = LibTorch("libtorch-2.11.0", {});
  broken.unusable_reason = "libcudart.so.13 is missing";
  const std::vector<Stack> stacks = {broken};
  const StackChoice choice = ChooseStack(Resnet("fp32"), Gpu(9, 0), "H200", stacks);
  EXPECT_EQ(choice.infeasible->reason, reason::kStackMissing);
  EXPECT_EQ(choice.infeasible->message,
            "stack libtorch-2.11.0 cannot be used: libcudart.so.13 is missing");
}

}  // namespace
}  // namespace assay
