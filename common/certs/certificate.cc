#include "common/certs/certificate.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <openssl/pem.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <utility>

#include "common/status/status.h"

namespace assay {
namespace {

constexpr off_t kMostFileBytes = off_t{1} << 20;

CertificateTime TimeOf(const ASN1_TIME* time) {
  std::tm broken_down = {};
  if (time == nullptr || ASN1_TIME_to_tm(time, &broken_down) != 1) return CertificateTime();
  return CertificateTime(std::chrono::seconds(timegm(&broken_down)));
}

// What a file of a stranger holds, fit for a sentence.
std::string Scrubbed(const unsigned char* data, int length) {
  std::string text;
  for (int i = 0; i < length && i < 253; ++i) {
    text += data[i] >= 0x20 && data[i] < 0x7f ? static_cast<char>(data[i]) : '?';
  }
  return text;
}

std::string AddressText(const ASN1_OCTET_STRING* bytes) {
  const int length = ASN1_STRING_length(bytes);
  char text[INET6_ADDRSTRLEN];
  if (length != 4 && length != 16) return "";
  const char* shown =
      inet_ntop(length == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(bytes), text, sizeof text);
  return shown == nullptr ? "" : shown;
}

// A key with a passphrase would otherwise be asked for on the terminal.
int NoPassphrase(char*, int, int, void*) { return -1; }

}  // namespace

absl::Status OpenSslStatus(const std::string& what) {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return absl::InternalError(
      fmt::format("{}: {}", what, reason == nullptr ? "OpenSSL gives no reason" : reason));
}

std::string TimeText(CertificateTime time) {
  // The years that a certificate can name; what is beyond comes from a broken one.
  const std::time_t seconds = time.time_since_epoch().count();
  std::tm broken_down = {};
  if (gmtime_r(&seconds, &broken_down) == nullptr) return "an unknown time";
  return fmt::format("{:%Y-%m-%d %H:%M} UTC", broken_down);
}

absl::StatusOr<std::string> ReadPemFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return ErrnoStatus(errno, fmt::format("cannot read {}", path));
  struct stat info = {};
  absl::Status status;
  std::string text;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    status = absl::InvalidArgumentError(fmt::format("{} is no file", path));
  } else if (info.st_size > kMostFileBytes) {
    status = absl::InvalidArgumentError(fmt::format("{} is larger than 1 MiB", path));
  } else {
    text.resize(static_cast<size_t>(info.st_size));
    const ssize_t got = read(fd, text.data(), text.size());
    if (got < 0) status = ErrnoStatus(errno, fmt::format("cannot read {}", path));
    text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  }
  close(fd);
  if (!status.ok()) return status;
  return text;
}

absl::StatusOr<Certificate> Certificate::FromPem(const std::string& pem, const std::string& where) {
  const BioPtr bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  X509Ptr x509(bio == nullptr ? nullptr
                              : PEM_read_bio_X509(bio.get(), nullptr, NoPassphrase, nullptr));
  ERR_clear_error();
  if (x509 == nullptr) {
    return absl::InvalidArgumentError(fmt::format("{} holds no certificate in PEM form", where));
  }
  return Certificate(std::move(x509), where);
}

absl::StatusOr<Certificate> Certificate::Load(const std::string& path) {
  ASSAY_ASSIGN_OR_RETURN(const std::string pem, ReadPemFile(path));
  return FromPem(pem, path);
}

Certificate Certificate::Of(X509* x509, const std::string& where) {
  X509_up_ref(x509);
  return Certificate(X509Ptr(x509), where);
}

absl::StatusOr<std::string> Certificate::Pem() const {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  char* data = nullptr;
  if (bio == nullptr || PEM_write_bio_X509(bio.get(), get()) != 1) {
    return OpenSslStatus("cannot write a certificate");
  }
  const long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

std::string Certificate::common_name() const {
  X509_NAME* subject = X509_get_subject_name(get());
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at < 0) return "";
  const ASN1_STRING* text = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at));
  return Scrubbed(ASN1_STRING_get0_data(text), ASN1_STRING_length(text));
}

CertificateTime Certificate::not_before() const { return TimeOf(X509_get0_notBefore(get())); }
CertificateTime Certificate::not_after() const { return TimeOf(X509_get0_notAfter(get())); }
bool Certificate::is_authority() const { return X509_check_ca(get()) == 1; }

std::vector<std::string> Certificate::Names(int type) const {
  const GeneralNamesPtr names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(get(), NID_subject_alt_name, nullptr, nullptr)));
  std::vector<std::string> found;
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != type) continue;
    if (type == GEN_IPADD) {
      found.push_back(AddressText(name->d.iPAddress));
    } else {
      const ASN1_IA5STRING* text = name->d.ia5;
      found.push_back(Scrubbed(ASN1_STRING_get0_data(text), ASN1_STRING_length(text)));
    }
  }
  return found;
}

absl::StatusOr<Identity> Certificate::identity() const {
  const std::vector<std::string> uris = Names(GEN_URI);
  if (uris.size() == 1) {
    absl::StatusOr<Identity> identity = IdentityFromUri(uris.front());
    if (identity.ok()) return identity;
    return absl::InvalidArgumentError(fmt::format("{}: {}", where_, Message(identity.status())));
  }
  return absl::InvalidArgumentError(
      fmt::format("{} does not say for whom it is: it has {} URIs and must have one, as "
                  "`assay certs` writes it",
                  where_, uris.size()));
}

std::vector<std::string> Certificate::hosts() const {
  std::vector<std::string> all = Names(GEN_DNS);
  for (std::string& address : Names(GEN_IPADD)) all.push_back(std::move(address));
  return all;
}

absl::Status Certificate::CheckTime(CertificateTime now, const std::string& what) const {
  if (now > not_after()) {
    return absl::FailedPreconditionError(
        fmt::format("{} expired at {} (it is {} now)", what, TimeText(not_after()), TimeText(now)));
  }
  if (now < not_before()) {
    return absl::FailedPreconditionError(
        fmt::format("{} is not valid before {} (it is {} now: is this machine's clock right?)",
                    what, TimeText(not_before()), TimeText(now)));
  }
  return absl::OkStatus();
}

absl::StatusOr<EvpKeyPtr> LoadKey(const std::string& path) {
  ASSAY_ASSIGN_OR_RETURN(const std::string pem, ReadPemFile(path));
  const BioPtr bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  EvpKeyPtr key(bio == nullptr
                    ? nullptr
                    : PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassphrase, nullptr));
  ERR_clear_error();
  if (key == nullptr) {
    return absl::InvalidArgumentError(
        fmt::format("{} holds no private key in PEM form without a passphrase", path));
  }
  return key;
}

}  // namespace assay
