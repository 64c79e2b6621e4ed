// RecordWriter: a runner's records, one JSON object a line (common/runner_protocol/records.h).
//
// Each line leaves in one write(2), so that lines of two threads never mix and a reader that sees a
// line break sees a whole record. Non-finite numbers become null, bytes that are not UTF-8 become
// U+FFFD. A reader that went away is no crash: SIGPIPE is ignored from Open on, `broken` tells.
//
// Thread rule: any thread. Owner: RunnerMain, for the life of the process.
#ifndef ASSAY_RUNNERS_COMMON_RECORD_WRITER_H_
#define ASSAY_RUNNERS_COMMON_RECORD_WRITER_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace assay {

// What a cell came to, before it is a record. `outcome` is a word of the protocol: ok, mem_limit,
// fail, unsupported. `reason` is a code of docs/architecture.md, empty with ok. `fields` are those
// of catalog/fields.yaml whose source is `runner`; a field that is not known is left out or null.
struct RunnerResult {
  std::string outcome = "ok";
  std::string reason;
  std::string message;
  nlohmann::json fields = nlohmann::json::object();
};

// At most four a second; the first always passes.
class ProgressThrottle {
 public:
  bool Admit(std::chrono::steady_clock::time_point now);

 private:
  std::optional<std::chrono::steady_clock::time_point> last_;
};

class RecordWriter {
 public:
  // `target`: "fd:N" (taken over), "-" (standard output, not closed) or a path (truncated). Throws
  // BadInput where it cannot be written.
  static std::unique_ptr<RecordWriter> Open(const std::string& target);
  RecordWriter(int fd, bool owned) : fd_(fd), owned_(owned) {}
  ~RecordWriter();
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;

  void Hello(const std::string& runner, const std::string& version, const std::string& uuid);
  void Joined();
  void Phase(const std::string& phase);  // load, setup, warmup, measure, finish
  // Throttled: call it after every step. `seconds_left` is by the stopping rule's cap, 0 while not
  // known. The same holds for `throughput`, in samples of the whole gang a second.
  void Progress(uint64_t step, double throughput, double seconds_left);
  // The last record: what comes after it, a second result too, is dropped. The message is made
  // short (common/runner_protocol/failure_message.h).
  void Result(const RunnerResult& result);

  // For the simulator, which breaks the protocol on purpose.
  void WriteRaw(const std::string& bytes);
  void Close();

  bool result_written() const;
  bool broken() const;

 private:
  void Write(const nlohmann::json& record, bool last = false);

  mutable std::mutex mutex_;
  int fd_;
  const bool owned_;
  bool ended_ = false;
  bool broken_ = false;
  ProgressThrottle throttle_;
};

// Exit code that agrees with a result record of this outcome; 1 for a word that is none.
int RunnerExitCode(const std::string& outcome);

}  // namespace assay

#endif  // ASSAY_RUNNERS_COMMON_RECORD_WRITER_H_
