// A whole coordinator in this process, over real gRPC on a Unix socket, with agents and users made
// by the test.
#include "coordinator/coordinator.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "assay/v1/control_service.grpc.pb.h"
#include "common/ids/ids.h"
#include "common/net/grpc_options.h"
#include "common/wire/wire.h"
#include "coordinator/store/sqlite_store.h"
#include "tests/unit/coordinator/api/fake_agent.h"
#include "tests/unit/coordinator/store/rows_for_tests.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kMatrix[] =
    "name: small\nselect: {cards: all, wait: 1s}\n"
    "axes:\n  model: [resnet50]\n  batch: [64]\nrepeat: 1\n";

class CoordinatorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = "/tmp/assay-test-XXXXXX";
    dir_ = mkdtemp(pattern.data());
    Open();
  }
  void TearDown() override {
    coordinator_.reset();
    std::filesystem::remove_all(dir_);
  }
  void Open() {
    const std::string file = dir_ + "/results.db";
    Coordinator::Parts parts{clock_,
                             SqliteStore::Open(file).value(),
                             SqliteReader::Open(file).value(),
                             {},
                             dir_,
                             [](std::string) {}};
    auto started =
        Coordinator::Start(std::move(parts), ParseAddress("unix:" + dir_ + "/c.sock").value());
    ASSERT_TRUE(started.ok()) << started.status();
    coordinator_ = *std::move(started);
    control_ = v1::Control::NewStub(Channel());
  }
  std::shared_ptr<grpc::Channel> Channel() {
    return MakeChannel(coordinator_->address(), ChannelUse::kUser).value();
  }

  // Writes rows while no coordinator holds the file.
  void Store(const Batch& batch) {
    coordinator_.reset();
    auto store = SqliteStore::Open(dir_ + "/results.db").value();
    ASSERT_TRUE(store->Commit(std::span(&batch, 1)).ok());
    store.reset();
    Open();
  }

  grpc::Status Submit(const std::string& yaml, v1::SubmitReply* reply) {
    grpc::ClientContext context;
    SetDeadline(context);
    v1::SubmitRequest request;
    request.set_request_id(NewUlid(clock_.WallNow()));
    request.set_matrix_yaml(yaml);
    request.set_file_name("m.yaml");
    return control_->Submit(&context, request, reply);
  }
  grpc::Status Results(const std::string& run, std::vector<Record>* records) {
    grpc::ClientContext context;
    SetDeadline(context);
    v1::GetResultsRequest request;
    request.set_run(run);
    auto reader = control_->GetResults(&context, request);
    v1::ResultPage page;
    while (reader->Read(&page)) {
      EXPECT_LT(page.ByteSizeLong(), static_cast<size_t>(kMaxMessageBytes));
      for (const v1::Record& record : page.records()) records->push_back(wire::FromProto(record));
    }
    return reader->Finish();
  }
  std::string Export(const std::string& run) {
    grpc::ClientContext context;
    SetDeadline(context);
    v1::ExportRequest request;
    request.set_run(run);
    auto reader = control_->Export(&context, request);
    std::string file;
    v1::ExportChunk chunk;
    while (reader->Read(&chunk)) file += chunk.data();
    const grpc::Status status = reader->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
    return file;
  }
  grpc::Status Merge(const std::string& file, v1::MergeReply* reply) {
    grpc::ClientContext context;
    SetDeadline(context);
    auto writer = control_->Merge(&context, reply);
    for (size_t at = 0; at < file.size(); at += 1000) {
      v1::ExportChunk chunk;
      chunk.set_data(file.substr(at, 1000));
      if (!writer->Write(chunk)) break;
    }
    writer->WritesDone();
    return writer->Finish();
  }
  // Every update of a run until its end.
  std::vector<v1::RunUpdate> WatchAll(const std::string& run) {
    grpc::ClientContext context;
    SetDeadline(context);
    v1::WatchRequest request;
    request.set_run(run);
    auto reader = control_->Watch(&context, request);
    std::vector<v1::RunUpdate> updates;
    v1::RunUpdate update;
    while (reader->Read(&update)) updates.push_back(update);
    const grpc::Status status = reader->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
    return updates;
  }

  SystemClock clock_;
  std::string dir_;
  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<v1::Control::Stub> control_;
};

