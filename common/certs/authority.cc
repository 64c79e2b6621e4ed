#include "common/certs/authority.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/ec.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

#include "common/certs/key_file.h"
#include "common/status/status.h"

namespace assay {
namespace {

// Clocks of a fleet differ by some minutes; a certificate made now must be good everywhere now.
constexpr std::chrono::minutes kBackdate{10};

absl::Status CheckDays(int days) {
  if (days >= 1 && days <= kMostCertificateDays) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("--days takes 1 to {}, not {}", kMostCertificateDays, days));
}

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

// "DNS:a,IP:10.0.0.1", every part checked, since a comma would begin another name.
absl::StatusOr<std::string> HostNames(const std::vector<std::string>& hosts) {
  std::string names;
  for (const std::string& host : hosts) {
    in_addr v4;
    in6_addr v6;
    const bool address =
        inet_pton(AF_INET, host.c_str(), &v4) == 1 || inet_pton(AF_INET6, host.c_str(), &v6) == 1;
    const bool name = !host.empty() && host.size() <= 253 && host[0] != '-' && host[0] != '.' &&
                      std::all_of(host.begin(), host.end(), [](unsigned char c) {
                        return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_';
                      });
    if (!address && !name) {
      return absl::InvalidArgumentError(fmt::format(
          "--host takes a name or an address without port and brackets, not '{}'", host));
    }
    names += fmt::format(",{}:{}", address ? "IP" : "DNS", host);
  }
  return names;
}

absl::Status AddExtension(X509* x509, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, x509, nullptr, nullptr, 0);
  const X509ExtensionPtr extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  if (extension == nullptr || X509_add_ext(x509, extension.get(), -1) != 1) {
    return OpenSslStatus("cannot write an extension of the certificate");
  }
  return absl::OkStatus();
}

absl::Status SetSerial(X509* x509) {
  // 128 random bits, the topmost cleared so that the number is positive in 16 bytes.
  unsigned char bytes[16];
  if (RAND_bytes(bytes, sizeof bytes) != 1) return OpenSslStatus("no random numbers");
  bytes[0] &= 0x7f;
  const BignumPtr number(BN_bin2bn(bytes, sizeof bytes, nullptr));
  if (number == nullptr ||
      BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(x509)) == nullptr) {
    return OpenSslStatus("cannot set a serial number");
  }
  return absl::OkStatus();
}

struct Draft {
  std::string common_name;
  EVP_PKEY* key = nullptr;
  CertificateTime not_before;
  CertificateTime not_after;
};

absl::StatusOr<X509Ptr> Begin(const Draft& draft) {
  X509Ptr x509(X509_new());
  if (x509 == nullptr) return OpenSslStatus("cannot make a certificate");
  X509_NAME* subject = X509_get_subject_name(x509.get());
  const auto add = [subject](const char* field, const std::string& text) {
    return X509_NAME_add_entry_by_txt(subject, field, MBSTRING_UTF8,
                                      reinterpret_cast<const unsigned char*>(text.data()),
                                      static_cast<int>(text.size()), -1, 0) == 1;
  };
  ASSAY_RETURN_IF_ERROR(SetSerial(x509.get()));
  if (X509_set_version(x509.get(), X509_VERSION_3) != 1 || !add("O", "Assay") ||
      !add("CN", draft.common_name) || X509_set_pubkey(x509.get(), draft.key) != 1 ||
      ASN1_TIME_set(X509_getm_notBefore(x509.get()), draft.not_before.time_since_epoch().count()) ==
          nullptr ||
      ASN1_TIME_set(X509_getm_notAfter(x509.get()), draft.not_after.time_since_epoch().count()) ==
          nullptr) {
    return OpenSslStatus("cannot fill in a certificate");
  }
  return x509;
}

absl::Status Sign(X509* x509, X509* issuer, EVP_PKEY* key) {
  if (X509_set_issuer_name(x509, X509_get_subject_name(issuer)) != 1 ||
      X509_sign(x509, key, EVP_sha256()) == 0) {
    return OpenSslStatus("cannot sign a certificate");
  }
  return absl::OkStatus();
}

absl::StatusOr<X509Ptr> MakeAuthority(const Draft& draft) {
  ASSAY_ASSIGN_OR_RETURN(X509Ptr x509, Begin(draft));
  for (const auto& [nid, value] : {std::pair(NID_basic_constraints, "critical,CA:TRUE,pathlen:0"),
                                   std::pair(NID_key_usage, "critical,keyCertSign,cRLSign"),
                                   std::pair(NID_subject_key_identifier, "hash")}) {
    ASSAY_RETURN_IF_ERROR(AddExtension(x509.get(), x509.get(), nid, value));
  }
  ASSAY_RETURN_IF_ERROR(Sign(x509.get(), x509.get(), draft.key));
  return x509;
}

