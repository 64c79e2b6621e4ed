// export, merge and reproduce: what leaves and enters a state directory as files.
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/new_file.h"
#include "cli/printable.h"
#include "cli/result_table.h"
#include "cli/stack_environment.h"
#include "common/net/sibling.h"
#include "common/status/status.h"
#include "common/text/number_format.h"
#include "common/text/shell_word.h"

namespace assay::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kChunkBytes = 512 << 10;
constexpr std::string_view kStandardStream = "-";  // as the name of a file

class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

// Of an .assay file as it comes: whether it ended with its last line (docs/results.md). A stream
// that just stops looks like one that is done.
class LastLine {
 public:
  void Add(std::string_view data) {
    constexpr size_t kMostBytes = 4096;  // it is short, and no other line needs to be kept
    line_ += data;
    const size_t end = line_.empty() ? std::string::npos : line_.rfind('\n', line_.size() - 2);
    if (end != std::string::npos) line_.erase(0, end + 1);
    if (line_.size() > kMostBytes) line_.erase(0, line_.size() - kMostBytes);
  }
  bool IsEnd() const {
    if (!line_.ends_with('\n')) return false;
    const Json json = Json::parse(line_, nullptr, /*allow_exceptions=*/false);
    return json.is_object() && json.contains("kind") && json["kind"] == "end";
  }

 private:
  std::string line_;
};

absl::Status ExportTo(Session& session, const std::string& run, const Control::ChunkSink& sink) {
  LastLine last;
  ASSAY_RETURN_IF_ERROR(session.control().Export(run, [&](std::string_view data) {
    last.Add(data);
    return sink(data);
  }));
  if (last.IsEnd()) return absl::OkStatus();
  return absl::UnavailableError("the coordinator ended the export before its last line");
}

absl::Status ExportToFile(Session& session, const std::string& run, const std::string& path) {
  ASSAY_ASSIGN_OR_RETURN(NewFile file, NewFile::Create(path));
  ASSAY_RETURN_IF_ERROR(
      ExportTo(session, run, [&](std::string_view data) { return file.Append(data); }));
  return file.Commit();
}

absl::StatusOr<MergeResult> MergeFrom(Control& control, const std::string& path) {
  // O_NONBLOCK: opening a pipe that nobody writes to must not wait; reading one (`<(...)`) may.
  const File file(path == kStandardStream ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                                          : open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.fd() < 0) return ErrnoStatus(errno, fmt::format("cannot read {}", path));
  struct stat info = {};
  if (fstat(file.fd(), &info) == 0 && S_ISDIR(info.st_mode)) {
    return absl::InvalidArgumentError(fmt::format("cannot read {}: it is a folder", path));
  }
  if (path != kStandardStream) (void)fcntl(file.fd(), F_SETFL, 0);
  auto merged = control.Merge([&]() -> absl::StatusOr<std::string> {
    std::string data(kChunkBytes, '\0');
    ssize_t got = -1;
    do {
      got = read(file.fd(), data.data(), data.size());
    } while (got < 0 && errno == EINTR);
    if (got < 0) return ErrnoStatus(errno, fmt::format("cannot read {}", path));
    data.resize(static_cast<size_t>(got));
    return data;
  });
  if (merged.ok() || Message(merged.status()).find(path) != std::string::npos) return merged;
  return absl::Status(merged.status().code(),
                      fmt::format("{} was not merged: {}", path, Message(merged.status())));
}

// What was run by rank 0 of the attempt that counts, else of the last one that was started.
const AttemptDetail* ChooseAttempt(const CellDetail& detail) {
  const AttemptDetail* chosen = nullptr;
  for (const AttemptDetail& attempt : detail.attempts) {
    if (attempt.cell_file.empty()) continue;
    if (chosen == nullptr || attempt.counted || !chosen->counted) chosen = &attempt;
  }
  return chosen;
}

// Absolute path of the runner here: as the agent named it, or the one beside this program.
std::string RunnerPath(const std::string& runner) {
  if (runner.find('/') != std::string::npos && access(runner.c_str(), X_OK) == 0) return runner;
  const std::string name = runner.substr(runner.rfind('/') + 1);
  const auto sibling = SiblingProgram(name);
  return sibling.ok() ? *sibling : runner;
}

bool IsVariable(const std::string& name) {
  constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
  constexpr char kAllowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
  return !name.empty() && std::string_view(kLetters).find(name[0]) != std::string_view::npos &&
         name.find_first_not_of(kAllowed) == std::string::npos;
}

// "A=b " for each variable that the stack's manifest sets here; a line that says so in `script`
// where there is no such manifest.
std::string ManifestText(const Json& cell, std::string& script) {
  const auto stack = cell.find("stack");
  if (stack == cell.end() || !stack->is_string()) return "";
  const std::string name = stack->get<std::string>();
  const auto environment = StackEnvironment(StacksFolder(), name);
  if (!environment) {
    script += fmt::format(
        "# The manifest of stack {} is not here, so what its `env` sets is left "
        "out.\n",
        Printable(name));
    return "";
  }
  std::string text;
  for (const auto& [variable, value] : *environment) {
    if (IsVariable(variable)) text += fmt::format("{}={} ", variable, ShellWord(value));
  }
  return text;
}

std::string EnvironmentText(const AttemptDetail& attempt, const Json& cell) {
  // A stored file may hold anything: value() would throw for another type.
  const auto device = cell.find("device");
  std::string kind;
  if (device != cell.end() && device->is_object()) {
    const auto found = device->find("kind");
    if (found != device->end() && found->is_string()) kind = found->get<std::string>();
  }
  // The agent hides every GPU from a runner of the processor.
  if (kind == "cpu") return "CUDA_VISIBLE_DEVICES= ";
  if (kind != "cuda") return "";
  std::string uuids;
  for (const std::string& uuid : attempt.gpu_uuids) uuids += (uuids.empty() ? "" : ",") + uuid;
  return fmt::format("CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES={} ",
                     ShellWord(Printable(uuids)));
}

