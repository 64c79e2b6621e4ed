#include "agent/cell/endpoint.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>

#include "common/net/address.h"
#include "common/status/status.h"

namespace assay {
namespace {

using AddressList = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

// `numeric`: no name service, which could block the loop.
AddressList Resolve(const std::string& host, uint16_t port, bool numeric, int type) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = type;
  hints.ai_flags = AI_NUMERICSERV | (numeric ? AI_NUMERICHOST : 0);
  addrinfo* list = nullptr;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list) != 0) list = nullptr;
  return AddressList(list, [](addrinfo* l) {
    if (l != nullptr) ::freeaddrinfo(l);
  });
}

struct Numeric {
  std::string host;
  uint16_t port = 0;
};

absl::StatusOr<Numeric> NameOf(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      ::getnameinfo(reinterpret_cast<sockaddr*>(&address), size, host, sizeof host, port,
                    sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return ErrnoStatus(errno, "cannot read a socket's address");
  }
  return Numeric{host, static_cast<uint16_t>(std::stoi(port))};
}

}  // namespace

absl::StatusOr<BoundEndpoint> BindEndpoint(const std::string& host) {
  const AddressList list = Resolve(host, 0, true, SOCK_STREAM);
  if (list == nullptr) {
    return absl::InvalidArgumentError(fmt::format("{} is not a numeric address", host));
  }
  UniqueFd socket(::socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  // The queue has to hold every rank of a large gang at once.
  if (!socket || ::bind(socket.get(), list->ai_addr, list->ai_addrlen) != 0 ||
      ::listen(socket.get(), 1024) != 0) {
    return ErrnoStatus(errno, fmt::format("cannot listen on {}", host));
  }
  ASSAY_ASSIGN_OR_RETURN(const Numeric name, NameOf(socket.get()));
  Address address;
  address.host = name.host;
  address.port = name.port;
  return BoundEndpoint{std::move(socket), address.ToString()};
}

std::string LocalAddressTowards(const std::string& host, uint16_t port) {
  constexpr char kLoopback[] = "127.0.0.1";
  const AddressList list = Resolve(host, port, false, SOCK_DGRAM);
  if (list == nullptr) return kLoopback;
  const UniqueFd socket(::socket(list->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket || ::connect(socket.get(), list->ai_addr, list->ai_addrlen) != 0) return kLoopback;
  const absl::StatusOr<Numeric> name = NameOf(socket.get());
  return name.ok() ? name->host : kLoopback;
}

EndpointProbe::EndpointProbe(EventLoop& loop, const std::string& address,
                             std::chrono::nanoseconds limit, std::function<void(absl::Status)> done)
    : loop_(loop), address_(address), done_(std::move(done)) {
  absl::Status failed;
  const absl::StatusOr<Address> parsed = ParseAddress(address);
  const AddressList list = parsed.ok() && parsed->kind == Address::Kind::kTcp
                               ? Resolve(parsed->host, parsed->port, true, SOCK_STREAM)
                               : AddressList(nullptr, [](addrinfo*) {});
  if (list == nullptr) {
    failed = absl::InvalidArgumentError("the gang's endpoint is not a numeric address");
  } else {
    socket_ = UniqueFd(::socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket_ ||
        (::connect(socket_.get(), list->ai_addr, list->ai_addrlen) != 0 && errno != EINPROGRESS)) {
      failed = ErrnoStatus(errno, fmt::format("cannot reach the gang's endpoint {}", address));
    }
  }
  if (failed.ok()) {
    failed = loop_.Watch(socket_.get(), EPOLLOUT, [this](uint32_t) {
      int error = 0;
      socklen_t size = sizeof error;
      ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
      Finish(error == 0 ? absl::OkStatus()
                        : ErrnoStatus(
                              error, fmt::format("cannot reach the gang's endpoint {}", address_)));
    });
  }
  const BootTime when = failed.ok() ? BootClock::now() + limit : BootTime{};
  timer_ = loop_.RunAt(when, [this, failed] {
    Finish(!failed.ok() ? failed
                        : absl::DeadlineExceededError(
                              fmt::format("no answer from the gang's endpoint {}", address_)));
  });
}

EndpointProbe::~EndpointProbe() {
  loop_.Cancel(timer_);
  if (socket_) loop_.Unwatch(socket_.get());
}

void EndpointProbe::Finish(absl::Status status) {
  loop_.Cancel(timer_);
  if (socket_) {
    loop_.Unwatch(socket_.get());
    socket_.Reset();
  }
  // `done` may destroy this.
  const std::function<void(absl::Status)> done = std::move(done_);
  done(std::move(status));
}

}  // namespace assay
