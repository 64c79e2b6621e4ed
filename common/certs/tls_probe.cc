#include "common/certs/tls_probe.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "common/certs/openssl.h"
#include "common/certs/tls_check.h"
#include "common/clock/clock.h"
#include "common/status/status.h"

namespace assay {
namespace {

CertificateTime Now() {
  return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
}

// A descriptor that closes itself; -1: none.
class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

  // False at the deadline.
  bool Wait(short events, BootTime deadline) const {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - BootClock::now()).count();
    pollfd entry{fd_, events, 0};
    return left > 0 && poll(&entry, 1, static_cast<int>(left)) > 0;
  }

 private:
  int fd_;
};

// Connected and non-blocking, or none.
Socket Connect(const Address& address, BootTime deadline) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found) !=
      0) {
    return Socket(-1);
  }
  int connected = -1;
  for (const addrinfo* one = found; one != nullptr && connected < 0; one = one->ai_next) {
    Socket socket(::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (socket.get() < 0) continue;
    int error = 0;
    socklen_t size = sizeof error;
    if (connect(socket.get(), one->ai_addr, one->ai_addrlen) != 0 &&
        (errno != EINPROGRESS || !socket.Wait(POLLOUT, deadline) ||
         getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0)) {
      continue;
    }
    connected = dup(socket.get());
  }
  freeaddrinfo(found);
  return Socket(connected);
}

bool IsLiteral(const std::string& host) {
  in_addr v4;
  in6_addr v6;
  return inet_pton(AF_INET, host.c_str(), &v4) == 1 || inet_pton(AF_INET6, host.c_str(), &v6) == 1;
}

enum class End { kDone, kFailed, kClosed, kTimeout };

// Drives `step` (SSL_connect, SSL_read) until it is done, has failed or the time is over.
template <class Step>
End Drive(SSL* ssl, const Socket& socket, BootTime deadline, Step step) {
  while (true) {
    ERR_clear_error();
    const int result = step(ssl);
    if (result > 0) return End::kDone;
    switch (SSL_get_error(ssl, result)) {
      case SSL_ERROR_WANT_READ:
        if (!socket.Wait(POLLIN, deadline)) return End::kTimeout;
        break;
      case SSL_ERROR_WANT_WRITE:
        if (!socket.Wait(POLLOUT, deadline)) return End::kTimeout;
        break;
      case SSL_ERROR_SSL:
        // An end without TLS's own farewell is an end.
        return ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING
                   ? End::kClosed
                   : End::kFailed;
      default:
        return End::kClosed;
    }
  }
}

SslContextPtr MakeContext(const TlsFiles* files) {
  SslContextPtr context(SSL_CTX_new(TLS_client_method()));
  if (context == nullptr || files == nullptr) return context;
  // What is wrong with these was told by CheckTlsFiles.
  SSL_CTX_load_verify_locations(context.get(), files->ca.c_str(), nullptr);
  SSL_CTX_use_certificate_chain_file(context.get(), files->certificate.c_str());
  SSL_CTX_use_PrivateKey_file(context.get(), files->key.c_str(), SSL_FILETYPE_PEM);
  // Goes on whatever it finds, so that the peer's certificate can be looked at afterwards; the
  // verdict is kept. Nothing but the handshake is sent over it.
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, [](int, X509_STORE_CTX*) { return 1; });
  return context;
}

SslPtr MakeSsl(SSL_CTX* context, const Socket& socket, const std::string& host, bool check_name) {
  SslPtr ssl(context == nullptr ? nullptr : SSL_new(context));
  if (ssl == nullptr || SSL_set_fd(ssl.get(), socket.get()) != 1) return nullptr;
  static constexpr unsigned char kHttp2[] = {2, 'h', '2'};
  SSL_set_alpn_protos(ssl.get(), kHttp2, sizeof kHttp2);
  X509_VERIFY_PARAM* parameters = SSL_get0_param(ssl.get());
  if (IsLiteral(host)) {
    if (check_name) X509_VERIFY_PARAM_set1_ip_asc(parameters, host.c_str());
  } else {
    SSL_set_tlsext_host_name(ssl.get(), host.c_str());
    if (check_name) X509_VERIFY_PARAM_set1_host(parameters, host.c_str(), 0);
  }
  return ssl;
}

// The bytes that came back were no TLS: OpenSSL finds no version of it in them.
bool WasPlainText() {
  const int reason = ERR_GET_REASON(ERR_peek_error());
  return reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST ||
         reason == SSL_R_UNKNOWN_PROTOCOL || reason == SSL_R_PACKET_LENGTH_TOO_LONG ||
         reason == SSL_R_BAD_RECORD_TYPE || reason == SSL_R_UNEXPECTED_MESSAGE;
}

absl::Status Failed(const std::string& sentence) { return absl::FailedPreconditionError(sentence); }

