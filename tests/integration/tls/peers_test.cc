// What a coordinator lets each certificate do, asked over raw gRPC: our own programs look at their
// certificates first and would never send these calls.
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "assay/v1/control_service.grpc.pb.h"
#include "assay/v1/fleet_service.grpc.pb.h"
#include "common/certs/authority.h"
#include "common/net/grpc_options.h"
#include "common/version.h"
#include "common/wire/wire.h"
#include "coordinator/coordinator.h"
#include "coordinator/store/sqlite_store.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using Kind = Identity::Kind;

class PeersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = "/tmp/assay-test-XXXXXX";
    dir_ = mkdtemp(pattern.data());
    const auto now = std::chrono::floor<std::chrono::seconds>(clock_.WallNow());
    // Old enough to have given a certificate of a day that is nearly over.
    const auto created = now - std::chrono::hours(25);
    ASSERT_TRUE(Authority::Create(dir_ + "/certs", "CA", 10, false, created).ok());
    const auto authority = Authority::Open(dir_ + "/certs");
    ASSERT_TRUE(authority.ok());
    for (const auto& [kind, name, role] :
         {std::tuple{Kind::kCoordinator, "", Role::kView},
          std::tuple{Kind::kAgent, "n1", Role::kView}, std::tuple{Kind::kUser, "vera", Role::kView},
          std::tuple{Kind::kUser, "ada", Role::kAdmin}}) {
      CertificateRequest request;
      request.identity = {kind, name, role};
      if (kind == Kind::kCoordinator) request.hosts = {"127.0.0.1"};
      request.days = 5;
      ASSERT_TRUE(authority->Issue(request, now).ok());
    }
    const std::string file = dir_ + "/results.db";
    Coordinator::Parts parts{clock_,
                             SqliteStore::Open(file).value(),
                             SqliteReader::Open(file).value(),
                             {},
                             dir_,
                             [](std::string) {},
                             With("coordinator")};
    auto started = Coordinator::Start(std::move(parts), ParseAddress("127.0.0.1:0").value());
    ASSERT_TRUE(started.ok()) << started.status();
    coordinator_ = *std::move(started);
  }
  void TearDown() override {
    coordinator_.reset();
    std::filesystem::remove_all(dir_);
  }

  Transport With(const std::string& stem) const {
    const std::string path = dir_ + "/certs/" + stem;
    return {{dir_ + "/certs/ca.crt", path + ".crt", path + ".key"}, false};
  }
  std::shared_ptr<grpc::Channel> Channel(const std::string& stem) const {
    return MakeChannel(coordinator_->address(), ChannelUse::kUser, With(stem)).value();
  }

  // An empty request to "/assay.v1.Control/X".
  grpc::Status Call(const std::string& stem, const std::string& method) const {
    grpc::GenericStub stub(Channel(stem));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(40));
    grpc::CompletionQueue queue;
    const grpc::Slice empty;
    const grpc::ByteBuffer request(&empty, 1);
    grpc::ByteBuffer reply;
    grpc::Status status;
    const auto call = stub.PrepareUnaryCall(&context, method, request, &queue);
    call->StartCall();
    call->Finish(&reply, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    return status;
  }

  grpc::Status Join(const std::string& stem, const std::vector<std::string>& nodes) const {
    const auto stub = v1::Fleet::NewStub(Channel(stem));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(40));
    const auto stream = stub->Session(&context);
    v1::CoordinatorMessage in;
    for (const std::string& node : nodes) {
      v1::AgentMessage out = HelloOf(node);
      if (&node != &nodes.front()) {
        const v1::NodeInventory inventory = out.hello().inventory();
        *out.mutable_inventory() = inventory;
      }
      if (!stream->Write(out)) break;
      if (&node == &nodes.front() && !stream->Read(&in)) break;
    }
    stream->WritesDone();
    while (stream->Read(&in)) {
    }
    return stream->Finish();
  }

  static v1::AgentMessage HelloOf(const std::string& node) {
    NodeInventory inventory;
    inventory.node = node;
    inventory.machine_id = "m";
    inventory.boot_id = "b";
    v1::AgentMessage hello;
    hello.mutable_hello()->set_protocol(kFleetProtocol);
    hello.mutable_hello()->set_instance("01JD0000000000000000000000");
    wire::ToProto(inventory, hello.mutable_hello()->mutable_inventory());
    return hello;
  }

  static std::vector<std::string> Methods() {
    std::vector<std::string> names;
    const auto* service =
        google::protobuf::DescriptorPool::generated_pool()->FindServiceByName("assay.v1.Control");
    for (int i = 0; service != nullptr && i < service->method_count(); ++i) {
      names.push_back("/assay.v1.Control/" + service->method(i)->name());
    }
    return names;
  }

  SystemClock clock_;
  std::string dir_;
  std::unique_ptr<Coordinator> coordinator_;
};

