// FailureMessage: the `message` of a result, made of what a framework said. People read one line of
// it in a table, so its length is bounded here, for every runner and the agent alike; the whole
// text belongs on the runner's standard error, whose tail is kept with the cell.
//
// Thread rule: pure functions, any thread. Standard library only.
#ifndef ASSAY_COMMON_RUNNER_PROTOCOL_FAILURE_MESSAGE_H_
#define ASSAY_COMMON_RUNNER_PROTOCOL_FAILURE_MESSAGE_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace assay {

inline constexpr size_t kMaxFailureMessageBytes = 300;

// `text` on one line of at most kMaxFailureMessageBytes. What is longer ends behind its last
// sentence or clause that fits, else behind a word and with "...". Never cuts inside a UTF-8
// sequence; bytes that are no UTF-8 are kept.
std::string ShortMessage(std::string_view text);

// What could not be allocated, where, and how much there is, from the text of LibTorch's CUDA or
// CPU allocator, as one sentence with the remedy: "2.30 GiB more were asked for on GPU 0 of 139.72
// GiB, of which 1.10 GiB were free: use a smaller batch, or accumulate". Sizes that `text` does not
// name are left out. nullopt where it is no such text.
std::optional<std::string> OutOfMemoryMessage(std::string_view text);

}  // namespace assay

#endif  // ASSAY_COMMON_RUNNER_PROTOCOL_FAILURE_MESSAGE_H_
