#include "runners/train/failure.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <new>
#include <string_view>

namespace assay::train {
namespace {

bool ContainsAny(const std::string& text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) {
    return std::search(text.begin(), text.end(), part.begin(), part.end(), [](char a, char b) {
             return std::tolower(static_cast<unsigned char>(a)) ==
                    std::tolower(static_cast<unsigned char>(b));
           }) != text.end();
  });
}

std::string FirstLine(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return "an error without a text";
  return text.substr(begin, text.find_first_of("\r\n", begin) - begin);
}

RunnerResult Of(const char* outcome, const char* reason, const std::string& message) {
  return {outcome, reason, message, nlohmann::json::object()};
}

}  // namespace

RunnerResult ClassifyError(const std::string& text, bool saw_out_of_memory) {
  const std::string line = FirstLine(text);
  // CUDA's and the caching allocator's, the CPU allocator's, cuBLAS's and cuDNN's, oneDNN's.
  if (ContainsAny(text, {"out of memory", "can't allocate memory", "cannot allocate memory",
                         "not enough memory", "std::bad_alloc", "CUBLAS_STATUS_ALLOC_FAILED",
                         "CUDNN_STATUS_ALLOC_FAILED", "ALLOCATION_FAILED", "out_of_memory"}) ||
      (saw_out_of_memory && ContainsAny(text, {"unable to find an engine", "valid cuDNN algorithm",
                                               "CUDNN_STATUS", "CUBLAS_STATUS"}))) {
    return Of("mem_limit", "out_of_memory", line);
  }
  if (ContainsAny(text, {"ECC error"})) return Of("fail", "ecc_error", line);
  if (ContainsAny(text, {"no kernel image is available"})) {
    return Of("unsupported", "unsupported_arch", line);
  }
  if (ContainsAny(text, {"driver version is insufficient", "forward compatibility was attempted",
                         "driver on your system is too old"})) {
    return Of("unsupported", "driver_too_old", line);
  }
  return Of("fail", "runner_error", line);
}

RunnerResult ClassifyException(std::exception_ptr error, bool saw_out_of_memory) {
  try {
    std::rethrow_exception(error);
  } catch (const c10::OutOfMemoryError& e) {
    return Of("mem_limit", "out_of_memory", FirstLine(e.what_without_backtrace()));
  } catch (const c10::Error& e) {
    return ClassifyError(e.what_without_backtrace(), saw_out_of_memory);
  } catch (const std::bad_alloc&) {
    return Of("mem_limit", "out_of_memory", "the host's memory was not enough (std::bad_alloc)");
  } catch (const std::exception& e) {
    return ClassifyError(e.what(), saw_out_of_memory);
  } catch (...) {
    return Of("fail", "runner_error", "an exception that is no std::exception");
  }
}

}  // namespace assay::train
