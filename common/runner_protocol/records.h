// The records a runner writes: one JSON object a line, to `--records fd:N|FILE|-`.
//
//   {"record":"hello","protocol":1,"runner":"assay-train","version":"0.1.0","pid":1,"uuid":"GPU-.."}
//   {"record":"joined"}                         this rank passed the gang's start barrier
//   {"record":"phase","phase":"load|setup|warmup|measure|finish"}
//   {"record":"progress","step":12,"throughput":812.5,"seconds_left":4.0}   at most four a second
//   {"record":"result","outcome":"ok|mem_limit|fail|unsupported","reason":"","message":"",
//    "fields":{"throughput":812.5,...}}         exactly one, the last
//
// Every record counts as a sign of life. Progress follows a finished step and nothing else, so that
// it cannot come from a runner that hangs: a silence as long as one step is no fault, and
// limits.no_step_seconds (120 by default) must be longer than the longest step, the first, which
// searches for algorithms; on a CPU a large batch takes minutes a step. Fields are those of
// catalog/fields.yaml whose source is `runner`; others are dropped with a warning. Null: not known
// or not finite. Lines over 1 MiB, bytes that are not UTF-8 and anything that is not such an object
// make the outcome `fail`, `bad_output`.
// The lifeline, `--lifeline fd:N,SECONDS`: the agent writes a byte every SECONDS/4; at end of file,
// or after SECONDS of silence, the runner calls _exit(143) from a thread of its own.
#ifndef ASSAY_COMMON_RUNNER_PROTOCOL_RECORDS_H_
#define ASSAY_COMMON_RUNNER_PROTOCOL_RECORDS_H_

namespace assay::record {

inline constexpr char kHello[] = "hello";
inline constexpr char kJoined[] = "joined";
inline constexpr char kPhase[] = "phase";
inline constexpr char kProgress[] = "progress";
inline constexpr char kResult[] = "result";

inline constexpr int kMaxLineBytes = 1 << 20;

// Exit codes of a runner. The result record decides the outcome; the code only has to agree.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFail = 1;
inline constexpr int kExitBadInput = 2;
inline constexpr int kExitMemLimit = 3;
inline constexpr int kExitUnsupported = 4;
inline constexpr int kExitLifeline = 143;

}  // namespace assay::record

#endif  // ASSAY_COMMON_RUNNER_PROTOCOL_RECORDS_H_