struct Reproduction {
  std::string cell_json;  // one line of ASCII
  std::string script;     // what a shell runs
};

absl::StatusOr<Reproduction> Reproduce(const CellDetail& detail, const std::string& output) {
  const AttemptDetail* attempt = ChooseAttempt(detail);
  if (attempt == nullptr) {
    return absl::FailedPreconditionError(fmt::format(
        "cell {} was never given to a runner, so there is no command to show", detail.cell));
  }
  Json cell = Json::parse(attempt->cell_file, nullptr, /*allow_exceptions=*/false);
  if (!cell.is_object()) {
    return absl::DataLossError(
        fmt::format("the stored cell file of attempt {} is no JSON object", attempt->attempt));
  }
  // By hand nobody spawned it at that time; a stale value would come out as an hour of start-up.
  if (cell.contains("spawned_at_boot_ns")) cell["spawned_at_boot_ns"] = 0;
  Reproduction made;
  made.cell_json = cell.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  std::string script =
      fmt::format("# cell {} of run {}, attempt {}: {}\n", detail.cell, Printable(detail.run),
                  Printable(attempt->attempt), CellLabel(detail.record));
  const auto world = cell.find("world_size");
  if (world != cell.end() && world->is_number_integer() && *world > 1) {
    script += fmt::format(
        "# This is rank 0 of {}; it waits for the other ranks, which need the same "
        "cell with their own rank.\n",
        world->dump());
  }
  const std::string runner = attempt->runner.empty() ? "assay-train" : attempt->runner;
  const std::string from_manifest = ManifestText(cell, script);
  const std::string command =
      from_manifest + EnvironmentText(*attempt, cell) + ShellWord(Printable(RunnerPath(runner)));
  if (output.empty()) {
    script += fmt::format("{} --cell - --records - <<'END_OF_CELL'\n{}\nEND_OF_CELL\n", command,
                          made.cell_json);
  } else {
    script += fmt::format("{} --cell {} --records -\n", command, ShellWord(output));
  }
  made.script = std::move(script);
  return made;
}

}  // namespace

int ExportCommand(CommandContext& context) {
  Session session = MakeSession(context);
  if (absl::Status status = session.Open(); !status.ok()) return FailCommand(context, status);
  if (context.args.output == kStandardStream) {
    const absl::Status status = ExportTo(session, context.args.run, [&](std::string_view data) {
      context.output.Out(data);
      return context.output.out_status();
    });
    return status.ok() ? kExitOk : FailCommand(context, status);
  }
  const absl::Status status = ExportToFile(session, context.args.run, context.args.output);
  if (!status.ok()) return FailCommand(context, status);
  PrintNote(context, fmt::format("written to {}", context.args.output));
  return kExitOk;
}

namespace {

// Of merged runs that are cut into slices: a table of some of them looks like one of all.
absl::Status PrintSlices(CommandContext& context, Session& session,
                         const std::set<std::string>& merged) {
  const auto runs = session.Call([](Control& control) { return control.ListRuns(); });
  if (!runs.ok()) return runs.status();
  for (const RunSummary& run : *runs) {
    if (run.slices == 0 || !merged.contains(run.id)) continue;
    const bool whole = run.slices_here.size() == run.slices;
    context.output.Out(fmt::format("run {} has {} {}{}\n", Printable(run.id),
                                   whole ? "all of its slices:" : "slices", SlicesText(run),
                                   whole ? "" : "; merge the others too before you compare"));
  }
  return absl::OkStatus();
}

}  // namespace

int MergeCommand(CommandContext& context) {
  Session session = MakeSession(context);
  if (absl::Status status = session.Open(); !status.ok()) return FailCommand(context, status);
  std::set<std::string> all;
  for (const std::string& path : context.args.files) {
    const auto merged = session.Call([&](Control& control) { return MergeFrom(control, path); });
    if (!merged.ok()) return FailCommand(context, merged.status());
    all.insert(merged->runs.begin(), merged->runs.end());
    std::string runs;
    for (const std::string& run : merged->runs) runs += " " + Printable(run);
    context.output.Out(fmt::format(
        "{}: run{}, {} new, {} known before\n", Printable(path), runs.empty() ? " none" : runs,
        Counted(merged->attempts_new, "attempt"), merged->attempts_known));
  }
  const absl::Status status = PrintSlices(context, session, all);
  return status.ok() ? kExitOk : FailCommand(context, status);
}

int ReproduceCommand(CommandContext& context) {
  Session session = MakeSession(context);
  if (absl::Status status = session.Open(); !status.ok()) return FailCommand(context, status);
  const auto detail = session.Call(
      [&](Control& control) { return control.GetCell(context.args.run, *context.args.cell); });
  if (!detail.ok()) return FailCommand(context, detail.status());
  const auto made = Reproduce(*detail, context.args.output);
  if (!made.ok()) return FailCommand(context, made.status());
  if (!context.args.output.empty()) {
    auto file = NewFile::Create(context.args.output);
    absl::Status status = file.status();
    if (status.ok()) status = file->Append(made->cell_json + "\n");
    if (status.ok()) status = file->Commit();
    if (!status.ok()) return FailCommand(context, status);
  }
  context.output.Out(made->script);
  return kExitOk;
}

}  // namespace assay::cli
