#include "runners/train/train_runner.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>

#include "common/version.h"
#include "runners/common/largest_batch_cell.h"
#include "runners/train/busy_pass.h"
#include "runners/train/data/data_source.h"
#include "runners/train/device/granted_cores.h"
#include "runners/train/failure.h"
#include "runners/train/lanes/lane.h"
#include "runners/train/latency.h"
#include "runners/train/loaded_library.h"
#include "runners/train/op_counter.h"
#include "runners/train/refusal.h"
#include "runners/train/trainer.h"

namespace assay::train {
namespace {

using nlohmann::json;

template <typename T>
json OrNull(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}

json TextOrNull(const std::string& text) { return text.empty() ? json(nullptr) : json(text); }

std::unique_ptr<Device> MakeDevice(const CellFile& cell) {
  if (cell.device_kind == "cuda") return MakeCudaDevice(cell.device_uuid, cell.device_ordinal);
  return MakeCpuDevice();
}

void AddVersions(const StackVersions& versions, json& fields) {
  fields["libtorch_version"] = ASSAY_LIBTORCH_FULL_VERSION;
  fields["libtorch_build_id"] = TextOrNull(BuildIdOf("libtorch_cpu.so"));
  fields["cuda_version"] = TextOrNull(versions.cuda);
  fields["cudnn_version"] = TextOrNull(versions.cudnn);
  fields["nccl_version"] = TextOrNull(versions.nccl);
}

void AddMath(const MathSettings& math, json& fields) {
  fields["allow_tf32_matmul"] = math.allow_tf32_matmul;
  fields["allow_tf32_cudnn"] = math.allow_tf32_cudnn;
  fields["cudnn_benchmark"] = math.cudnn_benchmark;
  fields["cudnn_benchmark_limit"] = math.cudnn_benchmark_limit;
  fields["deterministic"] = math.deterministic;
  fields["reduced_precision_reduction"] = math.reduced_precision_reduction_fp16;
  fields["reduced_precision_reduction_bf16"] = math.reduced_precision_reduction_bf16;
  fields["fp16_accumulation"] = math.fp16_accumulation;
  fields["attention_backends"] = math.attention_backends;
  fields["allocator_settings"] = math.allocator_settings;
}

void AddPeaks(const Device& device, json& fields) {
  const MemoryPeaks peaks = device.Peaks();
  fields["allocated_peak_bytes"] = OrNull(peaks.allocated_bytes);
  fields["reserved_peak_bytes"] = OrNull(peaks.reserved_bytes);
}

void AddMeasurement(const Measurement& m, int64_t batch, json& fields) {
  const int64_t samples = m.steps * batch;
  fields["throughput"] = static_cast<double>(samples) / m.seconds;
  fields["ci95_ratio"] = OrNull(m.ci95_ratio);
  fields["step_p50_ms"] = m.p50_seconds * 1e3;
  fields["step_p95_ms"] = m.p95_seconds * 1e3;
  fields["step_p99_ms"] = m.p99_seconds * 1e3;
  fields["cv_ratio"] = OrNull(m.cv_ratio);
  fields["steps"] = m.steps;
  fields["device_steps"] = m.counts.steps;
  fields["samples"] = samples;
  fields["seconds"] = m.seconds;
  fields["host_seconds"] = m.host_seconds;
  fields["warmup_seconds"] = m.warmup_seconds;
  fields["warmup_steps"] = m.warmup_steps;
  fields["stop_reason"] = m.stop_reason;
  fields["skipped_steps"] = m.counts.skipped;
  fields["input_batches_seen"] = m.counts.inputs;
}

json Milliseconds(const std::optional<double>& seconds) {
  return seconds ? json(*seconds * 1e3) : json(nullptr);
}

void AddLatency(const Latency& latency, json& fields) {
  fields["latency_requests"] = latency.requests;
  fields["latency_p50_ms"] = Milliseconds(latency.p50_seconds);
  fields["latency_p95_ms"] = Milliseconds(latency.p95_seconds);
  fields["latency_p99_ms"] = Milliseconds(latency.p99_seconds);
}

void AddWork(const OpCounts& counts, int64_t batch, json& fields) {
  fields["flops_per_sample"] = static_cast<double>(counts.flops) / static_cast<double>(batch);
  fields["operator_bytes_per_sample"] =
      static_cast<double>(counts.bytes) / static_cast<double>(batch);
}

// What passes between memory and processor in every step whatever is fused or computed again:
// weights and momenta read and written (in inference the weights read), input read; less what a
// cache can hold from one step to the next.
void AddLeastBytes(Model& model, const Device& device, int64_t input, bool train, json& fields) {
  const std::optional<int64_t> cache = device.CacheBytes();
  if (!cache) return;
  constexpr int64_t kFloatBytes = sizeof(float);
  const int64_t weights = model.ParameterCount() * kFloatBytes;
  fields["least_bytes_per_step"] = std::max<int64_t>(0, (train ? 4 : 1) * weights + input - *cache);
}

// Reads the losses, now that the window is over.
bool AddLosses(const Measurement& m, json& fields) {
  if (!m.last.loss.defined()) {
    fields["loss_first"] = fields["loss_last"] = nullptr;
    // Of the sum: asked of each element, the answers would take more memory than the step did where
    // a model has an output for each token, and the peak would be theirs.
    return std::isfinite(m.last.logits.sum(at::kFloat).item<float>());
  }
  const double last = m.last.loss.item<double>();
  fields["loss_first"] = m.first.loss.item<double>();  // a non-finite one is written as null
  fields["loss_last"] = last;
  return std::isfinite(last);
}

// LibTorch takes as many threads as there are cores in the affinity mask, and knows no quota. Who
// asks for a number gets it.
void LimitThreads() {
  if (std::getenv("OMP_NUM_THREADS") != nullptr) return;
  const int granted = GrantedCores();
  if (at::get_num_threads() > granted) at::set_num_threads(granted);
}

c10::MemoryFormat LayoutOf(const std::string& name) {
  return name == "contiguous" ? c10::MemoryFormat::Contiguous : c10::MemoryFormat::ChannelsLast;
}

}  // namespace

std::string TrainRunner::Version() const { return kVersion; }

json TrainRunner::StackInfo() {
  const CudaStack cuda = QueryCuda();
  json versions = {{"runner", kVersion}};
  versions["libtorch"] = ASSAY_LIBTORCH_FULL_VERSION;
  versions["cuda"] = TextOrNull(cuda.versions.cuda);
  versions["cudnn"] = TextOrNull(cuda.versions.cudnn);
  versions["nccl"] = TextOrNull(cuda.versions.nccl);
  json kinds = json::array({"cpu"});
  if (cuda.devices > 0) kinds.push_back("gpu");
  json lanes = json::array({"eager"});
  if (cuda.built) lanes.push_back("graph");
  json info = {{"runner", kProgram},
               {"protocol", kRunnerProtocol},
               {"versions", versions},
               {"models", Models()},
               {"modes", {"train", "infer"}},
               {"precisions", PrecisionNames()},
               {"lanes", lanes},
               {"layouts", {"channels-last", "contiguous"}},
               {"arch_list", cuda.arch_list},
               {"device_kinds", kinds},
               {"max_world_size", 1},
               {"simulated", false}};
  if (!cuda.problem.empty()) info["problem"] = cuda.problem;
  return info;
}

std::vector<std::string> TrainRunner::Models() const {
  std::vector<std::string> names;
  for (const ModelEntry& model : train::Models()) names.push_back(model.name);
  return names;
}

json TrainRunner::Describe(const std::string& name) {
  const ModelEntry* model = FindModel(name);
  if (model == nullptr) return nullptr;
  return {
      {"model", model->name},
      {"parameters", model->parameters},
      // At the default image, of inference and of training.
      {"flops_per_sample", model->forward_flops(model->image.height, model->image.width)},
      {"train_flops_per_sample", model->train_flops(model->image.height, model->image.width)},
      {"sample_unit", model->sample_unit},
      {"image", std::to_string(model->image.height) + "x" + std::to_string(model->image.width)}};
}

RunnerResult TrainRunner::Run(const CellFile& cell, RecordWriter& records) {
  if (std::optional<RunnerResult> refusal = Refuse(cell)) return *refusal;
  json fields = json::object();
  fields["seed"] = cell.seed;
  fields["world_size"] = cell.world_size;
  fields["method_version"] = kMethodVersion;
  std::unique_ptr<Device> device;
  RunnerResult result;
  try {
    records.Phase("setup");
    const auto start = std::chrono::steady_clock::now();
    device = MakeDevice(cell);
    AddVersions(device->Versions(), fields);
    fields["context_used_bytes"] = OrNull(device->ContextUsedBytes());
    fields["device_setup_seconds"] =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    result = RunCell(cell, *FindModel(cell.spec.model), *device, fields, records);
  } catch (...) {
    std::fprintf(stderr, "assay-train: %s\n", TextOfException(std::current_exception()).c_str());
    result = ClassifyException(std::current_exception(), device && device->SawOutOfMemory());
  }
  // After an error of CUDA itself even this may throw.
  try {
    if (device) AddPeaks(*device, fields);
  } catch (const std::exception&) {
    fields["allocated_peak_bytes"] = fields["reserved_peak_bytes"] = nullptr;
  }
  result.fields = fields;
  return result;
}

namespace {

// Steps alone, one after the other, so that none hides that another does not fit.
RunnerResult RunTrial(const CellFile& cell, Device& device, Lane& lane, RecordWriter& records,
                      json& fields) {
  records.Phase("warmup");
  device.BeginWindow();
  for (int64_t step = 1; step <= cell.trial_steps; ++step) {
    lane.Step();
    device.EndStep();
    const double seconds = device.TakeOldest();
    records.Progress(static_cast<uint64_t>(step), static_cast<double>(cell.spec.batch) / seconds,
                     0);
  }
  device.Synchronize();
  const DeviceMemory memory = device.Memory();
  fields[kTrialUsedBytes] = memory.used_bytes;
  fields[kTrialCapacityBytes] = memory.capacity_bytes;
  return {};
}

}  // namespace

RunnerResult RunCell(const CellFile& cell, const ModelEntry& entry, Device& device, json& fields,
                     RecordWriter& records) {
  const auto start = std::chrono::steady_clock::now();
  const Spec& spec = cell.spec;
  if (auto refusal = RefusePrecision(spec.precision, device.ComputeCapability())) return *refusal;
  const Precision precision = *ParsePrecision(spec.precision);
  const bool train = spec.mode == "train";
  AddMath(SetMath(precision), fields);
  if (spec.lane == "graph") device.PrepareToRecord();
  at::manual_seed(cell.seed);
  const Placement placement{device.torch(), LayoutOf(spec.layout), train};
  const std::unique_ptr<Model> model = entry.make(placement);
  fields["parameters"] = model->ParameterCount();
  fields["unit"] = entry.sample_unit + "/s";
  LimitThreads();
  fields["threads"] = at::get_num_threads();
  const BatchShape shape{.batch = spec.batch,
                         .image = *ParseImage(spec.image, entry),
                         .classes = model->classes(),
                         .layout = placement.layout,
                         .input = entry.input};
  const std::unique_ptr<DataSource> data = MakeDataSource(spec.data, device, shape);
  fields["data_batches"] = data->batches();
  AddLeastBytes(*model, device, shape.InputBytes(), train, fields);
  Trainer trainer(*model, precision, spec.accumulate);
  device.Synchronize();
  fields["device_setup_seconds"] =
      fields.value("device_setup_seconds", 0.0) +
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  records.Joined();

  const std::unique_ptr<Lane> lane = MakeLane(spec.lane, device, trainer, *data);
  if (cell.trial_steps > 0) return RunTrial(cell, device, *lane, records, fields);
  CountedLane counted(*lane);
  const Measurement measured = Measure(device, counted, spec.stop, spec.batch, records);
  AddWork(counted.counts(), spec.batch, fields);
  AddMeasurement(measured, spec.batch, fields);
  const bool finite = AddLosses(measured, fields);
  if (const LossScaler* scaler = trainer.scaler()) {
    fields["loss_scale"] = scaler->scale().item<double>();
  }
  if (!train) {
    data->BringAhead(false);
    AddLatency(MeasureLatency(device, *lane, spec.stop.min_seconds, records), fields);
    data->BringAhead(true);
  }
  for (const auto& [name, value] : model->Figures()) fields[name] = value;
  fields["gpu_busy_ratio"] = OrNull(
      MeasureBusyRatio(device, *lane, measured.seconds / static_cast<double>(measured.steps)));
  return JudgeLosses(measured, finite);
}

RunnerResult JudgeLosses(const Measurement& measured, bool last_loss_finite) {
  const StepCounts& counts = measured.counts;
  RunnerResult result;
  // One in a hundred, and one in any case: the share at which a result is invalid anyway.
  const int64_t tolerated = std::max<int64_t>(1, counts.steps / 100);
  if (!last_loss_finite || counts.non_finite > tolerated) {
    result.outcome = "fail";
    result.reason = "non_finite_loss";
    result.message = "the loss was not finite in " + std::to_string(counts.non_finite) + " of " +
                     std::to_string(counts.steps) + " steps" +
                     (last_loss_finite ? "" : ", and not in the last one");
  } else if (counts.steps > 0 && counts.skipped == counts.steps) {
    result.outcome = "fail";
    result.reason = "non_finite_loss";
    result.message = "loss scaling skipped every one of " + std::to_string(counts.steps) +
                     " steps: gradients stay non-finite";
  }
  return result;
}

}  // namespace assay::train

extern "C" assay::Runner* AssayTrainRunner() {
  static assay::train::TrainRunner runner;
  return &runner;
}
