#include "agent/conformance/check_runner.h"

#include <fmt/format.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

#include "agent/cell/device_lock.h"
#include "agent/cell/runner_environment.h"
#include "agent/conformance/cell_checks.h"
#include "agent/conformance/trial.h"
#include "agent/conformance/trial_cells.h"
#include "agent/conformance/word_checks.h"
#include "agent/doctor/findings.h"
#include "agent/host/proc_files.h"
#include "agent/inventory/gpu_devices.h"
#include "agent/inventory/stack_manifests.h"
#include "agent/process/child_process.h"
#include "common/catalog/card_catalog.h"
#include "common/status/status.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

// What an agent gives --stack-info.
constexpr std::chrono::seconds kWordLimit{10};
// From SIGTERM, or the lifeline's end, to being gone: an agent's grace of 5 s, and what a busy
// machine adds.
constexpr std::chrono::seconds kEndLimit{7};
constexpr char kNoSuchWord[] = "no-such-word";
// More than any address space holds, whatever a sample is.
constexpr int64_t kHugeBatch = int64_t{1} << 31;

absl::StatusOr<StackProgram> ProgramOf(const std::string& path) {
  std::error_code error;
  const std::string absolute = fs::absolute(path, error).lexically_normal().string();
  StackProgram program;
  if (path.ends_with(".json")) {
    const auto text = ReadFileText(absolute, 64 << 10);
    if (!text) return absl::InvalidArgumentError("cannot read the manifest " + absolute);
    ASSAY_ASSIGN_OR_RETURN(program, ParseStackManifest(*text, absolute));
  } else {
    program.program = absolute;
    program.stack.name = "runner";
  }
  if (!fs::is_regular_file(program.program, error) || access(program.program.c_str(), X_OK) != 0) {
    return absl::InvalidArgumentError(
        fmt::format("{} is no program that can be started: give a path to one (chmod +x), or the "
                    "manifest of a stack",
                    program.program));
  }
  return program;
}

