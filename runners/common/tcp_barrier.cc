#include "runners/common/tcp_barrier.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

namespace assay {

// In no unnamed namespace: TcpBarrier::Sockets, which has some, is not.
class BarrierSocket {
 public:
  explicit BarrierSocket(int fd = -1) : fd_(fd) {}
  BarrierSocket(BarrierSocket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  BarrierSocket& operator=(BarrierSocket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~BarrierSocket() {
    if (fd_ >= 0) close(fd_);
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

// What a rank says first: a mark, its rank and the world size, so that strangers are told apart.
using Greeting = std::array<uint32_t, 4>;
constexpr uint32_t kMark = 0x41535359;
constexpr char kGo = 'G';
constexpr char kDone = 'D';
// Connections that have said nothing yet; with more, the oldest is a stranger and is closed.
constexpr size_t kMostSilent = 256;

struct AddressList {
  addrinfo* first = nullptr;
  ~AddressList() {
    if (first != nullptr) freeaddrinfo(first);
  }
};

void Resolve(const std::string& endpoint, AddressList& list) {
  const size_t colon = endpoint.rfind(':');
  if (colon == std::string::npos || colon + 1 == endpoint.size()) {
    throw std::runtime_error("endpoint '" + endpoint + "' is not host:port");
  }
  std::string host = endpoint.substr(0, colon);
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  const int error = getaddrinfo(host.c_str(), endpoint.c_str() + colon + 1, &hints, &list.first);
  if (error != 0) {
    throw std::runtime_error("endpoint '" + endpoint + "': " + gai_strerror(error));
  }
}

bool IsListener(int fd) {
  int listening = 0;
  socklen_t size = sizeof listening;
  return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) == 0 && listening != 0;
}

BarrierSocket Listen(const CellFile& cell) {
  if (IsListener(kPassedListener)) return BarrierSocket(kPassedListener);
  AddressList list;
  Resolve(cell.endpoint, list);
  std::string why = "no address";
  for (const addrinfo* a = list.first; a != nullptr; a = a->ai_next) {
    BarrierSocket socket(::socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    if (socket.fd() >= 0) setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (socket.fd() >= 0 && bind(socket.fd(), a->ai_addr, a->ai_addrlen) == 0 &&
        listen(socket.fd(), 128) == 0) {
      return socket;
    }
    why = std::generic_category().message(errno);
  }
  throw std::runtime_error("rank 0 cannot listen at " + cell.endpoint + ": " + why);
}

int MillisecondsTo(SteadyTime until) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
  return left.count() < 0 ? 0 : static_cast<int>(left.count());
}

// False where the peer is gone.
bool SendByte(int fd, char byte) { return send(fd, &byte, 1, MSG_NOSIGNAL) == 1; }

void SendAll(int fd, const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t count = send(fd, text.data() + done, text.size() - done, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    done += static_cast<size_t>(count);
  }
}

bool ReadByte(int fd, char& byte) {
  for (;;) {
    const ssize_t count = recv(fd, &byte, 1, 0);
    if (count < 0 && errno == EINTR) continue;
    return count == 1;
  }
}

[[noreturn]] void WaitForEver() {
  for (;;) pause();
}

std::map<int, BarrierSocket> AwaitAll(int listener, const CellFile& cell, SteadyTime until) {
  std::map<int, BarrierSocket> ranks;
  std::vector<BarrierSocket> pending;
  fcntl(listener, F_SETFL, fcntl(listener, F_GETFL) | O_NONBLOCK);
  while (static_cast<int>(ranks.size()) < cell.world_size - 1) {
    std::vector<pollfd> fds{{listener, POLLIN, 0}};
    for (const BarrierSocket& socket : pending) fds.push_back({socket.fd(), POLLIN, 0});
    if (MillisecondsTo(until) == 0) {
      std::string missing;
      for (int rank = 1; rank < cell.world_size; ++rank) {
        if (!ranks.contains(rank)) missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
      }
      throw std::runtime_error("ranks that did not join: " + missing);
    }
    if (poll(fds.data(), fds.size(), MillisecondsTo(until)) < 0 && errno != EINTR) {
      throw std::runtime_error("poll: " + std::generic_category().message(errno));
    }
    std::vector<BarrierSocket> still;
    for (size_t i = 0; i < pending.size(); ++i) {
      if (fds[i + 1].revents == 0) {
        still.push_back(std::move(pending[i]));
        continue;
      }
      Greeting greeting{};
      const ssize_t count = recv(pending[i].fd(), greeting.data(), sizeof greeting, MSG_DONTWAIT);
      const auto rank = static_cast<int>(greeting[1]);
      if (count == sizeof greeting && greeting[0] == kMark && rank >= 1 && rank < cell.world_size &&
          static_cast<int>(greeting[2]) == cell.world_size) {
        ranks.insert_or_assign(rank, std::move(pending[i]));
      }
    }
    pending = std::move(still);
    if (fds[0].revents != 0) {
      BarrierSocket accepted(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
      if (accepted.fd() >= 0) pending.push_back(std::move(accepted));
      if (pending.size() > kMostSilent) pending.erase(pending.begin());
    }
  }
  return ranks;
}

BarrierSocket Reach(const CellFile& cell, SteadyTime until) {
  AddressList list;
  Resolve(cell.endpoint, list);
  const Greeting greeting{kMark, static_cast<uint32_t>(cell.rank),
                          static_cast<uint32_t>(cell.world_size), 0};
  for (;;) {
    for (const addrinfo* a = list.first; a != nullptr; a = a->ai_next) {
      BarrierSocket socket(::socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
      char go = 0;
      if (socket.fd() >= 0 && connect(socket.fd(), a->ai_addr, a->ai_addrlen) == 0 &&
          send(socket.fd(), greeting.data(), sizeof greeting, MSG_NOSIGNAL) == sizeof greeting) {
        pollfd fd{socket.fd(), POLLIN, 0};
        if (poll(&fd, 1, MillisecondsTo(until)) == 1 && ReadByte(socket.fd(), go) && go == kGo) {
          return socket;
        }
      }
    }
    if (MillisecondsTo(until) == 0) {
      throw std::runtime_error("rank 0 at " + cell.endpoint + " did not let this rank join");
    }
    poll(nullptr, 0, std::min(MillisecondsTo(until), 20));
  }
}

}  // namespace

struct TcpBarrier::Sockets {
  BarrierSocket listener;
  std::map<int, BarrierSocket> ranks;  // of rank 0: the others
  BarrierSocket root;                  // of the others: rank 0
};

TcpBarrier::TcpBarrier(std::unique_ptr<Sockets> sockets) : sockets_(std::move(sockets)) {}
TcpBarrier::~TcpBarrier() = default;

std::unique_ptr<TcpBarrier> TcpBarrier::Join(const CellFile& cell, double seconds) {
  const SteadyTime until =
      std::chrono::steady_clock::now() +
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds));
  auto sockets = std::make_unique<Sockets>();
  if (cell.rank == 0) {
    sockets->listener = Listen(cell);
    sockets->ranks = AwaitAll(sockets->listener.fd(), cell, until);
    for (auto& [rank, socket] : sockets->ranks) SendByte(socket.fd(), kGo);
  } else {
    sockets->root = Reach(cell, until);
  }
  return std::unique_ptr<TcpBarrier>(new TcpBarrier(std::move(sockets)));
}

void TcpBarrier::SendLine(const std::string& line) {
  const std::string text = line + "\n";
  if (sockets_->root.fd() >= 0) return SendAll(sockets_->root.fd(), text);
  for (auto& [rank, socket] : sockets_->ranks) SendAll(socket.fd(), text);
}

std::optional<std::string> TcpBarrier::ReceiveLine(int rank) {
  constexpr size_t kMostBytes = 1 << 20;
  int fd = sockets_->root.fd();
  if (fd < 0) {
    const auto found = sockets_->ranks.find(rank);
    if (found == sockets_->ranks.end()) return std::nullopt;
    fd = found->second.fd();
  }
  std::string line;
  for (char byte = 0; line.size() <= kMostBytes && ReadByte(fd, byte);) {
    if (byte == '\n') return line;
    line += byte;
  }
  return std::nullopt;
}

void TcpBarrier::Finish() {
  char byte = 0;
  if (sockets_->root.fd() >= 0) {
    SendByte(sockets_->root.fd(), kDone);
    if (!ReadByte(sockets_->root.fd(), byte) || byte != kDone) WaitForEver();
    return;
  }
  for (auto& [rank, socket] : sockets_->ranks) {
    if (!ReadByte(socket.fd(), byte) || byte != kDone) WaitForEver();
  }
  for (auto& [rank, socket] : sockets_->ranks) SendByte(socket.fd(), kDone);
}

}  // namespace assay
