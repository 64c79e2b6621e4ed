#include "coordinator/coordinator.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include "common/net/grpc_options.h"
#include "common/status/status.h"

namespace assay {
namespace {

// Streams that did not end by themselves by then are cancelled.
constexpr std::chrono::milliseconds kShutdownGrace{1'000};

absl::Status InUse(const Address& address) {
  return absl::AlreadyExistsError(
      fmt::format("cannot listen on {}: another program does already", address.ToString()));
}

// gRPC removes a socket file before it binds, even one that somebody listens on.
absl::Status CheckUnixFree(const Address& address) {
  struct stat info;
  if (lstat(address.path.c_str(), &info) != 0) return absl::OkStatus();
  if (!S_ISSOCK(info.st_mode)) {
    return absl::AlreadyExistsError(
        fmt::format("cannot listen on {}: there is a file that is no socket", address.ToString()));
  }
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return ErrnoStatus(errno, "cannot make a socket");
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, address.path.c_str(), address.path.size() + 1);
  const bool answered = connect(fd, reinterpret_cast<sockaddr*>(&name), sizeof(name)) == 0;
  close(fd);
  return answered ? InUse(address) : absl::OkStatus();
}

// Why gRPC could not listen, which it does not say.
absl::Status WhyNotListening(const Address& address) {
  const std::string what = fmt::format("cannot listen on {}", address.ToString());
  if (address.kind == Address::Kind::kUnix) {
    const std::string folder = address.path.substr(0, address.path.rfind('/') + 1);
    if (access(folder.c_str(), W_OK) != 0) return ErrnoStatus(errno, what);
    return absl::InternalError(what);
  }
  addrinfo hints = {};
  hints.ai_flags = AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int code =
      getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (code != 0) return absl::InvalidArgumentError(fmt::format("{}: {}", what, gai_strerror(code)));
  const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int one = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  const int bound = fd < 0 ? -1 : bind(fd, found->ai_addr, found->ai_addrlen);
  const int listening = bound != 0 ? -1 : listen(fd, 1);
  const int error = errno;
  if (fd >= 0) close(fd);
  freeaddrinfo(found);
  if (listening == 0) return absl::InternalError(what);
  return error == EADDRINUSE ? InUse(address) : ErrnoStatus(error, what);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Coordinator>> Coordinator::Start(Parts parts, Address address) {
  if (address.kind == Address::Kind::kUnix) ASSAY_RETURN_IF_ERROR(CheckUnixFree(address));
  std::unique_ptr<Coordinator> coordinator(new Coordinator(std::move(parts), std::move(address)));
  ASSAY_RETURN_IF_ERROR(coordinator->Begin());
  return coordinator;
}

Coordinator::Coordinator(Parts parts, Address address)
    : parts_(std::move(parts)),
      address_(std::move(address)),
      state_(parts_.times, SystemDeps()),
      loop_(state_, parts_.clock),
      store_thread_(*parts_.store, {[this](const std::vector<event::CommitDone>& done) {
                                      for (const event::CommitDone& commit : done) {
                                        loop_.Post(commit);
                                      }
                                    },
                                    [this](std::string message) {
                                      loop_.Post(event::CommitFailed{std::move(message)});
                                    }}),
      fleet_(
          [this](Event event, std::function<void()> after) {
            loop_.Post(std::move(event), std::move(after));
          },
          PeerReader(parts_.transport.UsesTls(address_), parts_.clock)),
      control_({loop_, work_, *parts_.reader, parts_.clock, parts_.state_dir,
                PeerReader(parts_.transport.UsesTls(address_), parts_.clock),
                parts_.transport.IsOpen(address_)}) {}

absl::Status Coordinator::Begin() {
  ASSAY_ASSIGN_OR_RETURN(StateSnapshot snapshot, parts_.store->Load());
  state_.Load(std::move(snapshot), parts_.clock.Now());

  int port = 0;
  grpc::ServerBuilder builder;
  ASSAY_RETURN_IF_ERROR(ConfigureServer(builder, address_, &port, parts_.transport));
  builder.RegisterService(&fleet_);
  builder.RegisterService(&control_);
  store_thread_.Start();
  work_.Start();
  loop_.Start({[this](Persist persist) { store_thread_.Persist(std::move(persist)); },
               [this](SendToAgent send) { fleet_.Send(std::move(send)); },
               [this](SessionHandle session) { fleet_.Close(session); }, parts_.on_halt});
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) return WhyNotListening(address_);
  if (address_.kind == Address::Kind::kTcp) {
    if (port <= 0) return WhyNotListening(address_);
    address_.port = static_cast<uint16_t>(port);
  } else if (chmod(address_.path.c_str(), 0600) != 0) {
    return ErrnoStatus(errno, fmt::format("cannot protect {}", address_.ToString()));
  }
  return absl::OkStatus();
}

Coordinator::~Coordinator() {
  fleet_.CloseAll();
  // First the state, so that every open question is answered and no stream waits for one.
  loop_.Stop();
  if (server_ != nullptr) {
    server_->Shutdown(std::chrono::system_clock::now() + kShutdownGrace);
    server_->Wait();
  }
  work_.Stop();
  store_thread_.Stop();
  if (server_ != nullptr && address_.kind == Address::Kind::kUnix) unlink(address_.path.c_str());
}

}  // namespace assay
