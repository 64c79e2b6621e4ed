// Control: what a command asks of a coordinator, in plain types.
//
// proto/assay/v1/control_service.proto says what each call does and what its fields mean;
// GrpcControl is the real one. Every text here came from a peer: it is valid UTF-8, but goes
// through Printable() before a terminal sees it.
//
// Thread rule: one thread, the command's. A call returns within the time its comment states.
#ifndef ASSAY_CLI_CONTROL_H_
#define ASSAY_CLI_CONTROL_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/doctor/doctor_report.h"
#include "common/fleet/inventory.h"
#include "common/labels/labels.h"
#include "common/matrix/slice.h"
#include "common/matrix/spec.h"
#include "common/results/outcome.h"
#include "common/results/record.h"

namespace assay::cli {

struct CoordinatorInfo {
  std::string version;
  uint32_t fleet_protocol = 0;
  uint32_t result_schema = 0;
  uint32_t rules_version = 0;
  std::string state_dir;
  int64_t pid = 0;
  bool insecure = false;  // takes plain text from other machines
};

struct Submission {
  std::string request_id;
  std::string matrix_yaml;
  std::string file_name;
  bool allow_many = false;
  bool force_new = false;
  Labels labels;
  Slice slice;
  bool resume = false;
};

struct SubmitResult {
  std::string run;
  uint64_t cells = 0;
  uint64_t specs = 0;
  bool continued = false;
  std::vector<std::string> warnings;
};

struct CancelResult {
  std::string run;
  std::string state;  // after it
};

struct CellProgress {
  uint64_t cell = 0;
  std::string label;
  std::string node;
  std::string phase;
  uint64_t step = 0;
  double throughput = 0;  // 0 while unknown
  std::string unit;
  double seconds_left = 0;  // 0 while unknown
  double seconds_running = 0;
  uint32_t attempt_number = 0;
};

struct CellEnd {
  uint64_t cell = 0;
  std::string label;
  std::optional<Outcome> outcome;
  std::string reason;
  std::string message;
  double throughput = 0;  // 0 where there is none
  std::string unit;
};

using CountByOutcome = std::map<Outcome, uint64_t>;

struct RunUpdate {
  std::string run;
  std::string name;
  std::string state;  // waiting, running, cancelling, done, cancelled
  uint64_t cells = 0;
  uint64_t done = 0;
  CountByOutcome outcomes;
  std::vector<CellProgress> active;
  std::vector<CellEnd> ended;
  double seconds_left = 0;  // 0 while unknown
  std::string waiting_for;
  bool final = false;
};

struct RunSummary {
  std::string id;
  std::string name;
  std::string state;
  uint64_t cells = 0;
  uint64_t done = 0;
  uint64_t ok = 0;
  uint64_t failed = 0;  // fail, hung, timeout, lost
  int64_t started_at_unix_ms = 0;
  CountByOutcome outcomes;
  Labels labels;
  uint32_t slices = 0;                // of a sliced run: how many there are
  std::vector<uint32_t> slices_here;  // and which of them have cells here
};

struct AttemptDetail {
  std::string attempt;
  uint32_t number = 0;
  std::string node;
  std::string state;
  std::optional<Outcome> outcome;
  std::string reason;
  std::string message;
  bool counted = false;
  int64_t started_at_unix_ms = 0;
  std::string log_tail;
  Record record;
  std::string cell_file;
  std::string runner;
  std::vector<std::string> gpu_uuids;
};

struct CellDetail {
  std::string run;
  uint64_t cell = 0;
  Spec spec;
  std::string target;
  uint32_t repeat = 0;
  Record record;
  std::vector<AttemptDetail> attempts;
};

// A cell that a node holds: its attempt is being started, runs or is being ended.
struct HeldCell {
  std::string attempt;
  std::string run;
  uint64_t cell = 0;
  std::string label;
};

struct AgentSummary {
  NodeInventory inventory;
  std::string state;      // up, draining (something runs there), drained, lost, resting
  bool draining = false;  // asked for by a user; also while the node is lost
  std::string address;
  int64_t last_seen_unix_ms = 0;
  std::vector<std::string> cards;  // the catalogue's name for each device, in order
  std::vector<HeldCell> held;
};

struct DrainResult {
  std::string node;
  std::string state;  // as AgentSummary::state
  std::vector<HeldCell> held;
};

// Of a whole run, in the order of cells.
struct RunResults {
  std::vector<Record> records;
  std::string baseline;  // card that ratios are taken to; "" for the first row
};

struct MergeResult {
  std::vector<std::string> runs;
  uint64_t attempts_new = 0;
  uint64_t attempts_known = 0;
};

// The updates of one run as they come. Destruction ends the call.
class RunWatch {
 public:
  virtual ~RunWatch() = default;
  // Readable (poll) while Take() has something, or once the stream has ended.
  virtual int ready_fd() const = 0;
  // The next update without waiting, or nullopt.
  virtual std::optional<RunUpdate> Take() = 0;
  // Set once the stream has ended and Take() has given everything: OK after the run's last update,
  // NotFound for an unknown run, Unavailable where the coordinator went away.
  virtual std::optional<absl::Status> Ended() const = 0;
};

class Control {
 public:
  // Receives a part of a file; an error ends the call with that error.
  using ChunkSink = std::function<absl::Status(std::string_view)>;
  using RecordSink = std::function<void(Record)>;
  // Gives the next part; empty at the end.
  using ChunkSource = std::function<absl::StatusOr<std::string>()>;

  virtual ~Control() = default;
  virtual absl::StatusOr<CoordinatorInfo> GetInfo() = 0;                       // 5 s
  virtual absl::StatusOr<SubmitResult> Submit(const Submission& request) = 0;  // 120 s
  virtual std::unique_ptr<RunWatch> Watch(const std::string& run) = 0;         // at once
  virtual absl::StatusOr<std::vector<RunSummary>> ListRuns() = 0;              // 30 s
  // In the order of cells, each as it comes, so that no more than a page of them is held. Gives
  // RunResults::baseline.
  virtual absl::StatusOr<std::string> EachResult(const std::string& run,
                                                 const RecordSink& sink) = 0;             // 120 s
  virtual absl::StatusOr<CellDetail> GetCell(const std::string& run, uint64_t cell) = 0;  // 30 s
  virtual absl::StatusOr<CancelResult> Cancel(const std::string& run) = 0;                // 30 s
  virtual absl::StatusOr<SubmitResult> RerunFailed(const std::string& run,
                                                   const std::string& request_id) = 0;  // 120 s
  // Of one node alone, or of all for "".
  virtual absl::StatusOr<std::vector<AgentSummary>> ListAgents(
      const std::string& node) = 0;  // 30 s
  // `on` false takes a drain back.
  virtual absl::StatusOr<DrainResult> Drain(const std::string& node, bool on) = 0;  // 30 s
  virtual absl::StatusOr<DoctorReport> Doctor(const std::string& node) = 0;         // 130 s
  virtual absl::Status Export(const std::string& run, const ChunkSink& sink) = 0;   // 600 s
  virtual absl::StatusOr<MergeResult> Merge(const ChunkSource& source) = 0;         // 600 s

  // All of EachResult.
  absl::StatusOr<RunResults> GetResults(const std::string& run) {
    RunResults results;
    auto baseline = EachResult(
        run, [&results](Record record) { results.records.push_back(std::move(record)); });
    if (!baseline.ok()) return baseline.status();
    results.baseline = *std::move(baseline);
    return results;
  }
};

}  // namespace assay::cli

#endif  // ASSAY_CLI_CONTROL_H_
