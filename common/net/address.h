// Address: where a coordinator listens or is reached, parsed once and shown as a person wrote it.
//
// Free of gRPC (grpc_options.h has what needs it). Thread rule: plain values, any thread.
#ifndef ASSAY_COMMON_NET_ADDRESS_H_
#define ASSAY_COMMON_NET_ADDRESS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace assay {

// sockaddr_un::sun_path holds 108 bytes with the closing zero; gRPC 1.51 answers a longer path with
// a null server and no reason.
inline constexpr size_t kMaxUnixPathBytes = 107;

struct Address {
  enum class Kind { kUnix, kTcp };
  Kind kind = Kind::kTcp;
  std::string path;   // kUnix: absolute
  std::string host;   // kTcp: name or literal, without brackets
  uint16_t port = 0;  // kTcp: 0 lets the kernel choose (listening only)

  // "unix:/run/x/c.sock", "127.0.0.1:7070", "[::1]:7070": also what gRPC takes.
  std::string ToString() const;
  // True for a Unix socket, localhost, 127.0.0.0/8 and ::1.
  bool IsLocal() const;

  friend bool operator==(const Address&, const Address&) = default;
};

// Accepts "unix:PATH" (absolute), "HOST:PORT" and "[IPV6]:PORT". InvalidArgument with one sentence
// that quotes the text (cut and scrubbed) otherwise: no port, port over 65535, path relative or too
// long, an IPv6 literal without brackets, control characters.
absl::StatusOr<Address> ParseAddress(std::string_view text);

}  // namespace assay

#endif  // ASSAY_COMMON_NET_ADDRESS_H_
