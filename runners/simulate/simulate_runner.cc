#include "runners/simulate/simulate_runner.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "common/version.h"
#include "runners/common/largest_batch_cell.h"
#include "runners/common/tcp_barrier.h"
#include "runners/simulate/behaviour.h"
#include "runners/simulate/catalog.h"
#include "runners/simulate/misdeeds.h"
#include "runners/simulate/roofline.h"
#include "runners/simulate/simulated_window.h"
#include "runners/simulate/step_noise.h"

namespace assay::simulate {
namespace {

using nlohmann::json;

// A gang is started only when every agent is ready: longer than this and somebody is gone.
constexpr double kJoinSeconds = 120;
// The driver and the framework's context take their share before the first tensor.
constexpr double kContextBytes = 0.6e9;

RunnerResult Unsupported(const char* reason, const std::string& message) {
  return {"unsupported", reason, message, json::object()};
}

bool Has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string Gigabytes(double bytes) {
  return std::to_string(static_cast<int64_t>(std::ceil(bytes / 1e9))) + " GB";
}

// Sleeps along simulated time, in one sleep for many short steps.
class Pace {
 public:
  explicit Pace(double factor) : factor_(factor), begin_(std::chrono::steady_clock::now()) {}
  void Step(double seconds) {
    if (factor_ <= 0) return;
    simulated_ += seconds;
    const auto due = begin_ + std::chrono::duration_cast<std::chrono::nanoseconds>(
                                  std::chrono::duration<double>(simulated_ * factor_));
    if (due - std::chrono::steady_clock::now() > std::chrono::milliseconds(2)) {
      std::this_thread::sleep_until(due);
    }
  }

 private:
  const double factor_;
  const std::chrono::steady_clock::time_point begin_;
  double simulated_ = 0;
};

std::optional<RunnerResult> Refuse(const CellFile& cell, const WorkloadFigures* workload,
                                   const CardFigures& card) {
  const Spec& spec = cell.spec;
  if (workload == nullptr) {
    return Unsupported("model_not_in_stack", "this stack has no model '" + spec.model + "'");
  }
  if (!Has(Modes(), spec.mode)) {
    return Unsupported("mode_not_in_stack", "this stack has no mode '" + spec.mode + "'");
  }
  if (!Has(Lanes(), spec.lane)) {
    return Unsupported("lane_not_in_stack", "this stack has no lane '" + spec.lane + "'");
  }
  if (!Has(Layouts(), spec.layout)) {
    return Unsupported("value_not_in_stack", "this stack has no layout '" + spec.layout + "'");
  }
  if (!ImageScale(spec.image, *workload)) {
    return Unsupported("value_not_in_stack", "image '" + spec.image + "' is not HEIGHTxWIDTH or " +
                                                 spec.model + " has no images");
  }
  if (PeakTflops(card, spec.precision) <= 0) {
    return Unsupported("unsupported_precision", card.name + " has no " + spec.precision);
  }
  if (spec.scaling == "strong" && spec.batch % (cell.world_size * spec.accumulate) != 0) {
    return Unsupported("value_not_in_stack",
                       "strong scaling: batch must be divisible by ranks times accumulate");
  }
  return std::nullopt;
}

RunnerResult OutOfMemory(const CellFile& cell, const CardFigures& card, double needed_bytes) {
  return {"mem_limit", "out_of_memory",
          "rank " + std::to_string(cell.rank) + " on " + cell.device_uuid + ": out of memory, " +
              Gigabytes(needed_bytes) + " needed of the " +
              Gigabytes(card.memory_gib * 1073741824) + " of " + card.name,
          json{{"world_size", cell.world_size}}};
}

void FillSettings(const CellFile& cell, const WorkloadFigures& workload, const StepModel& model,
                  json& fields) {
  const Spec& spec = cell.spec;
  const bool train = spec.mode == "train", cpu = cell.device_kind == "cpu";
  fields["unit"] = workload.sample_unit + "/s";
  fields["world_size"] = cell.world_size;
  fields["parameters"] = workload.parameters;
  fields["threads"] = 1;
  fields["seed"] = cell.seed;
  fields["method_version"] = 1;
  fields["libtorch_version"] = "simulated";
  fields["allow_tf32_matmul"] = fields["allow_tf32_cudnn"] = spec.precision == "tf32";
  fields["cudnn_benchmark"] = true;
  fields["cudnn_benchmark_limit"] = 10;
  fields["deterministic"] = false;
  fields["reduced_precision_reduction"] = fields["reduced_precision_reduction_bf16"] = false;
  fields["fp16_accumulation"] = false;
  fields["attention_backends"] = "math";
  fields["allocator_settings"] = "default";
  fields["library_load_seconds"] = 0.3;
  fields["device_setup_seconds"] = 0.5;
  fields["gpu_busy_ratio"] = std::min(1.0, model.device_seconds / model.seconds);
  if (cell.world_size > 1) fields["transport"] = "simulated";
  if (!cpu) {
    fields["allocated_peak_bytes"] = static_cast<int64_t>(model.memory_bytes);
    fields["reserved_peak_bytes"] = static_cast<int64_t>(model.memory_bytes * 1.06);
  }
  if (train) {
    fields["loss_first"] = 6.9;
    fields["loss_last"] = 6.7;
    fields["skipped_steps"] = 0;
    if (spec.precision == "amp-fp16") fields["loss_scale"] = 65536.0;
  }
}

// Progress of the window as the agent sees it, at the pace that was asked for.
WindowResult Measure(const CellFile& cell, const StepModel& model, int64_t global_samples,
                     const Behaviour& behaviour, RecordWriter& records) {
  StepNoise noise(cell.seed, cell.card + "/" + cell.spec.key + "/" + std::to_string(cell.repeat));
  Pace pace(behaviour.realtime);
  return RunWindow(
      cell.spec.stop, global_samples, [&] { return model.seconds * noise.Next(); },
      [&](int64_t step, double seconds, double left) {
        pace.Step(seconds);
        records.Progress(static_cast<uint64_t>(step), static_cast<double>(global_samples) / seconds,
                         left);
      },
      [&](const char* phase) {
        records.Phase(phase);
        if (phase == std::string("measure")) WhileMeasuring(behaviour, records);
      });
}

// A trial of the search for the largest batch: the steps alone, at the pace that was asked for.
RunnerResult Trial(const CellFile& cell, const CardFigures& card, const StepModel& model,
                   const Behaviour& behaviour, RecordWriter& records) {
  Pace pace(behaviour.realtime);
  WhileMeasuring(behaviour, records);
  for (int64_t step = 1; step <= cell.trial_steps; ++step) {
    pace.Step(model.seconds);
    records.Progress(static_cast<uint64_t>(step), 0, 0);
  }
  return {"ok", "", "",
          json{{kTrialUsedBytes, model.memory_bytes + kContextBytes},
               {kTrialCapacityBytes, card.memory_gib * 1073741824}}};
}

// Passes `seconds` of real time with signs of life.
void PassTime(double seconds, RecordWriter& records) {
  const auto begin = std::chrono::steady_clock::now();
  for (uint64_t step = 1;; ++step) {
    const double passed =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (passed >= seconds) return;
    records.Progress(step, 0, seconds - passed);
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(0.25, seconds - passed)));
  }
}

}  // namespace

