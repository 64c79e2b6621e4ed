// Ids: ULIDs of runs, attempts and agent instances, and SHA-256 of bytes and files.
#ifndef ASSAY_COMMON_IDS_IDS_H_
#define ASSAY_COMMON_IDS_IDS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/clock/clock.h"

namespace assay {

// A ULID (26 characters of Crockford's base 32): 48 bits of `wall` milliseconds, 80 random bits
// from the kernel. Sorts by time; one from before 1970 sorts as of then. Thread rule: any thread.
std::string NewUlid(WallTime wall);

// True for 26 characters of the alphabet that encode at most 128 bits.
bool IsUlid(std::string_view text);

// True for what may be part of a file name: 1 to 64 of A-Z a-z 0-9 - _. Ids come from peers.
bool IsSafeId(std::string_view id);

// 64 lower-case hex digits.
std::string Sha256Hex(std::string_view bytes);

// NotFound or Internal with the path where the file cannot be read.
absl::StatusOr<std::string> Sha256HexOfFile(const std::string& path);

}  // namespace assay

#endif  // ASSAY_COMMON_IDS_IDS_H_
