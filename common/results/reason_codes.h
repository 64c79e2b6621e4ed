// The closed list of reason codes (common/results/outcome.h), for text that a runner or an agent
// sent.
//
// Thread rule: pure, any thread.
#ifndef ASSAY_COMMON_RESULTS_REASON_CODES_H_
#define ASSAY_COMMON_RESULTS_REASON_CODES_H_

#include <string_view>

#include "common/results/outcome.h"

namespace assay {

// `text` where it is a reason code, else `otherwise`. The answer outlives `text`.
std::string_view KnownReason(std::string_view text, std::string_view otherwise);

// For an outcome of a rank without a reason that is known; "" for ok.
std::string_view DefaultReason(Outcome outcome);

}  // namespace assay

#endif  // ASSAY_COMMON_RESULTS_REASON_CODES_H_