TEST_F(CoordinatorTest, RunGoesFromSubmitOverPrepareReadyStartJoinedAndReportToItsResult) {
  FakeAgent agent(Channel());
  ASSERT_TRUE(agent.Write(FakeAgent::Hello("n1", NewUlid(clock_.WallNow()))));
  ASSERT_TRUE(agent.Read().has_welcome());
  v1::SubmitReply submitted;
  const grpc::Status status = Submit(kMatrix, &submitted);
  ASSERT_TRUE(status.ok()) << status.error_message();
  const std::string attempt = agent.RunOneCell("n1", "the log\n");
  const std::vector<v1::RunUpdate> updates = WatchAll(submitted.run());
  ASSERT_FALSE(updates.empty());
  EXPECT_TRUE(updates.back().final());
  EXPECT_EQ(updates.back().done(), 1u);

  std::vector<Record> records;
  ASSERT_TRUE(Results("last", &records).ok());
  ASSERT_THAT(records, SizeIs(1));
  EXPECT_EQ(records[0].Text(Field::kOutcome), "ok");
  EXPECT_EQ(records[0].Number(Field::kThroughput), 812.5);
  EXPECT_EQ(records[0].Text(Field::kAttempt), attempt);
  EXPECT_THAT(records[0].List(Field::kMarks), ::testing::Contains("simulated"));
  // Case 53: not a number is not known.
  EXPECT_FALSE(records[0].Has(Field::kStepP50Ms));
  EXPECT_TRUE(agent.Finish().ok());
}

TEST_F(CoordinatorTest, SubmitOfABadMatrixIsInvalidArgumentWithItsPosition) {
  v1::SubmitReply reply;
  const grpc::Status status = Submit("name: x\naxis:\n  model: [resnet50]\n", &reply);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("m.yaml:2:1"));
}

TEST_F(CoordinatorTest, UnknownRunIsNotFoundInEveryCall) {
  std::vector<Record> records;
  EXPECT_EQ(Results("01JZZ", &records).error_code(), grpc::StatusCode::NOT_FOUND);
  grpc::ClientContext cell_context, cancel_context, watch_context;
  v1::GetCellRequest cell;
  cell.set_run("last");
  v1::CellDetail detail;
  EXPECT_EQ(control_->GetCell(&cell_context, cell, &detail).error_code(),
            grpc::StatusCode::NOT_FOUND);
  v1::CancelRequest cancel;
  cancel.set_run("nope");
  v1::CancelReply cancelled;
  EXPECT_EQ(control_->Cancel(&cancel_context, cancel, &cancelled).error_code(),
            grpc::StatusCode::NOT_FOUND);
  v1::WatchRequest watch;
  watch.set_run("nope");
  v1::RunUpdate update;
  auto reader = control_->Watch(&watch_context, watch);
  EXPECT_FALSE(reader->Read(&update));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(CoordinatorTest, CancelledRunEndsWithoutAnAgent) {
  v1::SubmitReply submitted;
  ASSERT_TRUE(Submit(kMatrix, &submitted).ok());
  grpc::ClientContext context;
  SetDeadline(context);
  v1::CancelRequest request;
  request.set_run(submitted.run().substr(0, 20));
  v1::CancelReply reply;
  ASSERT_TRUE(control_->Cancel(&context, request, &reply).ok());
  EXPECT_EQ(reply.run(), submitted.run());
  EXPECT_TRUE(WatchAll(submitted.run()).back().final());
}

TEST_F(CoordinatorTest, ExportedRunIsMergedOnceHoweverOftenItComes) {
  const std::string attempt = NewUlid(clock_.WallNow());
  Batch batch = MakeBatch(kRunA, RunState::kDone);
  batch.cells[0].counted_attempt = batch.attempts[0].id = attempt;
  Store(batch);
  const std::string file = Export("last");
  v1::MergeReply same;
  ASSERT_TRUE(Merge(file, &same).ok());
  EXPECT_EQ(same.attempts_new(), 0u);
  EXPECT_EQ(same.attempts_known(), 1u);

  coordinator_.reset();
  for (const auto& entry : std::filesystem::directory_iterator(dir_)) {
    std::filesystem::remove_all(entry.path());
  }
  Open();
  v1::MergeReply first;
  const grpc::Status status = Merge(file, &first);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(first.attempts_new(), 1u);
  EXPECT_EQ(Export("last"), file);
}

TEST_F(CoordinatorTest, FileCutAnywhereIsRefusedWhole) {
  Batch batch = MakeBatch(kRunA, RunState::kDone);
  batch.cells[0].counted_attempt = batch.attempts[0].id = NewUlid(clock_.WallNow());
  Store(batch);
  const std::string file = Export(kRunA);
  for (size_t size = 0; size < file.size(); size += file.size() / 11) {
    v1::MergeReply reply;
    EXPECT_EQ(Merge(file.substr(0, size), &reply).error_code(), grpc::StatusCode::INVALID_ARGUMENT)
        << size;
  }
  std::string changed = file;
  changed.replace(changed.find("812.5"), 5, "999.5");
  v1::MergeReply reply;
  const grpc::Status status = Merge(changed, &reply);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("check sum"));
}

