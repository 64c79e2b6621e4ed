// Authority: the certificate authority of one fleet, a folder of files.
//
//   DIR/ca.crt ca.key            the authority; ca.key stays here and is never overwritten
//   DIR/coordinator.crt .key
//   DIR/agents/NODE.crt .key
//   DIR/users/NAME.crt .key
//
// Keys are ECDSA P-256, of mode 0600, written once; a renewed certificate keeps its key, so that
// the pair of files fits together at every moment. Files appear whole or not at all.
//
// Thread rule: one owner. Errors: one sentence; AlreadyExists where a certificate is there and
// neither renewal was asked for.
#ifndef ASSAY_COMMON_CERTS_AUTHORITY_H_
#define ASSAY_COMMON_CERTS_AUTHORITY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/certs/certificate.h"
#include "common/net/identity.h"

namespace assay {

inline constexpr int kAuthorityDays = 3650;
inline constexpr int kCertificateDays = 365;
inline constexpr int kMostCertificateDays = 36'500;

struct CertificateRequest {
  Identity identity;               // kCoordinator, kAgent or kUser
  std::vector<std::string> hosts;  // kCoordinator: DNS names and addresses
  int days = kCertificateDays;     // cut at the authority's own end
  bool renew = false;              // a new validity; role and (where `hosts` is empty) hosts stay
};

struct IssuedFiles {
  std::string certificate;
  std::string key;
  CertificateTime not_after;
  bool cut = false;  // ends with the authority, before the days that were asked for
};

struct ListedCertificate {
  std::string path;
  std::string what;  // "authority NAME", Identity::ToString(), or why it cannot be read
  std::vector<std::string> hosts;
  CertificateTime not_after;
  bool readable = false;
};

class Authority {
 public:
  // Makes ca.crt and ca.key in `dir`, which is made (0700) where it is missing. With `renew`: a new
  // certificate of the same name with the same key, so that what it signed stays good.
  static absl::StatusOr<IssuedFiles> Create(const std::string& dir, const std::string& name,
                                            int days, bool renew, CertificateTime now);
  // NotFound names `assay certs init` where there is none.
  static absl::StatusOr<Authority> Open(const std::string& dir);

  absl::StatusOr<IssuedFiles> Issue(const CertificateRequest& request, CertificateTime now) const;

  // ca.crt first, then the coordinator's, agents' and users', by name.
  static absl::StatusOr<std::vector<ListedCertificate>> List(const std::string& dir);

 private:
  Authority(std::string dir, Certificate certificate, EvpKeyPtr key)
      : dir_(std::move(dir)), certificate_(std::move(certificate)), key_(std::move(key)) {}

  std::string dir_;
  Certificate certificate_;
  EvpKeyPtr key_;
};

}  // namespace assay

#endif  // ASSAY_COMMON_CERTS_AUTHORITY_H_
