#include "common/matrix/feasibility.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "common/catalog/workload_catalog.h"
#include "common/results/outcome.h"

namespace assay {
namespace {

// Numbers in a version or a name, in order: "12.6" -> 12, 6; "libtorch-2.11.0" -> 2, 11, 0.
std::vector<uint64_t> NumbersIn(std::string_view text) {
  std::vector<uint64_t> numbers;
  bool inside = false;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (digit && !inside) numbers.push_back(0);
    if (digit && numbers.back() < 1'000'000'000) {
      numbers.back() = numbers.back() * 10 + static_cast<uint64_t>(c - '0');
    }
    inside = digit;
  }
  return numbers;
}

std::string VersionOf(const Stack& stack, const std::string& key) {
  const auto found = stack.versions.find(key);
  return found == stack.versions.end() ? "" : found->second;
}

bool Contains(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Least Linux driver for a CUDA major version: "CUDA Toolkit and Minimum Required Driver Version
// for CUDA Minor Version Compatibility" in NVIDIA's CUDA release notes.
struct LeastDriver {
  uint64_t cuda_major;
  std::string_view driver;
};
constexpr std::array<LeastDriver, 3> kLeastDrivers = {
    {{11, "450.80.02"}, {12, "525.60.13"}, {13, "580.65.06"}}};

std::optional<Infeasible> DriverTooOld(const Device& device, std::string_view card,
                                       const Stack& stack) {
  const std::string cuda = VersionOf(stack, "cuda");
  const std::vector<uint64_t> cuda_numbers = NumbersIn(cuda);
  const std::vector<uint64_t> driver_numbers = NumbersIn(device.driver_version);
  if (cuda_numbers.empty() || driver_numbers.empty()) return std::nullopt;
  for (const LeastDriver& least : kLeastDrivers) {
    if (least.cuda_major != cuda_numbers[0] || driver_numbers >= NumbersIn(least.driver)) continue;
    return Infeasible{reason::kDriverTooOld,
                      fmt::format("stack {} is built for CUDA {}, which needs driver {} or later, "
                                  "and {} has driver {}; update the driver or use an older stack",
                                  stack.name, cuda, least.driver, card, device.driver_version)};
  }
  return std::nullopt;
}

std::optional<Infeasible> UnsupportedPrecision(const Spec& spec, const Device& device,
                                               std::string_view card) {
  const PrecisionFacts* precision = BuiltinWorkloads().FindPrecision(spec.precision);
  if (precision == nullptr) return std::nullopt;  // a newer peer's word: the stack decides
  if (device.kind == "cpu") {
    if (precision->on_cpu) return std::nullopt;
    return Infeasible{reason::kUnsupportedPrecision,
                      fmt::format("{} needs a GPU, and {} is a processor; use fp32 or amp-bf16",
                                  spec.precision, card)};
  }
  if (device.cc_major == 0) return std::nullopt;
  const auto has = std::pair(device.cc_major, device.cc_minor);
  if (has >= std::pair(precision->cc_major, precision->cc_minor)) return std::nullopt;
  return Infeasible{
      reason::kUnsupportedPrecision,
      fmt::format("{} needs compute capability {}.{}, and {} has {}.{}; leave it out there",
                  spec.precision, precision->cc_major, precision->cc_minor, card, device.cc_major,
                  device.cc_minor)};
}

std::optional<Infeasible> UnsupportedLane(const Spec& spec, const Device& device,
                                          std::string_view card) {
  if (device.kind != "cpu" || (spec.lane != "graph" && spec.lane != "fused")) return std::nullopt;
  return Infeasible{
      reason::kUnsupportedLane,
      fmt::format("lane {} replays steps as CUDA Graphs, and {} is a processor; use eager",
                  spec.lane, card)};
}

// What the catalogue alone knows not to exist.
std::optional<Infeasible> UnsupportedByModel(const Spec& spec) {
  const Workload* workload = BuiltinWorkloads().Find(spec.model);
  if (workload == nullptr) return std::nullopt;
  const auto no = [&](std::string_view code, std::string_view what) {
    return Infeasible{code, fmt::format("{} has no {}; exclude it", spec.model, what)};
  };
  if (!Contains(workload->modes, spec.mode)) return no(reason::kUnsupportedMode, spec.mode);
  if (!Contains(workload->lanes, spec.lane)) {
    return no(reason::kUnsupportedLane, fmt::format("lane {}", spec.lane));
  }
  if (!Contains(workload->precisions, spec.precision)) {
    return no(reason::kUnsupportedPrecision, spec.precision);
  }
  if (!Contains(workload->layouts, spec.layout)) {
    return no(reason::kUnsupportedValue, fmt::format("layout {}", spec.layout));
  }
  if (workload->default_image.empty() && !spec.image.empty()) {
    return no(reason::kUnsupportedValue, "images");
  }
  return std::nullopt;
}

std::optional<Infeasible> UnsupportedByStack(const Spec& spec, const Stack& stack) {
  const auto no = [&](std::string_view code, std::string_view what,
                      const std::vector<std::string>& has) {
    return Infeasible{code,
                      fmt::format("stack {} has no {}; it has {}", stack.name, what,
                                  has.empty() ? "none" : fmt::format("{}", fmt::join(has, ", ")))};
  };
  if (!Contains(stack.models, spec.model)) {
    return no(reason::kUnknownModel, fmt::format("model {}", spec.model), stack.models);
  }
  if (!Contains(stack.modes, spec.mode)) {
    return no(reason::kUnsupportedMode, fmt::format("mode {}", spec.mode), stack.modes);
  }
  if (!Contains(stack.precisions, spec.precision)) {
    return no(reason::kUnsupportedPrecision, fmt::format("precision {}", spec.precision),
              stack.precisions);
  }
  if (!Contains(stack.lanes, spec.lane)) {
    return no(reason::kUnsupportedLane, fmt::format("lane {}", spec.lane), stack.lanes);
  }
  if (!stack.layouts.empty() && !Contains(stack.layouts, spec.layout)) {
    return no(reason::kUnsupportedValue, fmt::format("layout {}", spec.layout), stack.layouts);
  }
  if (spec.WorldSize() > stack.max_world_size) {
    return Infeasible{reason::kUnsupportedValue,
                      fmt::format("stack {} runs on {} ranks at most, and {} are asked for",
                                  stack.name, stack.max_world_size, spec.WorldSize())};
  }
  return std::nullopt;
}

std::optional<Infeasible> UnsupportedArch(const Device& device, std::string_view card,
                                          const Stack& stack) {
  const std::string_view kind = device.kind == "cpu" ? "cpu" : "gpu";
  if (!stack.device_kinds.empty() && !Contains(stack.device_kinds, kind)) {
    return Infeasible{
        reason::kUnsupportedArch,
        fmt::format("stack {} has no code for a {}, and {} is one", stack.name, kind, card)};
  }
  if (kind == "cpu" || device.cc_major == 0 || stack.arch_list.empty()) return std::nullopt;
  if (ArchListRunsOn(stack.arch_list, device.cc_major, device.cc_minor)) return std::nullopt;
  return Infeasible{
      reason::kUnsupportedArch,
      fmt::format(
          "{} has compute capability {}.{}, and stack {} is built for {}; use another stack", card,
          device.cc_major, device.cc_minor, stack.name, fmt::join(stack.arch_list, ", "))};
}

// Newer first: by framework version, then by the numbers in the name, then by the name.
bool IsNewer(const Stack* a, const Stack* b) {
  const auto a_version = NumbersIn(VersionOf(*a, "libtorch"));
  const auto b_version = NumbersIn(VersionOf(*b, "libtorch"));
  if (a_version != b_version) return a_version > b_version;
  const auto a_name = NumbersIn(a->name);
  const auto b_name = NumbersIn(b->name);
  if (a_name != b_name) return a_name > b_name;
  return a->name < b->name;
}

// Why none of `stacks` was even asked.
std::string NoStack(const Spec& spec, const Device& device, std::string_view card,
                    std::span<const Stack> stacks) {
  if (!spec.stack.empty()) {
    const bool there = std::any_of(stacks.begin(), stacks.end(),
                                   [&](const Stack& stack) { return stack.name == spec.stack; });
    return there ? fmt::format(
                       "{} is a simulated card, which only simulated stacks serve, and {} "
                       "is a real one; leave the stack out there",
                       card, spec.stack)
                 : fmt::format("stack {} is not installed for {}; install it there or take another",
                               spec.stack, card);
  }
  if (stacks.empty())
    return fmt::format("no stack is installed for {}; install a runner there", card);
  return device.simulated
             ? fmt::format(
                   "{} is a simulated card, and there is no simulated stack; install "
                   "assay-simulate there",
                   card)
             : fmt::format(
                   "only simulated stacks are installed for {}; install a runner there, or "
                   "name one of them as stack for a rehearsal",
                   card);
}

}  // namespace

bool ArchListRunsOn(std::span<const std::string> arch_list, int cc_major, int cc_minor) {
  const int device = cc_major * 10 + cc_minor;
  return std::any_of(arch_list.begin(), arch_list.end(), [&](const std::string& arch) {
    const std::vector<uint64_t> numbers = NumbersIn(arch);
    if (numbers.empty() || numbers[0] > 1000) return false;
    const int built = static_cast<int>(numbers[0]);
    const char suffix = arch.back();
    // Architecture-specific code (sm_90a) and family code (sm_100f) promise no other target.
    if (suffix == 'a' || suffix == 'f') return built == device;
    if (arch.starts_with("compute")) return built <= device;
    return built / 10 == cc_major && built <= device;
  });
}

std::optional<Infeasible> FeasibilityOf(const Spec& spec, const Device& device,
                                        std::string_view card, const Stack* stack) {
  if (auto why = UnsupportedByModel(spec)) return why;
  if (auto why = UnsupportedPrecision(spec, device, card)) return why;
  if (auto why = UnsupportedLane(spec, device, card)) return why;
  if (device.kind == "mig" && spec.WorldSize() > 1) {
    return Infeasible{
        reason::kMigWorldSize,
        fmt::format("{} is a MIG slice, and slices cannot talk to each other; ask for "
                    "one GPU on one node",
                    card)};
  }
  if (stack == nullptr) return std::nullopt;
  if (!stack->unusable_reason.empty()) {
    return Infeasible{reason::kStackMissing, fmt::format("stack {} cannot be used: {}", stack->name,
                                                         stack->unusable_reason)};
  }
  if (auto why = UnsupportedByStack(spec, *stack)) return why;
  if (auto why = UnsupportedArch(device, card, *stack)) return why;
  if (device.kind == "cpu") return std::nullopt;
  return DriverTooOld(device, card, *stack);
}

StackChoice ChooseStack(const Spec& spec, const Device& device, std::string_view card,
                        std::span<const Stack> stacks) {
  std::vector<const Stack*> fitting;
  for (const Stack& stack : stacks) {
    if (device.simulated && !stack.simulated) continue;
    if (spec.stack.empty() ? stack.simulated && !device.simulated : stack.name != spec.stack) {
      continue;
    }
    fitting.push_back(&stack);
  }
  std::sort(fitting.begin(), fitting.end(), IsNewer);
  StackChoice choice;
  for (const Stack* stack : fitting) {
    auto why = FeasibilityOf(spec, device, card, stack);
    if (!why) return {stack, std::nullopt};
    // The reason of a stack that has the model says more than that another lacks it.
    if (!choice.infeasible || (choice.infeasible->reason == reason::kUnknownModel &&
                               why->reason != reason::kUnknownModel)) {
      choice.infeasible = std::move(why);
    }
  }
  if (choice.infeasible) return choice;
  // The card's own reason says more than that no stack is there.
  choice.infeasible = FeasibilityOf(spec, device, card, nullptr);
  if (choice.infeasible) return choice;
  choice.infeasible = Infeasible{reason::kStackMissing, NoStack(spec, device, card, stacks)};
  return choice;
}

std::string MemoryWarning(const Spec& spec, const Device& device, std::string_view card) {
  const Workload* workload = BuiltinWorkloads().Find(spec.model);
  if (workload == nullptr || device.memory_total_bytes == 0 || spec.batch == kBatchMax) return "";
  int64_t micro_batch = spec.batch / std::max<int64_t>(1, spec.accumulate);
  if (spec.scaling == "strong") micro_batch /= std::max<int64_t>(1, spec.WorldSize());
  const auto bytes =
      workload->MemoryEstimateBytes(spec.precision, spec.mode, spec.image, micro_batch);
  const double has = static_cast<double>(device.memory_total_bytes);
  if (!bytes || *bytes <= has) return "";
  constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
  return fmt::format(
      "{} {} {} batch {} is estimated to need {:.0f} GiB, and {} has {:.0f}; it may end as "
      "mem_limit",
      spec.model, spec.mode, spec.precision, spec.batch, *bytes / kGib, card, has / kGib);
}

}  // namespace assay
