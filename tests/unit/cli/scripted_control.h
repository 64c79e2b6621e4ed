// ScriptedControl: a Control without a coordinator, for tests of what stands above it.
#ifndef ASSAY_TESTS_UNIT_CLI_SCRIPTED_CONTROL_H_
#define ASSAY_TESTS_UNIT_CLI_SCRIPTED_CONTROL_H_

#include <sys/eventfd.h>
#include <unistd.h>

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/control.h"

namespace assay::cli {

// What one Watch call gives: updates, then the end (nullopt: it stays open).
struct WatchScript {
  std::vector<RunUpdate> updates;
  std::optional<absl::Status> end;
};

// Shared by all controls of a test, since a reconnect makes a new one.
struct Script {
  std::deque<WatchScript> watches;  // one a call; the last one stays
  std::vector<std::string> cancelled;
  std::vector<std::string> watched;
  absl::Status info = absl::OkStatus();
  int opened = 0;
  // What an open watch gives once Cancel was called: an update, or a loss.
  std::optional<RunUpdate> final_after_cancel;
  bool lost_after_cancel = false;
};

class ScriptedWatch final : public RunWatch {
 public:
  ScriptedWatch(WatchScript script, Script& shared)
      : script_(std::move(script)), shared_(shared), fd_(eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~ScriptedWatch() override { close(fd_); }
  // Always readable: a test never waits for the tick.
  int ready_fd() const override { return fd_; }
  std::optional<RunUpdate> Take() override {
    if (next_ < script_.updates.size()) return script_.updates[next_++];
    if (shared_.cancelled.empty()) return std::nullopt;
    return std::exchange(shared_.final_after_cancel, std::nullopt);
  }
  std::optional<absl::Status> Ended() const override {
    if (next_ < script_.updates.size()) return std::nullopt;
    if (shared_.lost_after_cancel && !shared_.cancelled.empty()) {
      return absl::UnavailableError("gone");
    }
    return script_.end;
  }

 private:
  WatchScript script_;
  Script& shared_;
  size_t next_ = 0;
  int fd_;
};

class ScriptedControl final : public Control {
 public:
  explicit ScriptedControl(Script& script) : script_(script) {}
  absl::StatusOr<CoordinatorInfo> GetInfo() override {
    if (!script_.info.ok()) return script_.info;
    return CoordinatorInfo{};
  }
  std::unique_ptr<RunWatch> Watch(const std::string& run) override {
    script_.watched.push_back(run);
    WatchScript watch = script_.watches.front();
    if (script_.watches.size() > 1) script_.watches.pop_front();
    return std::make_unique<ScriptedWatch>(std::move(watch), script_);
  }
  absl::StatusOr<CancelResult> Cancel(const std::string& run) override {
    script_.cancelled.push_back(run);
    return CancelResult{run, "cancelling"};
  }
  absl::StatusOr<SubmitResult> Submit(const Submission&) override { return Not(); }
  absl::StatusOr<std::vector<RunSummary>> ListRuns() override { return Not(); }
  absl::StatusOr<std::string> EachResult(const std::string&, const RecordSink&) override {
    return Not();
  }
  absl::StatusOr<CellDetail> GetCell(const std::string&, uint64_t) override { return Not(); }
  absl::StatusOr<SubmitResult> RerunFailed(const std::string&, const std::string&) override {
    return Not();
  }
  absl::StatusOr<std::vector<AgentSummary>> ListAgents(const std::string&) override {
    return Not();
  }
  absl::StatusOr<DrainResult> Drain(const std::string&, bool) override { return Not(); }
  absl::StatusOr<DoctorReport> Doctor(const std::string&) override { return Not(); }
  absl::Status Export(const std::string&, const ChunkSink&) override { return Not(); }
  absl::StatusOr<MergeResult> Merge(const ChunkSource&) override { return Not(); }

 private:
  static absl::Status Not() { return absl::UnimplementedError("not in this test"); }
  Script& script_;
};

}  // namespace assay::cli

#endif  // ASSAY_TESTS_UNIT_CLI_SCRIPTED_CONTROL_H_