// In plain words what OpenSSL found wrong with the peer's certificate.
absl::Status BadPeer(const Address& address, const TlsFiles& files, X509* peer, long error) {
  const std::string where = address.ToString();
  if (peer == nullptr) return absl::OkStatus();
  const Certificate certificate = Certificate::Of(peer, where);
  switch (error) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID: {
      absl::Status time = certificate.CheckTime(
          Now(), fmt::format("the certificate of the coordinator at {} (`assay certs coordinator "
                             "--renew` renews it)",
                             where));
      if (!time.ok()) return time;
      return Failed(fmt::format("the authority in {} is not valid now", files.ca));
    }
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return Failed(fmt::format(
          "the certificate of the coordinator at {} is for another name ({}): dial it by one of "
          "those, or make it good for {} with `assay certs coordinator --renew --host {}`",
          where, fmt::join(certificate.hosts(), ", "), address.host, address.host));
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return Failed(fmt::format(
          "the certificate of the coordinator at {} was not signed by the authority in {}: it "
          "belongs to another fleet, or --tls-ca names the wrong file",
          where, files.ca));
    case X509_V_ERR_INVALID_PURPOSE:
      return Failed(
          fmt::format("what listens at {} shows a certificate that is not a coordinator's", where));
    default:
      return Failed(fmt::format("the certificate of the coordinator at {} cannot be trusted: {}",
                                where, X509_verify_cert_error_string(error)));
  }
}

absl::Status NotTaken(const Address& address, const Transport& transport, const Identity& self) {
  return Failed(
      fmt::format("the coordinator at {} did not take the certificate {} ({}): its authority is "
                  "another one, or its clock is wrong",
                  address.ToString(), transport.tls.certificate, self.ToString()));
}

absl::Status ProbeSecure(const Address& address, const Transport& transport, const Identity& self) {
  const BootTime deadline = BootClock::now() + kProbeLimit;
  const Socket socket = Connect(address, deadline);
  if (socket.get() < 0) return absl::OkStatus();
  const SslContextPtr context = MakeContext(&transport.tls);
  const SslPtr ssl = MakeSsl(context.get(), socket, address.host, true);
  if (ssl == nullptr) return absl::OkStatus();
  const End end = Drive(ssl.get(), socket, deadline, SSL_connect);
  const bool plain = end == End::kFailed && WasPlainText();
  const long verified = SSL_get_verify_result(ssl.get());
  ERR_clear_error();
  if (plain) {
    return Failed(
        fmt::format("the coordinator at {} speaks plain text and this side TLS: start it with its "
                    "--tls files, or leave them out here",
                    address.ToString()));
  }
  if (verified != X509_V_OK) {
    const X509Ptr peer(SSL_get1_peer_certificate(ssl.get()));
    absl::Status told = BadPeer(address, transport.tls, peer.get(), verified);
    if (!told.ok()) return told;
    return Failed(fmt::format("the certificate of the coordinator at {} cannot be trusted: {}",
                              address.ToString(), X509_verify_cert_error_string(verified)));
  }
  if (end == End::kFailed) return NotTaken(address, transport, self);
  if (end != End::kDone) return absl::OkStatus();
  // In TLS 1.3 the client's certificate is judged after the client is done. A coordinator that
  // takes it says something at once (the settings of HTTP/2).
  char byte;
  const End said = Drive(ssl.get(), socket, deadline,
                         [&byte](SSL* s) { return SSL_read(s, &byte, sizeof byte); });
  ERR_clear_error();
  if (said == End::kFailed || said == End::kClosed) return NotTaken(address, transport, self);
  return absl::OkStatus();
}

absl::Status ProbePlain(const Address& address) {
  const BootTime deadline = BootClock::now() + kProbeLimit;
  const Socket socket = Connect(address, deadline);
  if (socket.get() < 0) return absl::OkStatus();
  const SslContextPtr context = MakeContext(nullptr);
  const SslPtr ssl = MakeSsl(context.get(), socket, address.host, false);
  if (ssl == nullptr) return absl::OkStatus();
  const End end = Drive(ssl.get(), socket, deadline, SSL_connect);
  const bool speaks_tls = end == End::kDone || (end == End::kFailed && !WasPlainText());
  ERR_clear_error();
  if (!speaks_tls) return absl::OkStatus();
  return Failed(
      fmt::format("the coordinator at {} takes TLS only, and this side spoke plain text: give "
                  "--tls-ca, --tls-cert and --tls-key",
                  address.ToString()));
}

}  // namespace

absl::Status ExplainConnection(const Address& address, const Transport& transport,
                               Identity::Kind kind) {
  if (address.kind != Address::Kind::kTcp) return absl::OkStatus();
  if (!transport.UsesTls(address)) return ProbePlain(address);
  const absl::StatusOr<TlsReport> report = CheckTlsFiles(transport.tls, kind, Now());
  if (!report.ok()) return Failed(Message(report.status()));
  return ProbeSecure(address, transport, report->identity);
}

}  // namespace assay
