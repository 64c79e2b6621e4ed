// How GrpcFleet ends: an agent must neither leave gRPC's threads behind nor wait for ever for what
// nobody lets go of.
#include "agent/session/grpc_fleet.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "assay/v1/fleet_service.grpc.pb.h"
#include "common/net/grpc_options.h"

namespace assay {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A coordinator that welcomes and then says nothing more.
class SilentFleet final : public v1::Fleet::Service {
 public:
  grpc::Status Session(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<v1::CoordinatorMessage, v1::AgentMessage>* stream) override {
    v1::CoordinatorMessage welcome;
    welcome.mutable_welcome()->set_session_epoch(1);
    stream->Write(welcome);
    v1::AgentMessage message;
    while (stream->Read(&message)) {
    }
    return grpc::Status::OK;
  }
};

class Observer final : public FleetStreamObserver {
 public:
  void OnReceived(CoordinatorMessage) override { ++received; }
  void OnWritten() override {}
  void OnClosed(const std::string&) override { ++closed; }
  int received = 0;
  int closed = 0;
};

class GrpcFleetTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = "/tmp/assay-fleet-XXXXXX";
    dir_ = mkdtemp(pattern.data());
    const Address address = ParseAddress("unix:" + dir_ + "/c.sock").value();
    grpc::ServerBuilder builder;
    int port = 0;
    ASSERT_TRUE(ConfigureServer(builder, address, &port).ok());
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    loop_ = EventLoop::Create().value();
    dialer_ = MakeGrpcFleet(*loop_, address).value();
    stream_ = dialer_->Dial(observer_);
    ASSERT_TRUE(
        loop_->RunUntil([this] { return observer_.received > 0; }, BootClock::now() + seconds(30)));
  }
  void TearDown() override {
    stream_.reset();
    if (ended_.valid()) ended_.wait();
    dialer_.reset();
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
    server_.reset();
    std::filesystem::remove_all(dir_);
  }

  // On a thread of its own, so that a test can go on where it waits.
  void EndDialer() {
    ended_ =
        std::async(std::launch::async, [dialer = std::move(dialer_)]() mutable { dialer.reset(); });
  }

  std::string dir_;
  SilentFleet service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<FleetDialer> dialer_;
  Observer observer_;
  std::unique_ptr<FleetStream> stream_;
  std::future<void> ended_;
};

TEST_F(GrpcFleetTest, DialerWaitsForAStreamThatIsNotGivenUp) {
  EndDialer();
  EXPECT_EQ(ended_.wait_for(milliseconds(200)), std::future_status::timeout);
  stream_.reset();
  EXPECT_EQ(ended_.wait_for(seconds(30)), std::future_status::ready);
}

// The stream itself stays, as in a loop that has stopped with its last callbacks undone.
TEST_F(GrpcFleetTest, AStreamThatIsGivenUpHoldsNothing) {
  stream_->Detach();
  EndDialer();
  EXPECT_EQ(ended_.wait_for(seconds(30)), std::future_status::ready);
  EXPECT_FALSE(loop_->RunUntil([this] { return observer_.closed > 0; },
                               BootClock::now() + milliseconds(50)));
}

TEST_F(GrpcFleetTest, AStreamWhoseCoordinatorIsGoneHoldsNothingOnceItIsGivenUp) {
  server_->Shutdown(std::chrono::system_clock::now());
  // Nobody runs the loop any more: what is posted there stays.
  stream_->Detach();
  EndDialer();
  EXPECT_EQ(ended_.wait_for(seconds(30)), std::future_status::ready);
  EXPECT_TRUE(stream_->Write(Heartbeat{}));
}

}  // namespace
}  // namespace assay
