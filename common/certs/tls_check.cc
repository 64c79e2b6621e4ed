#include "common/certs/tls_check.h"

#include <fmt/format.h>
#include <openssl/pem.h>
#include <sys/stat.h>

#include <utility>

#include "common/status/status.h"

namespace assay {
namespace {

constexpr std::chrono::days kSoon{14};

// Every certificate of the file: while an authority is replaced, the old and the new one.
absl::StatusOr<std::vector<X509Ptr>> LoadAll(const std::string& path) {
  ASSAY_ASSIGN_OR_RETURN(const std::string pem, ReadPemFile(path));
  const BioPtr bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  std::vector<X509Ptr> all;
  while (bio != nullptr) {
    X509Ptr x509(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
    if (x509 == nullptr) break;
    all.push_back(std::move(x509));
  }
  ERR_clear_error();
  if (!all.empty()) return all;
  return absl::InvalidArgumentError(fmt::format("{} holds no certificate in PEM form", path));
}

absl::Status CheckSignedBy(const Certificate& certificate, const TlsFiles& files,
                           CertificateTime now) {
  ASSAY_ASSIGN_OR_RETURN(const std::vector<X509Ptr> authorities, LoadAll(files.ca));
  const X509StorePtr store(X509_STORE_new());
  const X509StoreContextPtr context(X509_STORE_CTX_new());
  if (store == nullptr || context == nullptr) return OpenSslStatus("cannot check certificates");
  for (const X509Ptr& authority : authorities) X509_STORE_add_cert(store.get(), authority.get());
  X509_STORE_CTX_init(context.get(), store.get(), certificate.get(), nullptr);
  X509_VERIFY_PARAM_set_time(X509_STORE_CTX_get0_param(context.get()),
                             now.time_since_epoch().count());
  const bool good = X509_verify_cert(context.get()) == 1;
  const int error = X509_STORE_CTX_get_error(context.get());
  ERR_clear_error();
  if (good) return absl::OkStatus();
  if (error == X509_V_ERR_CERT_HAS_EXPIRED || error == X509_V_ERR_CERT_NOT_YET_VALID) {
    // The certificate's own time was looked at before.
    X509* culprit = X509_STORE_CTX_get_current_cert(context.get());
    if (culprit != nullptr) {
      ASSAY_RETURN_IF_ERROR(Certificate::Of(culprit, files.ca)
                                .CheckTime(now, fmt::format("the authority in {}", files.ca)));
    }
  }
  return absl::FailedPreconditionError(
      fmt::format("the certificate {} was not signed by the authority in {} ({}): take the ca.crt "
                  "that lies beside it in the folder of `assay certs`",
                  files.certificate, files.ca, X509_verify_cert_error_string(error)));
}

const char* KindWord(Identity::Kind kind) {
  switch (kind) {
    case Identity::Kind::kCoordinator:
      return "a coordinator, which `assay certs coordinator` makes";
    case Identity::Kind::kAgent:
      return "an agent, which `assay certs agent NODE` makes";
    default:
      return "a user, which `assay certs user NAME --role ROLE` makes";
  }
}

const char* RenewWords(const Identity& identity) {
  switch (identity.kind) {
    case Identity::Kind::kCoordinator:
      return "`assay certs coordinator --renew`";
    case Identity::Kind::kAgent:
      return "`assay certs agent NODE --renew`";
    default:
      return "`assay certs user NAME --renew`";
  }
}

std::vector<std::string> WarningsOf(const TlsFiles& files, const Certificate& certificate,
                                    const Identity& identity, CertificateTime now) {
  std::vector<std::string> warnings;
  struct stat info = {};
  if (stat(files.key.c_str(), &info) == 0 && (info.st_mode & 077) != 0) {
    warnings.push_back(
        fmt::format("the key {0} can be read by others (mode {1:03o}): chmod 600 {0}", files.key,
                    info.st_mode & 0777));
  }
  if (certificate.not_after() - now < kSoon) {
    warnings.push_back(
        fmt::format("the certificate {} ends at {}: {} makes a new one, taken "
                    "without a restart",
                    files.certificate, TimeText(certificate.not_after()), RenewWords(identity)));
  }
  return warnings;
}

}  // namespace

absl::StatusOr<TlsReport> CheckTlsFiles(const TlsFiles& files, Identity::Kind kind,
                                        CertificateTime now) {
  ASSAY_ASSIGN_OR_RETURN(const Certificate certificate, Certificate::Load(files.certificate));
  ASSAY_ASSIGN_OR_RETURN(const EvpKeyPtr key, LoadKey(files.key));
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    ERR_clear_error();
    return absl::FailedPreconditionError(fmt::format(
        "the key {} is not the key of the certificate {}", files.key, files.certificate));
  }
  TlsReport report;
  ASSAY_ASSIGN_OR_RETURN(report.identity, certificate.identity());
  if (report.identity.kind != kind) {
    return absl::FailedPreconditionError(
        fmt::format("the certificate {} is for {}; needed is one for {}", files.certificate,
                    report.identity.ToString(), KindWord(kind)));
  }
  ASSAY_RETURN_IF_ERROR(
      certificate.CheckTime(now, fmt::format("the certificate {} ({} renews it)", files.certificate,
                                             RenewWords(report.identity))));
  ASSAY_RETURN_IF_ERROR(CheckSignedBy(certificate, files, now));
  report.not_after = certificate.not_after();
  report.warnings = WarningsOf(files, certificate, report.identity, now);
  return report;
}

}  // namespace assay