// Case 47: 20,000 cells and long error texts pass the message limits, in pages.
TEST_F(CoordinatorTest, TwentyThousandCellsWithLongErrorsAreReadInPages) {
  Batch batch = MakeBatch(kRunA, RunState::kDone);
  batch.cells.clear();
  batch.attempts.clear();
  const std::string text(100'000, 'e');
  // Under a sanitizer fewer, and as much text: more than one message takes still.
  const uint64_t cells = ASSAY_SANITIZED ? 2'000 : 20'000;
  for (uint64_t cell = 1; cell <= cells; ++cell) {
    CellRow row = EndedCell(MakeCell(kRunA, cell), Outcome::kFail, "");
    row.message = cell % (cells / 200) == 0 ? text : std::string(1'000, 'e');
    batch.cells.push_back(std::move(row));
  }
  Store(batch);
  std::vector<Record> records;
  const grpc::Status status = Results(kRunA, &records);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_THAT(records, SizeIs(cells));
  EXPECT_EQ(records.back().Integer(Field::kCell), cells);
}

TEST_F(CoordinatorTest, RunThatEndedInAnEarlierLifeIsWatchedToItsEndAtOnce) {
  Store(MakeBatch(kRunA, RunState::kDone));
  const std::vector<v1::RunUpdate> updates = WatchAll("last");
  ASSERT_THAT(updates, SizeIs(1));
  EXPECT_TRUE(updates[0].final());
  EXPECT_EQ(updates[0].state(), "done");
}

// A watcher that had left was kept, and served four times a second, until its run ended.
TEST_F(CoordinatorTest, WatcherThatLeavesIsForgottenWhileItsRunGoesOn) {
  v1::SubmitReply reply;
  ASSERT_TRUE(Submit(kMatrix, &reply).ok());
  {
    grpc::ClientContext context;
    SetDeadline(context);
    v1::WatchRequest request;
    request.set_run(reply.run());
    auto reader = control_->Watch(&context, request);
    v1::RunUpdate update;
    ASSERT_TRUE(reader->Read(&update));
    EXPECT_GE(coordinator_->control().calls(), 1);  // Submit's own may not have ended yet
    context.TryCancel();
    while (reader->Read(&update)) {
    }
    EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  const BootTime until = clock_.Now() + std::chrono::seconds(10);
  while (coordinator_->control().calls() > 0 && clock_.Now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(coordinator_->control().calls(), 0);
  EXPECT_TRUE(coordinator_->HasUnfinishedRuns());
}

TEST_F(CoordinatorTest, SessionThatBeginsWithoutHelloIsRefused) {
  FakeAgent agent(Channel());
  v1::AgentMessage heartbeat;
  heartbeat.mutable_heartbeat()->set_number(1);
  agent.Write(heartbeat);
  EXPECT_EQ(agent.Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

// Case 53: protobuf takes no text that is not UTF-8; the peer loses its session, nobody else
// anything.
TEST_F(CoordinatorTest, BrokenBytesInAMessageEndThatSessionOnly) {
  FakeAgent good(Channel());
  ASSERT_TRUE(good.Write(FakeAgent::Hello("good", NewUlid(clock_.WallNow()))));
  ASSERT_TRUE(good.Read().has_welcome());
  FakeAgent bad(Channel());
  v1::AgentMessage hello = FakeAgent::Hello("bad", NewUlid(clock_.WallNow()));
  hello.mutable_hello()->mutable_inventory()->set_cpu_model("\xFF");
  bad.Write(hello);
  bad.Finish();
  v1::AgentMessage heartbeat;
  heartbeat.mutable_heartbeat()->set_number(1);
  EXPECT_TRUE(good.Write(heartbeat));
  EXPECT_TRUE(good.Finish().ok());
}

TEST_F(CoordinatorTest, SecondHelloEndsTheSession) {
  FakeAgent agent(Channel());
  const v1::AgentMessage hello = FakeAgent::Hello("n1", NewUlid(clock_.WallNow()));
  agent.Write(hello);
  agent.Write(hello);
  EXPECT_EQ(agent.Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(CoordinatorTest, HugeInventoryIsCutAndTheAgentListIsAnswered) {
  FakeAgent agent(Channel());
  v1::AgentMessage hello = FakeAgent::Hello("n1", NewUlid(clock_.WallNow()));
  v1::NodeInventory* inventory = hello.mutable_hello()->mutable_inventory();
  const v1::Device device = inventory->devices(0);
  for (int i = 0; i < 20'000; ++i) *inventory->add_devices() = device;
  inventory->set_cpu_model(std::string(1 << 20, 'x'));
  ASSERT_TRUE(agent.Write(hello));
  agent.Read();  // Welcome or Refuse: either is an answer
  grpc::ClientContext context;
  SetDeadline(context);
  v1::ListAgentsReply reply;
  EXPECT_TRUE(control_->ListAgents(&context, {}, &reply).ok());
  for (const v1::AgentSummary& summary : reply.agents()) {
    EXPECT_LE(summary.inventory().devices_size(), static_cast<int>(wire::kMaxDevices));
  }
}

// Case 14: two nodes with one name.
TEST_F(CoordinatorTest, SecondMachineWithTheSameNameIsRefusedWithASentence) {
  FakeAgent first(Channel());
  ASSERT_TRUE(first.Write(FakeAgent::Hello("twin", NewUlid(clock_.WallNow()))));
  ASSERT_TRUE(first.Read().has_welcome());
  FakeAgent second(Channel());
  ASSERT_TRUE(second.Write(FakeAgent::Hello("twin", NewUlid(clock_.WallNow()))));
  const v1::CoordinatorMessage answer = second.Read();
  ASSERT_TRUE(answer.has_refuse()) << answer.ShortDebugString();
  EXPECT_EQ(answer.refuse().reason(), "duplicate_node");
  EXPECT_THAT(answer.refuse().message(), HasSubstr("twin"));
}

TEST_F(CoordinatorTest, SocketThatSomebodyListensOnIsLeftToHim) {
  Coordinator::Parts parts{clock_,
                           SqliteStore::Open(dir_ + "/other.db").value(),
                           SqliteReader::Open(dir_ + "/other.db").value(),
                           {},
                           dir_,
                           [](std::string) {}};
  const auto second = Coordinator::Start(std::move(parts), coordinator_->address());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(std::filesystem::exists(dir_ + "/c.sock"));
}

TEST_F(CoordinatorTest, PortInUseIsAlreadyExists) {
  const auto start = [&](const std::string& name, const std::string& address) {
    const std::string file = dir_ + "/" + name;
    Coordinator::Parts parts{clock_,
                             SqliteStore::Open(file).value(),
                             SqliteReader::Open(file).value(),
                             {},
                             dir_,
                             [](std::string) {}};
    return Coordinator::Start(std::move(parts), ParseAddress(address).value());
  };
  const auto first = start("a.db", "127.0.0.1:0");
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_GT((*first)->address().port, 0);
  const auto second = start("b.db", (*first)->address().ToString());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
}

}  // namespace
}  // namespace assay
