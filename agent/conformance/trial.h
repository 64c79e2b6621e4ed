// Trial: one start of a runner program under the eyes of the conformance checks (docs/doctor.md).
//
// The program gets what an agent gives it (docs/runner-protocol.md): a session of its own, 0 at
// standard input, 1 and 2 on pipes, 3 for records, 4 the lifeline. Unlike an agent, a trial can do
// what goes wrong in the field: close the records, let the lifeline end, send SIGTERM.
//
// Thread rule: as SpawnSessionLeader, one long-lived thread. Blocks until the program is gone.
#ifndef ASSAY_AGENT_CONFORMANCE_TRIAL_H_
#define ASSAY_AGENT_CONFORMANCE_TRIAL_H_

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/runner_protocol/record_parser.h"

namespace assay {

// What is done to the program once it has written `joined`, as every measuring cell does.
enum class TrialDeed { kNothing, kTerminate, kCloseRecords, kEndLifeline };

enum class TrialLifeline { kBeats, kSilent };

struct Trial {
  std::string program;  // absolute
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment;
  std::string standard_input;
  TrialLifeline lifeline = TrialLifeline::kBeats;
  TrialDeed deed = TrialDeed::kNothing;
  // Where `--records` names a file: read at the end, beside descriptor 3.
  std::string records_path;
  // Of the program's data segment; 0: none. So that a check that asks for too much memory cannot
  // take the machine's.
  uint64_t most_data_bytes = 0;
  std::chrono::milliseconds limit{120000};           // then SIGKILL
  std::chrono::milliseconds limit_after_deed{7000};  // from the deed on
};

struct TimedRecord {
  std::chrono::nanoseconds at{0};  // since the start; of a records file 0
  record::Parsed record;
};

struct TrialEnd {
  bool timed_out = false;  // ended by us; exit_code and signal then say nothing
  int exit_code = -1;      // -1 where a signal ended it
  int signal = 0;
  bool deed_done = false;
  std::chrono::nanoseconds after_deed{0};  // from the deed to the end
  std::chrono::nanoseconds length{0};
  std::vector<TimedRecord> records;  // at most kMostTrialRecords
  std::string bad_line;              // sentence about the first line that is no record; "" for none
  std::string output;                // standard output, at most 1 MiB
  std::string errors;                // the last 4 KiB of standard error

  // The last result record; nullptr for none.
  const record::Result* Result() const;
  template <typename T>
  const T* First() const {
    for (const TimedRecord& timed : records) {
      if (const auto* found = std::get_if<T>(&timed.record)) return found;
    }
    return nullptr;
  }
};

inline constexpr size_t kMostTrialRecords = 100000;
// Seconds that `--lifeline` names in a trial.
inline constexpr double kTrialLifelineSeconds = 2;

// The error of starting it. SIGPIPE must be ignored in this process.
absl::StatusOr<TrialEnd> RunTrial(const Trial& trial);

}  // namespace assay

#endif  // ASSAY_AGENT_CONFORMANCE_TRIAL_H_
