// Certificate: one X.509 certificate as its owner reads it, and its key.
//
// Thread rule: one owner at a time. Errors: one sentence that names the file.
#ifndef ASSAY_COMMON_CERTS_CERTIFICATE_H_
#define ASSAY_COMMON_CERTS_CERTIFICATE_H_

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/certs/openssl.h"
#include "common/net/identity.h"

namespace assay {

using CertificateTime = std::chrono::sys_seconds;

// "2026-11-30 17:54 UTC".
std::string TimeText(CertificateTime time);

class Certificate {
 public:
  // `where` names it in sentences. InvalidArgument where it is no PEM certificate.
  static absl::StatusOr<Certificate> FromPem(const std::string& pem, const std::string& where);
  // Of at most 1 MiB. NotFound, PermissionDenied or InvalidArgument.
  static absl::StatusOr<Certificate> Load(const std::string& path);
  // Takes a reference of its own.
  static Certificate Of(X509* x509, const std::string& where);

  absl::StatusOr<std::string> Pem() const;
  X509* get() const { return x509_.get(); }

  std::string common_name() const;
  CertificateTime not_before() const;
  CertificateTime not_after() const;
  bool is_authority() const;
  // Of its one URI; InvalidArgument where it has none, several, or one that is not ours.
  absl::StatusOr<Identity> identity() const;
  // DNS names and addresses that it is good for, as text.
  std::vector<std::string> hosts() const;

  // FailedPrecondition in plain words where `now` is not within its validity. `what` begins the
  // sentence, for example "the certificate c.crt".
  absl::Status CheckTime(CertificateTime now, const std::string& what) const;

 private:
  explicit Certificate(X509Ptr x509, std::string where)
      : x509_(std::move(x509)), where_(std::move(where)) {}
  std::vector<std::string> Names(int type) const;

  X509Ptr x509_;
  std::string where_;
};

// A private key without a passphrase. NotFound, PermissionDenied or InvalidArgument.
absl::StatusOr<EvpKeyPtr> LoadKey(const std::string& path);

// The text of a file of certificates or keys, at most 1 MiB.
absl::StatusOr<std::string> ReadPemFile(const std::string& path);

}  // namespace assay

#endif  // ASSAY_COMMON_CERTS_CERTIFICATE_H_
