// What stands in a state directory where files of Assay's belong: a folder, a socket or a file that
// this user cannot write makes each program fail in a way of its own, so it is looked for first.
//
// Thread rule: any thread. Errors: FailedPrecondition, one sentence with the place and what to do.
#ifndef ASSAY_COMMON_NET_STATE_FILES_H_
#define ASSAY_COMMON_NET_STATE_FILES_H_

#include <string>

#include "absl/status/status.h"

namespace assay {

enum class Links { kFollow, kRefuse };

// OK for a regular file and where nothing is. A link that leads nowhere is refused.
absl::Status CheckIsFile(const std::string& path, Links links = Links::kFollow);

// `dir` exists. Can it be written, and is each file in it that is opened by name (lock,
// endpoint.json, results.db and those beside it, coordinator.log) one that can be used or made?
// Holds of results.db that it begins as such a file does. To be asked before the store is opened: a
// process that has it open would lose SQLite's locks.
absl::Status CheckStateFiles(const std::string& dir);

}  // namespace assay

#endif  // ASSAY_COMMON_NET_STATE_FILES_H_
