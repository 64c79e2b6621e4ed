#include "agent/conformance/cell_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <optional>

#include "agent/cell/failure_text.h"
#include "agent/cell/rank_result.h"
#include "agent/conformance/trial_cells.h"
#include "agent/doctor/findings.h"
#include "common/results/reason_codes.h"
#include "common/results/rules.h"
#include "common/runner_protocol/records.h"
#include "common/text/utf8.h"
#include "common/version.h"

namespace assay {
namespace {

constexpr char kPage[] = "see docs/runner-protocol.md";
// A fourth of a second is what the protocol asks for; a short cell may have a burst.
constexpr double kMostProgressPerSecond = 8;

double Seconds(std::chrono::nanoseconds length) {
  return std::chrono::duration<double>(length).count();
}

std::string Cut(std::string_view text) {
  return ScrubForTerminal(std::string(text.substr(0, Utf8Boundary(text, 300))));
}

std::string LastLineOfErrors(const TrialEnd& end) {
  std::string text = end.errors;
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  const size_t at = text.rfind('\n');
  return Cut(at == std::string::npos ? text : text.substr(at + 1));
}

// The result's own word, for a sentence: "fail (runner_error: MESSAGE)".
std::string ResultText(const record::Result& result) {
  std::string text = result.outcome;
  if (!result.reason.empty() || !result.message.empty()) {
    text += fmt::format(" ({}: {})", Cut(result.reason), Cut(result.message));
  }
  return text;
}

int CodeOf(std::string_view outcome) {
  if (outcome == "ok") return record::kExitOk;
  if (outcome == "mem_limit") return record::kExitMemLimit;
  return outcome == "unsupported" ? record::kExitUnsupported : record::kExitFail;
}

template <typename T>
size_t Count(const TrialEnd& end) {
  return static_cast<size_t>(std::count_if(
      end.records.begin(), end.records.end(),
      [](const TimedRecord& timed) { return std::holds_alternative<T>(timed.record); }));
}

// From the phase `measure` to the next phase or the result; nullopt where there is none.
std::optional<double> WindowSeen(const TrialEnd& end) {
  std::optional<std::chrono::nanoseconds> begin;
  for (const TimedRecord& timed : end.records) {
    const auto* phase = std::get_if<record::Phase>(&timed.record);
    if (phase != nullptr && phase->phase == "measure" && !begin) {
      begin = timed.at;
    } else if (begin &&
               (phase != nullptr || std::holds_alternative<record::Result>(timed.record))) {
      return Seconds(timed.at - *begin);
    }
  }
  return std::nullopt;
}

std::optional<DoctorCheck> GreetingFault(const TrialEnd& end, const CellFile& cell) {
  const auto* hello = end.First<record::Hello>();
  if (hello == nullptr) {
    return Bad("records", "there is no hello record",
               "write hello first, with protocol, runner, version, pid and the device's uuid");
  }
  if (!std::holds_alternative<record::Hello>(end.records.front().record)) {
    return Bad("records", "hello is not the first record", "write hello before anything else");
  }
  if (hello->protocol != kRunnerProtocol) {
    return Bad("records", fmt::format("hello speaks of protocol {}", hello->protocol),
               fmt::format("write \"protocol\": {}", kRunnerProtocol));
  }
  if (!SameDevice(hello->uuid, cell.device_uuid)) {
    return Bad("records", OtherDeviceMessage(hello->uuid, cell.device_uuid),
               "open the device that the cell file names in device.uuid, and say it in hello");
  }
  return std::nullopt;
}

}  // namespace

std::string HowItEnded(const TrialEnd& end) {
  if (end.timed_out) return fmt::format("still running after {:.0f} s", Seconds(end.length));
  std::string text =
      end.signal != 0 ? SignalName(end.signal) : fmt::format("exit code {}", end.exit_code);
  if (const std::string line = LastLineOfErrors(end); !line.empty()) text += ": " + line;
  return text;
}

bool EndedOk(const TrialEnd& end) {
  const record::Result* result = end.Result();
  return !end.timed_out && end.exit_code == record::kExitOk && result != nullptr &&
         result->outcome == "ok" && end.bad_line.empty();
}

DoctorCheck CheckEnd(const TrialEnd& end) {
  const record::Result* result = end.Result();
  if (end.timed_out) {
    return Bad("cell", "a cell of half a second was " + HowItEnded(end),
               "end by spec.stop; where setting up takes longer, give --cell-seconds");
  }
  if (!end.bad_line.empty()) {
    return Bad("cell", Cut(end.bad_line),
               "write one JSON object a line to --records, and nothing else there");
  }
  if (result == nullptr) {
    return Bad("cell", "no result record: " + HowItEnded(end),
               "write a result in every case, also from the handler of the last exception");
  }
  if (result->outcome != "ok") {
    return Bad("cell", "the smallest cell of the stack came to " + ResultText(*result),
               "run what --stack-info lists, or do not list it");
  }
  if (end.exit_code != record::kExitOk) {
    return Bad("cell", "the result says ok, but then: " + HowItEnded(end), "exit with 0 after ok");
  }
  return Good("cell",
              fmt::format("a cell of half a second came to ok in {:.1f} s", Seconds(end.length)));
}

DoctorCheck CheckRecords(const TrialEnd& end, const CellFile& cell) {
  if (end.records.empty()) {
    return Bad("records", "there is no record", fmt::format("write records: {}", kPage));
  }
  if (const std::optional<DoctorCheck> fault = GreetingFault(end, cell)) return *fault;
  if (Count<record::Joined>(end) != 1) {
    return Bad("records", fmt::format("joined was written {} times", Count<record::Joined>(end)),
               "write joined once, when the model is on its device and before its first step");
  }
  if (Count<record::Result>(end) > 1) {
    return Bad("records", fmt::format("{} result records", Count<record::Result>(end)),
               "write exactly one result");
  }
  if (!std::holds_alternative<record::Result>(end.records.back().record)) {
    return Bad("records", "the result is not the last record", "write nothing after the result");
  }
  bool joined = false;
  for (const TimedRecord& timed : end.records) {
    joined |= std::holds_alternative<record::Joined>(timed.record);
    const auto* phase = std::get_if<record::Phase>(&timed.record);
    if (phase != nullptr && phase->phase == "measure" && !joined) {
      return Bad("records", "the phase measure begins before joined",
                 "pass the start barrier and write joined before warming up");
    }
  }
  const size_t progress = Count<record::Progress>(end);
  if (progress == 0) {
    return Warn("records", "no progress record: a long warm-up cannot be told from a hang",
                "write progress after finished steps, at most four a second");
  }
  if (static_cast<double>(progress) > 10 + kMostProgressPerSecond * Seconds(end.length)) {
    return Warn("records",
                fmt::format("{} progress records in {:.1f} s", progress, Seconds(end.length)),
                "write at most four progress records a second");
  }
  return Good("records", fmt::format("{} in the order of the protocol", end.records.size()));
}

DoctorCheck CheckPhases(const TrialEnd& end) {
  if (!WindowSeen(end)) {
    return Warn("phases",
                "no phase measure: the agent cannot hold its own clock against yours, nor "
                "tell power and temperature of the window from those of the set-up",
                "write the phase measure as the measured window begins and finish as it ends");
  }
  return Good("phases", "measure and what ends it are there");
}

DoctorCheck CheckFields(const TrialEnd& end) {
  const record::Result* result = end.Result();
  if (result == nullptr) return NotKnown("fields", "not looked at: there is no result");
  std::vector<std::string> dropped;
  const RankReport report = ResultReport(*result, &dropped);
  if (!dropped.empty()) {
    return Warn("fields", "the agent would drop " + Listed(dropped),
                "give fields of docs/results.md whose source is the runner, each of its type and "
                "not negative");
  }
  std::vector<std::string> missing;
  for (const Field field : {Field::kThroughput, Field::kUnit, Field::kSteps, Field::kDeviceSteps,
                            Field::kSamples, Field::kSeconds, Field::kHostSeconds,
                            Field::kStopReason, Field::kWorldSize, Field::kMethodVersion}) {
    if (!report.fields.Has(field)) missing.emplace_back(InfoOf(field).name);
  }
  if (!missing.empty()) {
    return Warn("fields", "missing: " + Listed(missing) + "; rules that need them cannot judge",
                "add them to the result's fields");
  }
  return Good("fields", fmt::format("{} fields, all known", result->fields.size()));
}

DoctorCheck CheckFigures(const TrialEnd& end, const CellFile& cell) {
  if (!EndedOk(end)) return NotKnown("figures", "not looked at: the cell is not ok");
  std::vector<std::string> dropped;
  Record record = ResultReport(*end.Result(), &dropped).fields;
  record.Merge(PlanFields(cell));
  record.Set(Field::kSimulated, cell.device_kind == "simulated").IgnoreError();
  if (const std::optional<double> window = WindowSeen(end)) {
    record.Set(Field::kWindowSeconds, *window).IgnoreError();
  }
  const Verdict verdict = Judge(record);
  if (!verdict.faults.empty()) {
    return Bad("figures", "the cell would be invalid: " + Listed(verdict.faults),
               "measure as docs/method.md says; each rule stands there with its reason");
  }
  return Good("figures", fmt::format("{:.4g} {}, valid by rule set {}",
                                     record.Number(Field::kThroughput).value_or(0),
                                     record.Text(Field::kUnit), kRulesVersion));
}

DoctorCheck CheckByHand(const TrialEnd& end) {
  if (EndedOk(end)) {
    return Good("by-hand", "reads standard input, writes a file, passes over unknown keys");
  }
  const record::Result* result = end.Result();
  std::string seen = HowItEnded(end);
  if (result != nullptr && result->outcome != "ok") seen = ResultText(*result);
  if (!end.bad_line.empty()) seen = Cut(end.bad_line);
  return Bad("by-hand",
             "with --cell -, --records FILE, no lifeline and keys that it does not know: " + seen,
             "launchers give cells so, and a later agent says more: read the keys you know");
}

DoctorCheck CheckRefusal(const std::string& name, std::string_view what, const TrialEnd& end) {
  const record::Result* result = end.Result();
  const std::string finding = fmt::format("{}: ", what);
  if (end.timed_out || result == nullptr || result->outcome != "unsupported") {
    return Bad(name, finding + (result != nullptr ? ResultText(*result) : HowItEnded(end)),
               "answer with a result record unsupported and exit code 4; never run something else");
  }
  if (end.exit_code != CodeOf(result->outcome)) {
    return Bad(name, finding + "unsupported, but " + HowItEnded(end), "exit with 4");
  }
  if (KnownReason(result->reason, "").empty() || result->message.empty()) {
    return Warn(name,
                finding +
                    "unsupported without a reason code of docs/architecture.md and a "
                    "sentence",
                fmt::format("say why: {}", kPage));
  }
  return Good(name, finding + ResultText(*result));
}

DoctorCheck CheckWrongCells(const std::vector<std::pair<std::string, TrialEnd>>& ends) {
  for (const auto& [what, end] : ends) {
    if (end.timed_out || end.exit_code != record::kExitBadInput) {
      const record::Result* result = end.Result();
      return Bad("bad-cell",
                 fmt::format("a cell file that {}: {}", what,
                             result != nullptr ? ResultText(*result) : HowItEnded(end)),
                 "exit with 2 and one sentence on standard error");
    }
    if (LastLineOfErrors(end).empty()) {
      return Warn("bad-cell", fmt::format("a cell file that {}: exit code 2 without a word", what),
                  "say on standard error what is wrong");
    }
  }
  return Good("bad-cell", fmt::format("{} wrong cell files: exit code 2 each", ends.size()));
}

DoctorCheck CheckMemory(const TrialEnd& end) {
  const char* const remedy =
      "catch what your framework throws when memory ends, and answer mem_limit with exit code 3";
  const std::string finding = "a batch that no memory holds: ";
  const record::Result* result = end.Result();
  if (end.timed_out || result == nullptr) return Bad("memory", finding + HowItEnded(end), remedy);
  if (result->outcome == "unsupported") {
    return Good("memory", finding + ResultText(*result));
  }
  std::vector<std::string> dropped;
  const RankReport report = ResultReport(*result, &dropped);
  if (report.outcome != Outcome::kMemLimit) {
    return Bad("memory", finding + ResultText(*result), remedy);
  }
  if (result->outcome != "mem_limit") {
    return Warn("memory", finding + "called runner_error; the agent knows it by its text only",
                remedy);
  }
  if (end.exit_code != record::kExitMemLimit) {
    return Bad("memory", finding + "mem_limit, but " + HowItEnded(end), "exit with 3");
  }
  return Good("memory", finding + "mem_limit");
}

DoctorCheck CheckTermination(const TrialEnd& end) {
  if (!end.deed_done) return NotKnown("sigterm", "joined never came: " + HowItEnded(end));
  if (end.timed_out) {
    return Bad("sigterm",
               fmt::format("still there {:.0f} s after SIGTERM", Seconds(end.after_deed)),
               "end within seconds of SIGTERM: after a grace of 5 s comes SIGKILL");
  }
  if (end.Result() != nullptr && end.Result()->outcome == "ok") {
    return Bad("sigterm", "a cell that was cancelled says ok",
               "write no ok for an unfinished window");
  }
  return Good("sigterm", fmt::format("gone {:.1f} s after it", Seconds(end.after_deed)));
}

DoctorCheck CheckClosedRecords(const TrialEnd& end) {
  if (!end.deed_done) return NotKnown("closed-records", "joined never came: " + HowItEnded(end));
  const bool crashed = end.signal != 0 && end.signal != SIGPIPE;
  if (end.timed_out || crashed) {
    return Bad("closed-records", "with nobody to read its records: " + HowItEnded(end),
               "take a write that fails as a reason to end, not to crash or wait");
  }
  return Good("closed-records", "with nobody to read its records it ended");
}

DoctorCheck CheckLifeline(const TrialEnd& end, bool silent) {
  const std::string name = silent ? "lifeline-silence" : "lifeline-end";
  const std::string finding = silent ? fmt::format("{:g} s without a byte: ", kTrialLifelineSeconds)
                                     : std::string("the other end was closed: ");
  if (!silent && !end.deed_done) return NotKnown(name, "joined never came: " + HowItEnded(end));
  if (end.timed_out || end.exit_code != record::kExitLifeline) {
    return Bad(name, finding + HowItEnded(end),
               "read the lifeline from a thread of its own and _exit(143) from there: who outlives "
               "its agent holds a GPU that others are given");
  }
  return Good(name, finding + fmt::format("gone with 143 after {:.1f} s",
                                          Seconds(silent ? end.length : end.after_deed)));
}

}  // namespace assay