// A folder for cell and records files, gone at the end.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string pattern = (fs::temp_directory_path() / "assay-runner-XXXXXX").string();
    if (mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ~ScratchFolder() {
    std::error_code error;
    if (!path_.empty()) fs::remove_all(path_, error);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class Conformance {
 public:
  Conformance(const ConformanceOptions& options, StackProgram program, std::string folder)
      : options_(options), program_(std::move(program)), folder_(std::move(folder)) {}
  absl::StatusOr<DoctorReport> Check(Nvml* nvml);

 private:
  absl::Status ChooseDevice(Nvml* nvml);
  absl::StatusOr<TrialEnd> Ask(std::vector<std::string> arguments) const;
  Trial TrialOf(std::vector<std::string> arguments) const;
  // The arguments that an agent gives.
  absl::StatusOr<Trial> CellTrial(const std::string& cell_text) const;
  absl::StatusOr<TrialEnd> Run(const std::string& cell_text) const;
  absl::Status CheckWords();
  absl::Status CheckGoodCell();
  absl::Status CheckRefusals();
  absl::Status CheckBadCells();
  absl::Status CheckEnds();
  void Add(DoctorCheck check) { report_.checks.push_back(std::move(check)); }

  const ConformanceOptions& options_;
  StackProgram program_;
  const std::string folder_;
  Device device_;
  std::string card_;
  std::optional<DeviceLock> lock_;
  CellFile cell_;
  bool cell_ok_ = false;
  DoctorReport report_;
};

Trial Conformance::TrialOf(std::vector<std::string> arguments) const {
  Trial trial;
  trial.program = program_.program;
  trial.arguments = std::move(arguments);
  trial.environment = RunnerEnvironment(options_.environment, program_.environment, device_);
  // A simulator is as fast as it computes, and what does not last cannot be ended early.
  if (program_.stack.simulated) trial.environment.emplace("ASSAY_SIMULATE", "default:realtime=1");
  trial.limit = options_.cell_limit;
  trial.limit_after_deed = kEndLimit;
  return trial;
}

absl::StatusOr<TrialEnd> Conformance::Ask(std::vector<std::string> arguments) const {
  Trial trial = TrialOf(std::move(arguments));
  trial.limit = kWordLimit;
  return RunTrial(trial);
}

absl::StatusOr<Trial> Conformance::CellTrial(const std::string& cell_text) const {
  const std::string path = folder_ + "/cell.json";
  std::ofstream file(path, std::ios::trunc);
  file << cell_text;
  if (!file.flush()) return absl::ResourceExhaustedError("cannot write " + path);
  return TrialOf({"--cell", path, "--records", fmt::format("fd:{}", kRecordsFd), "--lifeline",
                  fmt::format("fd:{},{:g}", kLifelineFd, kTrialLifelineSeconds)});
}

absl::StatusOr<TrialEnd> Conformance::Run(const std::string& cell_text) const {
  ASSAY_ASSIGN_OR_RETURN(const Trial trial, CellTrial(cell_text));
  return RunTrial(trial);
}

absl::Status Conformance::CheckWords() {
  ASSAY_ASSIGN_OR_RETURN(const TrialEnd info, Ask({"--stack-info"}));
  Add(CheckStackInfo(info, program_.stack));
  if (report_.checks.back().state == CheckState::kBad) return absl::OkStatus();
  ASSAY_ASSIGN_OR_RETURN(const TrialEnd version, Ask({"--version"}));
  Add(CheckVersionText(version));
  ASSAY_ASSIGN_OR_RETURN(const TrialEnd list, Ask({"--list"}));
  Add(CheckList(list, program_.stack));
  const std::string& model = program_.stack.models.front();
  ASSAY_ASSIGN_OR_RETURN(const TrialEnd known, Ask({"--describe", model}));
  ASSAY_ASSIGN_OR_RETURN(const TrialEnd unknown, Ask({"--describe", kNoSuchWord}));
  Add(CheckDescribe(known, unknown, model));
  ASSAY_ASSIGN_OR_RETURN(const TrialEnd arguments, Ask({"--no-such-argument"}));
  Add(CheckArguments(arguments));
  return absl::OkStatus();
}

absl::Status Conformance::ChooseDevice(Nvml* nvml) {
  const std::vector<std::string>& kinds = program_.stack.device_kinds;
  const auto can = [&](const char* kind) {
    return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
  };
  if (program_.stack.simulated) {
    device_.uuid = "GPU-00000000-0000-0000-0000-000000000000";
    device_.simulated = true;
    card_ = "RTX 3090";
    return absl::OkStatus();
  }
  if (can("cpu")) {
    device_.uuid = "CPU-00000000000000000000000000000000";
    device_.kind = "cpu";
    return absl::OkStatus();
  }
  std::vector<std::string> warnings;
  if (nvml != nullptr) {
    ASSAY_ASSIGN_OR_RETURN(const NvmlSystem system, nvml->Describe());
    for (const Device& device : GpuDevices(system, nvml->captured(), "/sys", warnings)) {
      if (!device.usable || !can(device.kind.c_str())) continue;
      absl::StatusOr<DeviceLock> lock = DeviceLock::Acquire(options_.lock_dir, device.uuid);
      if (!lock.ok()) continue;
      lock_ = *std::move(lock);
      device_ = device;
      card_ = IdentifyDevice(device).name;
      return absl::OkStatus();
    }
  }
  return absl::ResourceExhaustedError(fmt::format(
      "the runner lists device kinds {}, and no device of these is free here", Listed(kinds)));
}

absl::Status Conformance::CheckGoodCell() {
  cell_ = SmallCell(program_.stack, device_, card_);
  ASSAY_ASSIGN_OR_RETURN(const TrialEnd end, Run(CellFileToJson(cell_).dump()));
  cell_ok_ = EndedOk(end);
  Add(CheckEnd(end));
  Add(CheckRecords(end, cell_));
  Add(CheckPhases(end));
  Add(CheckFields(end));
  Add(CheckFigures(end, cell_));
  if (!cell_ok_) return absl::OkStatus();
  const std::string records = folder_ + "/records";
  Trial by_hand = TrialOf({"--cell", "-", "--records", records});
  by_hand.standard_input = WithUnknownKeys(cell_);
  by_hand.records_path = records;
  ASSAY_ASSIGN_OR_RETURN(const TrialEnd second, RunTrial(by_hand));
  Add(CheckByHand(second));
  return absl::OkStatus();
}

absl::Status Conformance::CheckRefusals() {
  for (const auto& [name, what, change] :
       {std::tuple(
            "unknown-model", "a model that it does not have",
            +[](Spec& spec) { spec.model = kNoSuchWord; }),
        std::tuple(
            "unknown-precision", "a precision that it does not have",
            +[](Spec& spec) { spec.precision = kNoSuchWord; }),
        std::tuple(
            "unknown-lane", "a lane that it does not have",
            +[](Spec& spec) { spec.lane = kNoSuchWord; })}) {
    CellFile cell = cell_;
    change(cell.spec);
    ASSAY_ASSIGN_OR_RETURN(const TrialEnd end, Run(CellFileToJson(cell).dump()));
    Add(CheckRefusal(name, what, end));
  }
  return absl::OkStatus();
}

absl::Status Conformance::CheckBadCells() {
  std::vector<std::pair<std::string, TrialEnd>> ends;
  for (const auto& [what, text] : WrongCells(cell_)) {
    ASSAY_ASSIGN_OR_RETURN(TrialEnd end, Run(text));
    ends.emplace_back(what, std::move(end));
  }
  Add(CheckWrongCells(ends));
  return absl::OkStatus();
}

absl::Status Conformance::CheckEnds() {
  CellFile huge = cell_;
  huge.spec.batch = kHugeBatch;
  ASSAY_ASSIGN_OR_RETURN(Trial memory, CellTrial(CellFileToJson(huge).dump()));
  struct sysinfo machine{};
  if (device_.kind == "cpu" && sysinfo(&machine) == 0) {
    memory.most_data_bytes = static_cast<uint64_t>(machine.totalram) * machine.mem_unit / 2;
  }
  ASSAY_ASSIGN_OR_RETURN(const TrialEnd full, RunTrial(memory));
  Add(CheckMemory(full));

  const std::string endless = CellFileToJson(LongCell(cell_)).dump();
  ASSAY_ASSIGN_OR_RETURN(Trial terminated, CellTrial(endless));
  terminated.deed = TrialDeed::kTerminate;
  ASSAY_ASSIGN_OR_RETURN(const TrialEnd after_term, RunTrial(terminated));
  Add(CheckTermination(after_term));

  ASSAY_ASSIGN_OR_RETURN(Trial orphaned, CellTrial(endless));
  orphaned.deed = TrialDeed::kEndLifeline;
  ASSAY_ASSIGN_OR_RETURN(const TrialEnd alone, RunTrial(orphaned));
  Add(CheckLifeline(alone, /*silent=*/false));

  ASSAY_ASSIGN_OR_RETURN(Trial unfed, CellTrial(endless));
  unfed.lifeline = TrialLifeline::kSilent;
  unfed.limit = std::chrono::milliseconds(static_cast<int64_t>(kTrialLifelineSeconds * 1000)) +
                std::chrono::milliseconds(kEndLimit);
  ASSAY_ASSIGN_OR_RETURN(const TrialEnd starved, RunTrial(unfed));
  Add(CheckLifeline(starved, /*silent=*/true));

  ASSAY_ASSIGN_OR_RETURN(Trial unread, CellTrial(CellFileToJson(cell_).dump()));
  unread.deed = TrialDeed::kCloseRecords;
  unread.limit_after_deed = options_.cell_limit;
  ASSAY_ASSIGN_OR_RETURN(const TrialEnd unheard, RunTrial(unread));
  Add(CheckClosedRecords(unheard));
  return absl::OkStatus();
}

absl::StatusOr<DoctorReport> Conformance::Check(Nvml* nvml) {
  report_.node = program_.program;
  report_.version = options_.version;
  ASSAY_RETURN_IF_ERROR(CheckWords());
  if (report_.Worst() == CheckState::kBad && program_.stack.models.empty()) {
    Add(NotKnown("cell", "not tried: --stack-info names nothing that could be"));
    return report_;
  }
  ASSAY_RETURN_IF_ERROR(ChooseDevice(nvml));
  ASSAY_RETURN_IF_ERROR(CheckGoodCell());
  if (!cell_ok_) {
    Add(NotKnown("ends", "bad cells, refusals and ends were not tried: a good cell is not ok"));
    return report_;
  }
  ASSAY_RETURN_IF_ERROR(CheckRefusals());
  ASSAY_RETURN_IF_ERROR(CheckBadCells());
  ASSAY_RETURN_IF_ERROR(CheckEnds());
  return report_;
}

}  // namespace

absl::StatusOr<DoctorReport> CheckRunner(const ConformanceOptions& options, Nvml* nvml) {
  ASSAY_ASSIGN_OR_RETURN(StackProgram program, ProgramOf(options.runner));
  const ScratchFolder folder;
  if (folder.path().empty()) {
    return absl::ResourceExhaustedError("no folder for cell files can be made in " +
                                        fs::temp_directory_path().string());
  }
  return Conformance(options, std::move(program), folder.path()).Check(nvml);
}

}  // namespace assay
