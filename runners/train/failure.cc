#include "runners/train/failure.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <new>
#include <string_view>

#include "common/runner_protocol/failure_message.h"
#include "runners/train/device/device.h"

namespace assay::train {
namespace {

// Without regard to case; an exception's text may be long, but there is one a process.
std::string::const_iterator Find(const std::string& text, std::string_view part) {
  return std::search(text.begin(), text.end(), part.begin(), part.end(), [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) ==
           std::tolower(static_cast<unsigned char>(b));
  });
}

std::string LineFrom(const std::string& text, size_t begin) {
  return text.substr(begin, text.find_first_of("\r\n", begin) - begin);
}

std::string FirstLine(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  return begin == std::string::npos ? "an error without a text" : LineFrom(text, begin);
}

// NCCL's first line names a call and a version; what went wrong stands behind it.
std::string LineWith(const std::string& text, std::string_view part) {
  const auto found = Find(text, part);
  if (found == text.end()) return FirstLine(text);
  const size_t at = static_cast<size_t>(found - text.begin());
  const size_t before = at == 0 ? std::string::npos : text.find_last_of("\r\n", at);
  return LineFrom(text, before == std::string::npos ? 0 : before + 1);
}

// A text that decides alone, in the order in which they are tried. Remedies as the agent's
// (agent/cell/failure_text.cc), which looks at what a process said that wrote no result.
struct Pattern {
  std::string_view text;
  const char* outcome;
  const char* reason;
  std::string_view remedy;
};

constexpr std::string_view kEnlargeShm =
    "enlarge /dev/shm (docker run --shm-size=8g, or a memory-backed emptyDir volume)";
constexpr std::string_view kUpdateDriver =
    "install a driver as new as the stack's CUDA, or choose a stack with an older CUDA";
constexpr std::string_view kCheckEcc =
    "the GPU's memory is faulty: reset it, look for a pending row remap, distrust earlier results";
constexpr std::string_view kLessMemory = "use a smaller batch, or accumulate";

constexpr std::array kPatterns = {
    Pattern{"shared memory segment", "fail", "shm_too_small", kEnlargeShm},
    Pattern{"posix_fallocate", "fail", "shm_too_small", kEnlargeShm},
    Pattern{"driver version is insufficient", "unsupported", "driver_too_old", kUpdateDriver},
    Pattern{"forward compatibility was attempted", "unsupported", "driver_too_old", kUpdateDriver},
    Pattern{"driver on your system is too old", "unsupported", "driver_too_old", kUpdateDriver},
    Pattern{"no kernel image is available", "unsupported", "unsupported_arch",
            "the stack has no code for this GPU: choose a stack built for its architecture"},
    Pattern{"ECC error", "fail", "ecc_error", kCheckEcc},
    Pattern{"uncorrectable NVLink error", "fail", "ecc_error", kCheckEcc},
    // CUDA's and the caching allocator's, NCCL's, the CPU allocator's, cuBLAS's and cuDNN's,
    // oneDNN's.
    Pattern{"out of memory", "mem_limit", "out_of_memory", kLessMemory},
    Pattern{"out_of_memory", "mem_limit", "out_of_memory", kLessMemory},
    Pattern{"can't allocate memory", "mem_limit", "out_of_memory", kLessMemory},
    Pattern{"cannot allocate memory", "mem_limit", "out_of_memory", kLessMemory},
    Pattern{"not enough memory", "mem_limit", "out_of_memory", kLessMemory},
    Pattern{"std::bad_alloc", "mem_limit", "out_of_memory", kLessMemory},
    Pattern{"STATUS_ALLOC_FAILED", "mem_limit", "out_of_memory", kLessMemory},
    Pattern{"ALLOCATION_FAILED", "mem_limit", "out_of_memory", kLessMemory},
};

// What libraries say that could not get their workspace.
constexpr std::array<std::string_view, 4> kForWantOfWorkspace = {
    "unable to find an engine", "valid cuDNN algorithm", "CUDNN_STATUS", "CUBLAS_STATUS"};

RunnerResult Of(const char* outcome, const char* reason, const std::string& said,
                std::string_view remedy = {}) {
  // Cut on its own, so that the remedy is kept.
  std::string message = ShortMessage(said);
  if (!remedy.empty()) {
    constexpr size_t kSaid = 180;
    if (message.size() > kSaid) message = message.substr(0, message.rfind(' ', kSaid)) + " ...";
    message += "; " + std::string(remedy);
  }
  return {outcome, reason, ShortMessage(message), nlohmann::json::object()};
}

RunnerResult OutOfMemory(const std::string& text, std::string_view part) {
  if (const auto message = OutOfMemoryMessage(text)) {
    return Of("mem_limit", "out_of_memory", *message);
  }
  return Of("mem_limit", "out_of_memory", LineWith(text, part), kLessMemory);
}

}  // namespace

RunnerResult ClassifyError(const std::string& text, bool saw_out_of_memory) {
  for (const Pattern& pattern : kPatterns) {
    if (Find(text, pattern.text) == text.end()) continue;
    if (pattern.remedy == kLessMemory) return OutOfMemory(text, pattern.text);
    return Of(pattern.outcome, pattern.reason, LineWith(text, pattern.text), pattern.remedy);
  }
  for (const std::string_view part : kForWantOfWorkspace) {
    if (saw_out_of_memory && Find(text, part) != text.end()) return OutOfMemory(text, part);
  }
  return Of("fail", "runner_error", FirstLine(text));
}

// CUDA's texts for every cudaErrorStreamCapture*, and LibTorch's own, have the word in one form or
// another.
bool IsRecordingError(const std::string& text) { return Find(text, "captur") != text.end(); }

std::string TextOfException(std::exception_ptr error) {
  try {
    std::rethrow_exception(error);
  } catch (const c10::Error& e) {
    // Where in LibTorch memory ran out helps nobody; where else it failed may.
    const std::string text = e.what_without_backtrace();
    return ClassifyError(text, false).outcome == "mem_limit" ? text : e.what();
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

RunnerResult ClassifyException(std::exception_ptr error, bool saw_out_of_memory) {
  try {
    std::rethrow_exception(error);
  } catch (const CannotRecord& e) {
    return Of("unsupported", "lane_not_in_stack",
              "the step cannot be recorded: " + LineWith(e.what(), "captur"), "use lane eager");
  } catch (const c10::OutOfMemoryError& e) {
    return OutOfMemory(e.what_without_backtrace(), "memory");
  } catch (const c10::Error& e) {
    return ClassifyError(e.what_without_backtrace(), saw_out_of_memory);
  } catch (const std::bad_alloc&) {
    return Of("mem_limit", "out_of_memory", "the host's memory is used up (std::bad_alloc)",
              kLessMemory);
  } catch (const std::exception& e) {
    return ClassifyError(e.what(), saw_out_of_memory);
  } catch (...) {
    return Of("fail", "runner_error", "an exception that is no std::exception");
  }
}

}  // namespace assay::train
