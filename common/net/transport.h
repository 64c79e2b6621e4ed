// Transport: how what is said between our programs is protected on its way.
//
// On a Unix socket always plain text: its folder's permissions say who may come. On other
// addresses TLS where its three files are given. Plain text stays on this machine, unless
// --insecure allows it elsewhere.
//
// Thread rule: plain values, any thread.
#ifndef ASSAY_COMMON_NET_TRANSPORT_H_
#define ASSAY_COMMON_NET_TRANSPORT_H_

#include <string>

#include "absl/status/status.h"
#include "common/net/address.h"

namespace assay {

// Paths of PEM files: certificates that peers must be signed by, our own one and its key.
struct TlsFiles {
  std::string ca;
  std::string certificate;
  std::string key;

  friend bool operator==(const TlsFiles&, const TlsFiles&) = default;
};

struct Transport {
  TlsFiles tls;  // all three or none
  bool insecure = false;

  bool HasTls() const { return !tls.ca.empty(); }
  bool UsesTls(const Address& address) const {
    return HasTls() && address.kind == Address::Kind::kTcp;
  }
  // Plain text that others than this machine can read and write.
  bool IsOpen(const Address& address) const { return !UsesTls(address) && !address.IsLocal(); }
};

// InvalidArgument with one sentence: some of the three files but not all, files and --insecure, or
// plain text to or from elsewhere without --insecure.
absl::Status CheckTransport(const Transport& transport, const Address& address);

}  // namespace assay

#endif  // ASSAY_COMMON_NET_TRANSPORT_H_