absl::StatusOr<X509Ptr> MakeLeaf(const Draft& draft, const Identity& identity,
                                 const std::vector<std::string>& hosts, X509* issuer,
                                 EVP_PKEY* issuer_key) {
  ASSAY_ASSIGN_OR_RETURN(X509Ptr x509, Begin(draft));
  ASSAY_ASSIGN_OR_RETURN(const std::string host_names, HostNames(hosts));
  // One use each: an agent's or a user's certificate must not pass for a coordinator's.
  const bool server = identity.kind == Identity::Kind::kCoordinator;
  const std::string names = "URI:" + identity.Uri() + host_names;
  for (const auto& [nid, value] :
       {std::pair<int, std::string>(NID_basic_constraints, "critical,CA:FALSE"),
        std::pair<int, std::string>(NID_key_usage, "critical,digitalSignature"),
        std::pair<int, std::string>(NID_ext_key_usage, server ? "serverAuth" : "clientAuth"),
        std::pair<int, std::string>(NID_subject_key_identifier, "hash"),
        std::pair<int, std::string>(NID_authority_key_identifier, "keyid:always"),
        std::pair<int, std::string>(NID_subject_alt_name, names)}) {
    ASSAY_RETURN_IF_ERROR(AddExtension(x509.get(), issuer, nid, value));
  }
  ASSAY_RETURN_IF_ERROR(Sign(x509.get(), issuer, issuer_key));
  return x509;
}

// The key that is there, or a new one.
absl::StatusOr<EvpKeyPtr> KeyAt(const std::string& path) {
  if (Exists(path)) return LoadKey(path);
  EvpKeyPtr key(EVP_EC_gen("P-256"));
  if (key == nullptr) return OpenSslStatus("cannot make a key");
  ASSAY_RETURN_IF_ERROR(WriteNewKey(path, key.get()));
  return key;
}

absl::Status MakeFolder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  if (mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return absl::OkStatus();
  return ErrnoStatus(errno, fmt::format("cannot make the folder {}", path));
}

std::string StemOf(const std::string& dir, const Identity& identity) {
  switch (identity.kind) {
    case Identity::Kind::kAgent:
      return fmt::format("{}/agents/{}", dir, identity.name);
    case Identity::Kind::kUser:
      return fmt::format("{}/users/{}", dir, identity.name);
    default:
      return dir + "/coordinator";
  }
}

absl::Status AlreadyThere(const std::string& path, const Certificate& old) {
  return absl::AlreadyExistsError(
      fmt::format("{} is there already, valid until {}; --renew gives it a new validity", path,
                  TimeText(old.not_after())));
}

