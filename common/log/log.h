// Log: one line a message on standard error, UTC time stamps, level, program.
//
// Library code logs through Log(); the message's text is made by fmt at the call. Thread rule: any.
#ifndef ASSAY_COMMON_LOG_LOG_H_
#define ASSAY_COMMON_LOG_LOG_H_

#include <spdlog/spdlog.h>

#include <string>

#include "absl/status/status.h"

namespace assay {

// Call once in main. `level` is debug, info, warn or error; InvalidArgument names the four.
absl::Status InitLog(const std::string& program, const std::string& level);

}  // namespace assay

#endif  // ASSAY_COMMON_LOG_LOG_H_
