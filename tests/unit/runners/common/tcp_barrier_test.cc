#include "runners/common/tcp_barrier.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <string>
#include <vector>

namespace assay {
namespace {

CellFile Rank(int rank, const std::string& endpoint) {
  CellFile cell;
  cell.rank = rank;
  cell.world_size = 2;
  cell.endpoint = endpoint;
  return cell;
}

sockaddr_in Loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

// A port that was free a moment ago.
uint16_t FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof address;
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  close(fd);
  return ntohs(address.sin_port);
}

int ConnectWhenItListens(uint16_t port) {
  const sockaddr_in address = Loopback(port);
  for (int i = 0; i < 500; ++i) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
    close(fd);
    usleep(10'000);
  }
  return -1;
}

TEST(TcpBarrier, SilentStrangersTakeNeitherDescriptorsNorAPlace) {
  const uint16_t port = FreePort();
  const std::string endpoint = "127.0.0.1:" + std::to_string(port);
  auto root =
      std::async(std::launch::async, [&] { return TcpBarrier::Join(Rank(0, endpoint), 60); });
  std::vector<int> strangers;
  for (int i = 0; i < 400; ++i) {
    strangers.push_back(ConnectWhenItListens(port));
    ASSERT_GE(strangers.back(), 0);
  }
  char byte = 0;
  const timeval patience{20, 0};
  for (int i = 0; i < 100; ++i) {
    setsockopt(strangers[static_cast<size_t>(i)], SOL_SOCKET, SO_RCVTIMEO, &patience,
               sizeof patience);
  }
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(recv(strangers[static_cast<size_t>(i)], &byte, 1, 0), 0) << i;
  auto other = TcpBarrier::Join(Rank(1, endpoint), 60);
  auto first = root.get();
  other->SendLine("here");
  EXPECT_EQ(first->ReceiveLine(1), "here");
  for (const int fd : strangers) close(fd);
}

}  // namespace
}  // namespace assay