// Checks a request to renew against what is there, and takes over the hosts.
absl::Status TakeOver(const Certificate& old, CertificateRequest& request) {
  ASSAY_ASSIGN_OR_RETURN(const Identity identity, old.identity());
  if (identity.kind == Identity::Kind::kUser && request.identity.role != identity.role) {
    return absl::InvalidArgumentError(
        fmt::format("{} has the role {}, which a renewal keeps; for another one remove its .crt "
                    "and .key and make it anew",
                    identity.name, RoleName(identity.role)));
  }
  if (request.hosts.empty()) request.hosts = old.hosts();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<IssuedFiles> Authority::Create(const std::string& dir, const std::string& name,
                                              int days, bool renew, CertificateTime now) {
  ASSAY_RETURN_IF_ERROR(CheckDays(days));
  IssuedFiles files = {dir + "/ca.crt", dir + "/ca.key", now + std::chrono::days(days), false};
  std::string common_name = name;
  if (Exists(files.certificate)) {
    ASSAY_ASSIGN_OR_RETURN(const Certificate old, Certificate::Load(files.certificate));
    if (!renew) return AlreadyThere(files.certificate, old);
    common_name = old.common_name();
  } else if (renew) {
    return absl::NotFoundError(fmt::format("{} is not there to be renewed", files.certificate));
  }
  if (common_name.empty() || common_name.size() > 64 ||
      std::any_of(common_name.begin(), common_name.end(),
                  [](unsigned char c) { return c < 0x20 || c == 0x7f; })) {
    return absl::InvalidArgumentError("--name takes 1 to 64 bytes without control characters");
  }
  ASSAY_RETURN_IF_ERROR(MakeFolder(dir));
  ASSAY_ASSIGN_OR_RETURN(const EvpKeyPtr key, KeyAt(files.key));
  ASSAY_ASSIGN_OR_RETURN(X509Ptr x509,
                         MakeAuthority({common_name, key.get(), now - kBackdate, files.not_after}));
  ASSAY_ASSIGN_OR_RETURN(const std::string pem, Certificate::Of(x509.get(), "").Pem());
  ASSAY_RETURN_IF_ERROR(WriteCertificateFile(files.certificate, pem));
  return files;
}

absl::StatusOr<Authority> Authority::Open(const std::string& dir) {
  absl::StatusOr<Certificate> certificate = Certificate::Load(dir + "/ca.crt");
  if (absl::IsNotFound(certificate.status())) {
    return absl::NotFoundError(
        fmt::format("there is no authority in {}; `assay certs init --dir {}` makes it", dir, dir));
  }
  ASSAY_RETURN_IF_ERROR(certificate.status());
  ASSAY_ASSIGN_OR_RETURN(EvpKeyPtr key, LoadKey(dir + "/ca.key"));
  if (X509_check_private_key(certificate->get(), key.get()) != 1) {
    ERR_clear_error();
    return absl::FailedPreconditionError(
        fmt::format("{0}/ca.key is not the key of {0}/ca.crt", dir));
  }
  return Authority(dir, *std::move(certificate), std::move(key));
}

absl::StatusOr<IssuedFiles> Authority::Issue(const CertificateRequest& asked,
                                             CertificateTime now) const {
  CertificateRequest request = asked;
  const bool server = request.identity.kind == Identity::Kind::kCoordinator;
  ASSAY_RETURN_IF_ERROR(CheckDays(request.days));
  if (!server) ASSAY_RETURN_IF_ERROR(CheckIdentityName(request.identity.name, "name"));
  ASSAY_RETURN_IF_ERROR(certificate_.CheckTime(
      now, fmt::format("the authority's {}/ca.crt (`assay certs init --renew` renews it)", dir_)));
  const std::string stem = StemOf(dir_, request.identity);
  IssuedFiles files = {stem + ".crt", stem + ".key", now + std::chrono::days(request.days), false};
  if (Exists(files.certificate)) {
    ASSAY_ASSIGN_OR_RETURN(const Certificate old, Certificate::Load(files.certificate));
    if (!request.renew) return AlreadyThere(files.certificate, old);
    ASSAY_RETURN_IF_ERROR(TakeOver(old, request));
  } else if (request.renew) {
    return absl::NotFoundError(fmt::format("{} is not there to be renewed", files.certificate));
  }
  if (server && request.hosts.empty()) {
    return absl::InvalidArgumentError(
        "say by which names and addresses it is reached: --host NAME_OR_IP, once for each");
  }
  ASSAY_RETURN_IF_ERROR(HostNames(request.hosts).status());
  if (files.not_after > certificate_.not_after()) {
    files.not_after = certificate_.not_after();
    files.cut = true;
  }
  if (!server) {
    ASSAY_RETURN_IF_ERROR(MakeFolder(std::filesystem::path(stem).parent_path().string()));
  }
  ASSAY_ASSIGN_OR_RETURN(const EvpKeyPtr key, KeyAt(files.key));
  const std::string name = server ? request.hosts.front() : request.identity.name;
  // A common name has 64 bytes at most; nobody looks a host up in it.
  const Draft draft = {name.size() <= 64 ? name : "coordinator", key.get(), now - kBackdate,
                       files.not_after};
  ASSAY_ASSIGN_OR_RETURN(X509Ptr x509, MakeLeaf(draft, request.identity, request.hosts,
                                                certificate_.get(), key_.get()));
  ASSAY_ASSIGN_OR_RETURN(const std::string pem, Certificate::Of(x509.get(), "").Pem());
  ASSAY_RETURN_IF_ERROR(WriteCertificateFile(files.certificate, pem));
  return files;
}

absl::StatusOr<std::vector<ListedCertificate>> Authority::List(const std::string& dir) {
  if (!Exists(dir + "/ca.crt")) {
    return absl::NotFoundError(
        fmt::format("there is no authority in {}; `assay certs init --dir {}` makes it", dir, dir));
  }
  std::vector<std::string> paths = {dir + "/ca.crt"};
  if (Exists(dir + "/coordinator.crt")) paths.push_back(dir + "/coordinator.crt");
  for (const char* folder : {"/agents", "/users"}) {
    std::vector<std::string> found;
    std::error_code error;
    for (std::filesystem::directory_iterator entry(dir + folder, error), end;
         !error && entry != end; entry.increment(error)) {
      if (entry->path().extension() == ".crt") found.push_back(entry->path().string());
    }
    std::sort(found.begin(), found.end());
    paths.insert(paths.end(), found.begin(), found.end());
  }
  std::vector<ListedCertificate> list;
  for (std::string& path : paths) {
    ListedCertificate item;
    const absl::StatusOr<Certificate> certificate = Certificate::Load(path);
    item.path = std::move(path);
    if (!certificate.ok()) {
      item.what = Message(certificate.status());
    } else {
      item.not_after = certificate->not_after();
      item.hosts = certificate->hosts();
      item.readable = true;
      const absl::StatusOr<Identity> identity = certificate->identity();
      item.what = certificate->is_authority() ? "authority " + certificate->common_name()
                  : identity.ok()             ? identity->ToString()
                                              : Message(identity.status());
    }
    list.push_back(std::move(item));
  }
  return list;
}

}  // namespace assay