std::string SimulateRunner::Version() const { return kVersion; }

json SimulateRunner::StackInfo() {
  return {{"runner", Name()},
          {"protocol", kRunnerProtocol},
          {"versions", {{"runner", Version()}, {"libtorch", "simulated"}}},
          {"models", Models()},
          {"modes", simulate::Modes()},
          {"precisions", Precisions()},
          {"lanes", Lanes()},
          {"layouts", Layouts()},
          {"arch_list", json::array()},
          {"device_kinds", {"cpu", "gpu", "mig"}},
          {"max_world_size", 4096},
          {"simulated", true}};
}

std::vector<std::string> SimulateRunner::Models() const {
  std::vector<std::string> names;
  for (const WorkloadFigures& workload : Workloads()) names.push_back(workload.name);
  return names;
}

json SimulateRunner::Describe(const std::string& model) {
  const WorkloadFigures* workload = FindWorkload(model);
  if (workload == nullptr) return nullptr;
  return {
      {"model", workload->name},
      {"parameters", workload->parameters},
      {"flops_per_sample", {{"train", workload->train_flops}, {"infer", workload->infer_flops}}},
      {"sample_unit", workload->sample_unit}};
}

RunnerResult SimulateRunner::Run(const CellFile& cell, RecordWriter& records) {
  const Behaviour behaviour = BehaviourFor(rules_, cell);
  const WorkloadFigures* workload = FindWorkload(cell.spec.model);
  const CardFigures card = CardOf(cell.card, cell.device_kind);
  if (auto refusal = Refuse(cell, workload, card)) return *refusal;
  records.Phase("load");
  BeforeJoin(behaviour);
  std::unique_ptr<TcpBarrier> barrier;
  if (cell.world_size > 1) barrier = TcpBarrier::Join(cell, kJoinSeconds);
  records.Joined();
  records.Phase("setup");

  const bool strong = cell.spec.scaling == "strong";
  const int64_t rank_batch = strong ? cell.spec.batch / cell.world_size : cell.spec.batch;
  const StepModel model =
      ModelStep(card, *workload, cell.spec, *ImageScale(cell.spec.image, *workload), rank_batch);
  if (behaviour.oom || model.memory_bytes + kContextBytes > card.memory_gib * 1073741824) {
    return OutOfMemory(cell, card, model.memory_bytes + kContextBytes);
  }
  if (cell.trial_steps > 0) return Trial(cell, card, model, behaviour, records);
  WindowResult window = Measure(cell, model, rank_batch * cell.world_size, behaviour, records);
  if (behaviour.slow_seconds > 0) PassTime(behaviour.slow_seconds, records);
  if (barrier) barrier->Finish();
  records.Phase("finish");
  RunnerResult result;
  result.fields = std::move(window.fields);
  FillSettings(cell, *workload, model, result.fields);
  Misreport(behaviour, window.steps, result.fields);
  if (behaviour.non_finite_loss) {
    result.fields["loss_last"] = std::numeric_limits<double>::quiet_NaN();
    result.outcome = "fail";
    result.reason = "non_finite_loss";
    result.message = "the loss is not finite: the figures of this cell are worthless";
  }
  return result;
}

}  // namespace assay::simulate
