// What is wrong with our own TLS files, told before anybody dials or listens with them.
//
// gRPC says of bad files nothing at all (it waits for better ones), so they are looked at first.
// Thread rule: any thread; reads files.
#ifndef ASSAY_COMMON_CERTS_TLS_CHECK_H_
#define ASSAY_COMMON_CERTS_TLS_CHECK_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/certs/certificate.h"
#include "common/net/identity.h"
#include "common/net/transport.h"

namespace assay {

struct TlsReport {
  Identity identity;  // of our own certificate
  CertificateTime not_after;
  std::vector<std::string> warnings;  // a key that others may read, an end within 14 days
};

// `kind` is what the certificate must be for. One sentence where a file cannot be read or is none,
// the key is not the certificate's, it is signed by another authority than `files.ca`, expired, not
// yet valid, or for somebody else.
absl::StatusOr<TlsReport> CheckTlsFiles(const TlsFiles& files, Identity::Kind kind,
                                        CertificateTime now);

}  // namespace assay

#endif  // ASSAY_COMMON_CERTS_TLS_CHECK_H_