// Also of a call that was added since and forgot to ask.
TEST_F(PeersTest, AnAgentsCertificateMayNoCallOfUsers) {
  ASSERT_GE(Methods().size(), 11u);
  for (const std::string& method : Methods()) {
    const grpc::Status status = Call("agents/n1", method);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << method;
    EXPECT_THAT(status.error_message(), HasSubstr("the agent of n1 may not")) << method;
  }
}

TEST_F(PeersTest, AViewerChangesNothing) {
  for (const char* method : {"Submit", "Cancel", "Rerun", "Merge", "Drain"}) {
    const grpc::Status status = Call("users/vera", std::string("/assay.v1.Control/") + method);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << method;
    EXPECT_THAT(status.error_message(), HasSubstr("user vera (view) may not")) << method;
  }
  EXPECT_TRUE(Call("users/vera", "/assay.v1.Control/ListRuns").ok());
}

TEST_F(PeersTest, NoUserJoinsAsAnAgent) {
  const grpc::Status status = Join("users/ada", {"n1"});
  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(status.error_message(), HasSubstr("user ada (admin) may not join as an agent"));
}

TEST_F(PeersTest, AnAgentJoinsAsItsOwnNodeAlone) {
  EXPECT_TRUE(Join("agents/n1", {"n1"}).ok());
  const grpc::Status status = Join("agents/n1", {"n2"});
  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(status.error_message(), HasSubstr("the agent of n1 may not join as node 'n2'"));
}

TEST_F(PeersTest, AnAgentDoesNotBecomeAnotherNodeLater) {
  EXPECT_EQ(Join("agents/n1", {"n1", "n2"}).error_code(), grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(PeersTest, ACoordinatorsCertificateIsNoClients) {
  EXPECT_EQ(Call("coordinator", "/assay.v1.Control/ListRuns").error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

// TLS itself looks at a certificate when a connection begins, and never again.
TEST_F(PeersTest, AConnectionEndsWithItsCertificate) {
  constexpr std::chrono::seconds kGoodFor{10};
  const auto issued = std::chrono::floor<std::chrono::seconds>(clock_.WallNow()) + kGoodFor -
                      std::chrono::hours(24);
  const auto authority = Authority::Open(dir_ + "/certs");
  ASSERT_TRUE(authority.ok());
  for (const auto& [kind, name] : {std::pair{Kind::kAgent, "brief"}, {Kind::kUser, "brief"}}) {
    CertificateRequest request;
    request.identity = {kind, name, Role::kView};
    request.days = 1;
    ASSERT_TRUE(authority->Issue(request, issued).ok());
  }
  const auto user = v1::Control::NewStub(Channel("users/brief"));
  const auto list = [&] {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(40));
    v1::ListRunsReply reply;
    return user->ListRuns(&context, {}, &reply);
  };
  EXPECT_TRUE(list().ok());

  const auto agent = v1::Fleet::NewStub(Channel("agents/brief"));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(40));
  const auto stream = agent->Session(&context);
  ASSERT_TRUE(stream->Write(HelloOf("brief")));
  v1::CoordinatorMessage in;
  ASSERT_TRUE(stream->Read(&in));
  EXPECT_TRUE(in.has_welcome()) << in.ShortDebugString();
  v1::AgentMessage beat;
  while (stream->Write(beat)) {
    beat.mutable_heartbeat()->set_number(beat.heartbeat().number() + 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  while (stream->Read(&in)) {
  }
  const grpc::Status ended = stream->Finish();
  EXPECT_EQ(ended.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(ended.error_message(), HasSubstr("the certificate of the agent of brief expired at"));
  EXPECT_THAT(ended.error_message(), HasSubstr("assay certs agent brief --renew"));
  EXPECT_GE(clock_.WallNow(), issued + std::chrono::hours(24));
  const grpc::Status refused = list();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(refused.error_message(), HasSubstr("the certificate of user brief (view) expired"));
}

TEST_F(PeersTest, PlainTextGetsNoAnswer) {
  const auto channel = MakeChannel(coordinator_->address(), ChannelUse::kUser).value();
  const auto stub = v1::Control::NewStub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
  v1::Info info;
  EXPECT_FALSE(stub->GetInfo(&context, {}, &info).ok());
}

}  // namespace
}  // namespace assay
