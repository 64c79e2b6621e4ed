#include "runners/peaks/peaks_runner.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>

#include "common/version.h"
#include "runners/common/cell_reader.h"
#include "runners/common/tcp_barrier.h"
#include "runners/peaks/best_shape.h"
#include "runners/peaks/copies.h"
#include "runners/peaks/gemm.h"
#include "runners/peaks/measurement.h"
#include "runners/peaks/peer.h"

namespace assay::peaks {
namespace {

using nlohmann::json;

constexpr int kMethodVersion = 1;
constexpr double kFlopsOfAGflop = 1e9;
constexpr char kPeer[] = "peer";
// A gang is started only when every agent is ready: longer than this and somebody is gone.
constexpr double kMeetSeconds = 120;

struct Model {
  const char* name;
  const char* unit;  // of a sample
  std::vector<std::string> precisions;
};

const std::vector<Model>& AllModels() {
  static const std::vector<Model> models = {
      {"gemm", "GFLOP", {"fp32", "tf32", "amp-fp16", "amp-bf16"}},
      {"gemm_fp16_accumulate", "GFLOP", {"amp-fp16"}},
      {"copy", "GB", {"fp32"}},
      {"host_to_device", "GB", {"fp32"}},
      {"device_to_host", "GB", {"fp32"}},
      {kPeer, "GB", {"fp32"}}};
  return models;
}

const Model* FindModel(const std::string& name) {
  for (const Model& model : AllModels()) {
    if (model.name == name) return &model;
  }
  return nullptr;
}

RunnerResult Unsupported(const char* reason, const std::string& message) {
  return {"unsupported", reason, message, json::object()};
}

double Elapsed(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The work of a cell, with the memory that it works on.
struct Work {
  std::unique_ptr<Gemm> gemm;
  std::unique_ptr<Copies> copies;
  std::vector<Candidate> Candidates() const {
    return gemm ? gemm->Candidates() : copies->Candidates();
  }
};

Work MakeWork(const Gpu& gpu, const CellFile& cell) {
  Work work;
  const std::string& model = cell.spec.model;
  if (model.rfind("gemm", 0) == 0) {
    const GemmKind kind = GemmKindOf(cell.spec.precision, model == "gemm_fp16_accumulate");
    work.gemm = std::make_unique<Gemm>(gpu, kind, cell.seed);
  } else {
    const CopyKind kind = model == "copy"             ? CopyKind::kDevice
                          : model == "host_to_device" ? CopyKind::kHostToDevice
                                                      : CopyKind::kDeviceToHost;
    work.copies = std::make_unique<Copies>(gpu, kind, cell.seed);
  }
  return work;
}

RunnerResult RunPeer(const CellFile& cell, Gpu& gpu, const json& fields, RecordWriter& records) {
  const std::unique_ptr<TcpBarrier> ranks = TcpBarrier::Join(cell, kMeetSeconds);
  if (cell.rank == 1) {
    records.Joined();
    return LendToPeer(gpu, *ranks, cell.seed, records);
  }
  try {
    const PeerCopies copies(gpu, *ranks, cell.seed);
    records.Joined();
    RunnerResult result = MeasurePeak(gpu, copies.Candidates(), cell.spec.stop, fields, records);
    copies.Tell(result);
    return result;
  } catch (const NoPeerAccess& error) {
    return {"unsupported", "value_not_in_stack",
            std::string("one GPU cannot read the other's memory: ") + error.what(), fields};
  }
}

RunnerResult RunOnGpu(const CellFile& cell, json fields, RecordWriter& records) {
  records.Phase("load");
  auto start = std::chrono::steady_clock::now();
  const CudaDriver driver;
  const CudaBlas blas;
  fields["library_load_seconds"] = Elapsed(start);
  records.Phase("setup");
  start = std::chrono::steady_clock::now();
  Gpu gpu(driver, blas, cell.device_uuid, cell.device_ordinal);
  fields["cuda_version"] = blas.CudaVersion();
  fields["cublas_version"] = gpu.BlasVersion();
  if (auto refusal = RefusePrecision(cell.spec.precision, gpu.compute_capability())) {
    refusal->fields = fields;
    return *refusal;
  }
  if (cell.spec.model == kPeer) return RunPeer(cell, gpu, fields, records);
  const Work work = MakeWork(gpu, cell);
  fields["device_setup_seconds"] = Elapsed(start);
  records.Joined();
  return MeasurePeak(gpu, work.Candidates(), cell.spec.stop, fields, records);
}

}  // namespace

std::string PeaksRunner::Version() const { return kVersion; }

std::vector<std::string> PeaksRunner::Models() const {
  std::vector<std::string> names;
  for (const Model& model : AllModels()) names.emplace_back(model.name);
  return names;
}

json PeaksRunner::StackInfo() {
  json versions = {{"runner", kVersion}};
  json info = {{"runner", Name()},
               {"protocol", kRunnerProtocol},
               {"models", Models()},
               {"modes", {"peak"}},
               {"precisions", {"fp32", "tf32", "amp-fp16", "amp-bf16"}},
               {"lanes", {"eager"}},
               {"layouts", {"contiguous"}},
               {"arch_list", json::array()},
               {"device_kinds", {"gpu"}},
               {"max_world_size", 2},
               {"simulated", false}};
  try {
    const CudaDriver driver;
    const CudaBlas blas;
    versions["cuda"] = blas.CudaVersion();
  } catch (const NoDriver& error) {
    info["problem"] = error.what();
  }
  info["versions"] = versions;
  return info;
}

json PeaksRunner::Describe(const std::string& name) {
  const Model* model = FindModel(name);
  if (model == nullptr) return nullptr;
  const bool flops = std::string(model->unit) == "GFLOP";
  return {{"model", model->name},
          {"parameters", 0},
          {"flops_per_sample", flops ? kFlopsOfAGflop : 0.0},
          {"sample_unit", model->unit},
          {"precisions", model->precisions}};
}

std::optional<RunnerResult> Refuse(const CellFile& cell) {
  const Spec& spec = cell.spec;
  const Model* model = FindModel(spec.model);
  if (model == nullptr) {
    return Unsupported("model_not_in_stack", "this stack has no model '" + spec.model + "'");
  }
  if (spec.mode != "peak") {
    return Unsupported("mode_not_in_stack",
                       "this stack has no mode '" + spec.mode + "': ask for mode peak");
  }
  if (std::find(model->precisions.begin(), model->precisions.end(), spec.precision) ==
      model->precisions.end()) {
    return Unsupported("unsupported_precision", spec.model + " has no " + spec.precision);
  }
  if (spec.lane != "eager") {
    return Unsupported("lane_not_in_stack", "this stack has no lane '" + spec.lane + "'");
  }
  const int ranks = spec.model == kPeer ? 2 : 1;
  if (cell.world_size != ranks) {
    return Unsupported("value_not_in_stack",
                       spec.model + " is of " + (ranks == 1 ? "one GPU" : "two GPUs") + ", and " +
                           std::to_string(cell.world_size) + " ranks were asked for");
  }
  if (spec.nodes != 1) {
    return Unsupported("value_not_in_stack", "GPUs of two nodes have no common memory");
  }
  if (spec.batch != 1 || spec.accumulate != 1) {
    return Unsupported("value_not_in_stack",
                       "a peak has no samples: leave batch and accumulate at 1");
  }
  if (cell.device_kind != "cuda") {
    return Unsupported(
        "unsupported_arch",
        "peaks are measured with CUDA and cuBLAS, and the device is a " + cell.device_kind);
  }
  return std::nullopt;
}

std::optional<RunnerResult> RefusePrecision(const std::string& precision, int compute_capability) {
  const int least = precision == "tf32" || precision == "amp-bf16" ? 80
                    : precision == "amp-fp16"                      ? 53
                                                                   : 0;
  if (compute_capability >= least) return std::nullopt;
  const auto text = [](int cc) { return std::to_string(cc / 10) + "." + std::to_string(cc % 10); };
  return Unsupported("unsupported_precision", precision + " needs compute capability " +
                                                  text(least) + "; this GPU has " +
                                                  text(compute_capability));
}

RunnerResult MeasurePeak(Timeline& timeline, const std::vector<Candidate>& candidates,
                         const StopRule& stop, json fields, RecordWriter& records) {
  records.Phase("warmup");
  uint64_t tried = 0;
  const BestShape best =
      ChooseShape(timeline, candidates, [&](double rate) { records.Progress(++tried, rate, 0); });
  const Candidate& chosen = candidates[best.candidate];
  fields["peak_shape"] = chosen.shape;
  const auto step = [&] {
    for (int64_t i = 0; i < best.repetitions; ++i) chosen.queue();
  };
  fields.update(
      Measure(timeline, step, chosen.units * static_cast<double>(best.repetitions), stop, records));
  RunnerResult result;
  const std::string fault = chosen.fault();
  if (!fault.empty()) {
    result = {"fail", "runner_error", "the device computes wrong results: " + fault,
              json::object()};
  }
  result.fields = std::move(fields);
  return result;
}

RunnerResult PeaksRunner::Run(const CellFile& cell, RecordWriter& records) {
  if (std::optional<RunnerResult> refusal = Refuse(cell)) return *refusal;
  json fields = {{"seed", cell.seed},
                 {"world_size", cell.world_size},
                 {"method_version", kMethodVersion},
                 {"unit", std::string(FindModel(cell.spec.model)->unit) + "/s"},
                 {"allow_tf32_matmul", cell.spec.precision == "tf32"},
                 {"reduced_precision_reduction", cell.spec.model == "gemm_fp16_accumulate"}};
  try {
    return RunOnGpu(cell, fields, records);
  } catch (const CudaError& error) {
    std::fprintf(stderr, "assay-peaks: %s\n", error.what());
    if (error.out_of_memory()) return {"mem_limit", "out_of_memory", error.what(), fields};
    return {"fail", error.ecc() ? "ecc_error" : "runner_error", error.what(), fields};
  } catch (const NoDriver& error) {
    return Unsupported("unsupported_arch", error.what());
  } catch (const NoBlas& error) {
    return Unsupported("stack_missing", error.what());
  }
}

}  // namespace assay::peaks
