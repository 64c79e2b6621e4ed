#include "agent/cell/failure_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <csignal>
#include <cstring>

#include "common/runner_protocol/failure_message.h"
#include "common/runner_protocol/records.h"
#include "common/text/utf8.h"

namespace assay {
namespace {

struct Pattern {
  std::string_view text;  // lower case
  Outcome outcome;
  std::string_view reason;
  std::string_view hint;
};

constexpr std::string_view kEnlargeShm =
    "enlarge /dev/shm (docker run --shm-size=8g, or a memory-backed emptyDir volume)";
constexpr std::string_view kUpdateDriver =
    "install a driver as new as the stack's CUDA, or choose a stack with an older CUDA";
constexpr std::string_view kCheckEcc =
    "the GPU's memory is faulty: reset it, look for a pending row remap, distrust earlier results";

// In order of how sure they are: a shared-memory error also says "out of memory" at times, and a
// driver error brings a generic one along. Texts as seen in public reports (cases 24, 40, 41, 43).
constexpr std::array kPatterns = {
    Pattern{"cuda driver version is insufficient", Outcome::kUnsupported, reason::kDriverTooOld,
            kUpdateDriver},
    Pattern{"forward compatibility was attempted", Outcome::kUnsupported, reason::kDriverTooOld,
            kUpdateDriver},
    Pattern{"nvidia driver on your system is too old", Outcome::kUnsupported, reason::kDriverTooOld,
            kUpdateDriver},
    Pattern{"no kernel image is available", Outcome::kUnsupported, reason::kUnsupportedArch,
            "the stack has no code for this GPU: choose a stack built for its architecture"},
    Pattern{"no kernel image", Outcome::kUnsupported, reason::kUnsupportedArch,
            "the stack has no code for this GPU: choose a stack built for its architecture"},
    Pattern{"uncorrectable ecc", Outcome::kFail, reason::kEccError, kCheckEcc},
    Pattern{"uncorrectable nvlink error", Outcome::kFail, reason::kEccError, kCheckEcc},
    Pattern{"cudaerroreccuncorrectable", Outcome::kFail, reason::kEccError, kCheckEcc},
    Pattern{"posix_fallocate", Outcome::kFail, reason::kShmTooSmall, kEnlargeShm},
    Pattern{"no space left on device (28), /dev/shm", Outcome::kFail, reason::kShmTooSmall,
            kEnlargeShm},
    Pattern{"while creating shared memory segment", Outcome::kFail, reason::kShmTooSmall,
            kEnlargeShm},
    Pattern{"insufficient shared memory", Outcome::kFail, reason::kShmTooSmall, kEnlargeShm},
    Pattern{"gpu is lost", Outcome::kFail, reason::kGpuGone, "look for an Xid in the kernel log"},
    Pattern{"has fallen off the bus", Outcome::kFail, reason::kGpuGone,
            "look for an Xid in the kernel log"},
    Pattern{"cuda out of memory", Outcome::kMemLimit, reason::kOutOfMemory, ""},
    Pattern{"cuda error: out of memory", Outcome::kMemLimit, reason::kOutOfMemory, ""},
    Pattern{"cuda_error_out_of_memory", Outcome::kMemLimit, reason::kOutOfMemory, ""},
    Pattern{"cudaerrormemoryallocation", Outcome::kMemLimit, reason::kOutOfMemory, ""},
    Pattern{"cublas_status_alloc_failed", Outcome::kMemLimit, reason::kOutOfMemory, ""},
    Pattern{"cudnn_status_alloc_failed", Outcome::kMemLimit, reason::kOutOfMemory, ""},
    Pattern{"defaultcpuallocator: can't allocate memory", Outcome::kMemLimit, reason::kOutOfMemory,
            ""},
    Pattern{"std::bad_alloc", Outcome::kMemLimit, reason::kOutOfMemory, ""},
};

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

// The line around `at`, fit for a sentence.
std::string LineAt(std::string_view text, size_t at) {
  // Leaves room for a hint within kMaxFailureMessageBytes.
  constexpr size_t kWidth = 150;
  const size_t before = at == 0 ? std::string_view::npos : text.rfind('\n', at - 1);
  const size_t start = before == std::string_view::npos ? 0 : before + 1;
  const size_t end = std::min(text.find('\n', at), text.size());
  std::string_view line = text.substr(start, end - start);
  if (at - start > kWidth / 2) line = line.substr(at - start - kWidth / 2);
  return ScrubForTerminal(TruncateToWidth(line, kWidth));
}

std::string LastLine(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) {
    text.remove_suffix(1);
  }
  return text.empty() ? std::string() : LineAt(text, text.size() - 1);
}

Diagnosis Crash(std::string_view message) {
  return {Outcome::kFail, reason::kCrash, ShortMessage(message)};
}

}  // namespace

std::optional<Diagnosis> DiagnoseText(std::string_view log_tail) {
  const std::string lower = Lower(log_tail);
  const auto diagnosis = [&](const Pattern& pattern, size_t at) {
    std::string message = "the runner said: " + LineAt(log_tail, at);
    if (!pattern.hint.empty()) message += fmt::format(" ({})", pattern.hint);
    return Diagnosis{pattern.outcome, pattern.reason, ShortMessage(message)};
  };
  for (const Pattern& pattern : kPatterns) {
    if (const size_t at = lower.find(pattern.text); at != std::string::npos) {
      return diagnosis(pattern, at);
    }
  }
  // Both words on one line, in whatever form NCCL, glibc or a container engine put it.
  for (size_t at = lower.find("/dev/shm"); at != std::string::npos;
       at = lower.find("/dev/shm", at + 1)) {
    const std::string line = Lower(LineAt(log_tail, at));
    if (line.find("no space left") != std::string::npos ||
        line.find("too small") != std::string::npos) {
      return diagnosis({"", Outcome::kFail, reason::kShmTooSmall, kEnlargeShm}, at);
    }
  }
  return std::nullopt;
}

Diagnosis DiagnoseExit(int exit_code, int signal, std::string_view log_tail, bool oom_killed,
                       bool device_is_cpu) {
  if (signal == SIGKILL && oom_killed) {
    if (device_is_cpu) {
      return {Outcome::kMemLimit, reason::kOutOfMemory,
              "the kernel ended the runner because the host's memory was used up"};
    }
    return Crash(
        "the kernel ended the runner because the host's memory, not the GPU's, was used up (give "
        "the agent's cgroup more memory)");
  }
  if (auto diagnosis = DiagnoseText(log_tail)) return *std::move(diagnosis);
  const std::string last = LastLine(log_tail);
  const std::string said = last.empty() ? "" : "; its last line: " + last;
  if (signal == SIGKILL) {
    return Crash(
        "the runner was ended by SIGKILL that the agent did not send (was the host's "
        "memory used up? see the kernel log)" +
        said);
  }
  if (signal != 0)
    return Crash(fmt::format("the runner was ended by {}{}", SignalName(signal), said));
  if (exit_code == record::kExitOk) {
    return {Outcome::kFail, reason::kBadOutput,
            "the runner exited with 0 and wrote no result record" + said};
  }
  if (exit_code == record::kExitLifeline) {
    return Crash(
        "the runner left because its lifeline was silent (was the agent suspended or "
        "starved?)" +
        said);
  }
  return Crash(
      fmt::format("the runner exited with {} and wrote no result record{}", exit_code, said));
}

std::string SignalName(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

}  // namespace assay
