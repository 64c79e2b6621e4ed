// An agent's session over real gRPC, written by hand: for tests of a whole coordinator.
#ifndef ASSAY_TESTS_UNIT_COORDINATOR_API_FAKE_AGENT_H_
#define ASSAY_TESTS_UNIT_COORDINATOR_API_FAKE_AGENT_H_

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <memory>
#include <string>

#include "assay/v1/fleet_service.grpc.pb.h"
#include "common/wire/wire.h"

namespace assay {

// Ends the test's calls long before CTest would, where something hangs.
inline void SetDeadline(grpc::ClientContext& context) {
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(40));
}

// One session of a node with one simulated GPU, by hand.
class FakeAgent {
 public:
  explicit FakeAgent(const std::shared_ptr<grpc::Channel>& channel)
      : stub_(v1::Fleet::NewStub(channel)) {
    SetDeadline(context_);
    stream_ = stub_->Session(&context_);
  }

  static v1::AgentMessage Hello(const std::string& node, const std::string& instance) {
    NodeInventory inventory;
    inventory.node = node;
    inventory.machine_id = "machine-" + instance;
    inventory.boot_id = "boot-" + instance;
    Device device;
    device.uuid = "GPU-" + node;
    device.raw_name = "NVIDIA GeForce RTX 3090";
    device.memory_total_bytes = uint64_t{24} << 30;
    device.cc_major = 8;
    device.cc_minor = 6;
    device.simulated = true;
    inventory.devices = {device};
    Stack stack;
    stack.name = "simulated-1";
    stack.runner = "assay-simulate";
    stack.models = {"resnet50"};
    stack.modes = {"train", "infer"};
    stack.precisions = {"fp32", "tf32", "amp-fp16", "amp-bf16"};
    stack.lanes = {"eager"};
    stack.layouts = {"channels-last"};
    stack.device_kinds = {"gpu", "cpu"};
    stack.simulated = true;
    inventory.stacks = {stack};
    v1::AgentMessage message;
    message.mutable_hello()->set_protocol(1);
    message.mutable_hello()->set_instance(instance);
    wire::ToProto(inventory, message.mutable_hello()->mutable_inventory());
    return message;
  }

  bool Write(const v1::AgentMessage& message) { return stream_->Write(message); }
  // The next message that is none of an acknowledged heartbeat.
  v1::CoordinatorMessage Read() {
    v1::CoordinatorMessage message;
    do {
      message.Clear();
    } while (stream_->Read(&message) && message.has_heartbeat_ack());
    return message;
  }
  grpc::Status Finish() {
    stream_->WritesDone();
    v1::CoordinatorMessage message;
    while (stream_->Read(&message)) {
    }
    return stream_->Finish();
  }

  // Answers one offer as a runner that measured would. Returns the attempt.
  std::string RunOneCell(const std::string& node, const std::string& log = "") {
    const v1::CoordinatorMessage prepare = Read();
    EXPECT_TRUE(prepare.has_prepare()) << prepare.ShortDebugString();
    const std::string attempt = prepare.prepare().attempt();
    v1::AgentMessage ready;
    ready.mutable_ready()->set_attempt(attempt);
    ready.mutable_ready()->set_endpoint("127.0.0.1:1");
    Write(ready);
    const v1::CoordinatorMessage start = Read();
    EXPECT_TRUE(start.has_start()) << start.ShortDebugString();
    v1::AgentMessage joined;
    joined.mutable_joined()->set_attempt(attempt);
    joined.mutable_joined()->add_ranks(0);
    Write(joined);
    v1::AgentMessage report;
    v1::AttemptReport* body = report.mutable_report();
    body->set_attempt(attempt);
    body->set_run(prepare.prepare().run());
    body->set_cell(prepare.prepare().cell());
    body->set_node(node);
    v1::RankReport* rank = body->add_ranks();
    rank->set_gpu_uuid("GPU-" + node);
    rank->set_outcome(v1::OUTCOME_OK);
    rank->set_joined(true);
    rank->set_log_tail(log);
    const auto add = [&](const char* name) {
      v1::FieldValue* field = rank->add_fields();
      field->set_name(name);
      return field;
    };
    add("throughput")->set_number(812.5);
    add("unit")->set_text("img/s");
    add("steps")->set_integer(100);
    add("device_steps")->set_integer(100);
    add("samples")->set_integer(6400);
    add("seconds")->set_number(6400 / 812.5);
    add("world_size")->set_integer(1);
    add("no_such_field")->set_text("dropped");
    add("step_p50_ms")->set_number(std::numeric_limits<double>::quiet_NaN());
    Write(report);
    const v1::CoordinatorMessage ack = Read();
    EXPECT_TRUE(ack.has_report_ack()) << ack.ShortDebugString();
    return attempt;
  }

 private:
  std::unique_ptr<v1::Fleet::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::AgentMessage, v1::CoordinatorMessage>> stream_;
};

}  // namespace assay

#endif  // ASSAY_TESTS_UNIT_COORDINATOR_API_FAKE_AGENT_H_
