#include "cli/grpc_control.h"

#include <fmt/core.h>
#include <grpcpp/client_context.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <deque>
#include <thread>
#include <utility>

#include "assay/v1/control_service.grpc.pb.h"
#include "common/certs/tls_check.h"
#include "common/certs/tls_probe.h"
#include "common/net/address.h"
#include "common/net/grpc_options.h"
#include "common/status/status.h"
#include "common/sync/mutex.h"
#include "common/wire/wire.h"

namespace assay::cli {
namespace {

using std::chrono::seconds;

constexpr seconds kInfoLimit{5};
constexpr seconds kCallLimit{30};
constexpr seconds kSubmitLimit{120};    // a matrix of 100,000 specs is written before the answer
constexpr seconds kResultsLimit{120};   // 100,000 records
constexpr seconds kDoctorLimit{130};    // the coordinator gives the agent 120 s
constexpr seconds kTransferLimit{600};  // an export of a whole fleet's month

// An answer is a list of things that end up in memory; no honest coordinator sends more.
constexpr size_t kMaxRecords = 2'000'000;

CountByOutcome FromProto(const google::protobuf::Map<std::string, uint64_t>& counts) {
  CountByOutcome out;
  for (const auto& [name, count] : counts) {
    if (const auto outcome = OutcomeFromName(name)) out[*outcome] += count;
  }
  return out;
}

template <class T>
std::vector<std::string> Texts(const T& list) {
  return std::vector<std::string>(list.begin(), list.end());
}

RunUpdate FromProto(const v1::RunUpdate& in) {
  RunUpdate out;
  out.run = in.run();
  out.name = in.name();
  out.state = in.state();
  out.cells = in.cells();
  out.done = in.done();
  out.outcomes = FromProto(in.outcomes());
  for (const auto& a : in.active()) {
    out.active.push_back({a.cell(), a.label(), a.node(), a.phase(), a.step(), a.throughput(),
                          a.unit(), a.seconds_left(), a.seconds_running(), a.attempt_number()});
  }
  for (const auto& e : in.ended()) {
    out.ended.push_back({e.cell(), e.label(), wire::FromProto(e.outcome()), e.reason(), e.message(),
                         e.throughput(), e.unit()});
  }
  out.seconds_left = in.seconds_left();
  out.waiting_for = in.waiting_for();
  out.final = in.final();
  return out;
}

RunSummary FromProto(const v1::RunSummary& in) {
  RunSummary out;
  out.id = in.id();
  out.name = in.name();
  out.state = in.state();
  out.cells = in.cells();
  out.done = in.done();
  out.ok = in.ok();
  out.failed = in.failed();
  out.started_at_unix_ms = in.started_at_unix_ms();
  out.slices = in.slices();
  out.slices_here.assign(in.slices_here().begin(), in.slices_here().end());
  out.labels = Labels(in.labels().begin(), in.labels().end());
  out.outcomes = FromProto(in.outcomes());
  return out;
}

AttemptDetail FromProto(const v1::AttemptDetail& in) {
  AttemptDetail out;
  out.attempt = in.attempt();
  out.number = in.number();
  out.node = in.node();
  out.state = in.state();
  out.outcome = wire::FromProto(in.outcome());
  out.reason = in.reason();
  out.message = in.message();
  out.counted = in.counted();
  out.started_at_unix_ms = in.started_at_unix_ms();
  out.log_tail = in.log_tail();
  out.record = wire::FromProto(in.record());
  out.cell_file = in.cell_file();
  out.runner = in.runner();
  out.gpu_uuids = Texts(in.gpu_uuids());
  return out;
}

SubmitResult FromProto(const v1::SubmitReply& in) {
  return {in.run(), in.cells(), in.specs(), in.continued(), Texts(in.warnings())};
}

template <class T>
std::vector<HeldCell> HeldCells(const T& list) {
  std::vector<HeldCell> cells;
  for (const v1::HeldCell& held : list) {
    cells.push_back({held.attempt(), held.run(), held.cell(), held.label()});
  }
  return cells;
}

AgentSummary FromProto(const v1::AgentSummary& in) {
  AgentSummary out;
  out.inventory = wire::FromProto(in.inventory());
  out.state = in.state();
  out.address = in.address();
  out.last_seen_unix_ms = in.last_seen_unix_ms();
  out.cards = Texts(in.cards());
  out.draining = in.draining();
  out.held = HeldCells(in.held());
  // A coordinator of the version before names the attempts alone.
  if (out.held.empty()) {
    for (const std::string& attempt : in.held_attempts()) out.held.push_back({attempt, "", 0, ""});
  }
  return out;
}

// Reads the stream on a thread of its own and hands updates over through an eventfd, so that the
// command can wait for an update, a Ctrl-C and the time of the next redraw in one poll.
class GrpcRunWatch final : public RunWatch {
 public:
  GrpcRunWatch(v1::Control::Stub& stub, const std::string& run)
      : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    v1::WatchRequest request;
    request.set_run(run);
    reader_ = stub.Watch(&context_, request);
    thread_ = std::thread([this] { Read(); });
  }

  ~GrpcRunWatch() override {
    context_.TryCancel();
    thread_.join();
    if (fd_ >= 0) close(fd_);
  }

  int ready_fd() const override { return fd_; }

  std::optional<RunUpdate> Take() override {
    MutexLock lock(mutex_);
    uint64_t ignored;
    if (!ended_) (void)!read(fd_, &ignored, sizeof ignored);
    if (updates_.empty()) return std::nullopt;
    RunUpdate update = std::move(updates_.front());
    updates_.pop_front();
    if (!updates_.empty()) Wake();
    return update;
  }

  std::optional<absl::Status> Ended() const override {
    MutexLock lock(mutex_);
    return updates_.empty() ? ended_ : std::nullopt;
  }

 private:
  void Wake() const {
    const uint64_t one = 1;
    (void)!write(fd_, &one, sizeof one);
  }

  void Read() {
    v1::RunUpdate update;
    while (reader_->Read(&update)) {
      MutexLock lock(mutex_);
      updates_.push_back(FromProto(update));
      Wake();
    }
    const absl::Status status = FromGrpcStatus(reader_->Finish());
    MutexLock lock(mutex_);
    ended_ = status;
    Wake();
  }

  const int fd_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::RunUpdate>> reader_;
  std::thread thread_;
  mutable Mutex mutex_;
  std::deque<RunUpdate> updates_ ASSAY_GUARDED_BY(mutex_);
  std::optional<absl::Status> ended_ ASSAY_GUARDED_BY(mutex_);
};

class GrpcControl final : public Control {
 public:
  GrpcControl(std::shared_ptr<grpc::Channel> channel, Address address, Transport transport)
      : stub_(v1::Control::NewStub(std::move(channel))),
        address_(std::move(address)),
        transport_(std::move(transport)) {}

  absl::StatusOr<CoordinatorInfo> GetInfo() override {
    v1::Info info;
    const absl::Status status =
        Call(&v1::Control::Stub::GetInfo, v1::GetInfoRequest(), &info, kInfoLimit);
    if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) {
      ASSAY_RETURN_IF_ERROR(ExplainConnection(address_, transport_, Identity::Kind::kUser));
    }
    ASSAY_RETURN_IF_ERROR(status);
    return CoordinatorInfo{info.version(),       info.fleet_protocol(), info.result_schema(),
                           info.rules_version(), info.state_dir(),      info.pid(),
                           info.insecure()};
  }

  absl::StatusOr<SubmitResult> Submit(const Submission& submission) override {
    v1::SubmitRequest request;
    request.set_request_id(submission.request_id);
    request.set_matrix_yaml(submission.matrix_yaml);
    request.set_file_name(wire::CleanText(submission.file_name, wire::kMaxNameBytes));
    request.set_allow_many(submission.allow_many);
    request.set_force_new(submission.force_new);
    request.mutable_labels()->insert(submission.labels.begin(), submission.labels.end());
    request.set_slice(submission.slice.index);
    request.set_slices(submission.slice.count);
    request.set_slice_id(submission.slice.id);
    request.set_resume(submission.resume);
    v1::SubmitReply reply;
    ASSAY_RETURN_IF_ERROR(Call(&v1::Control::Stub::Submit, request, &reply, kSubmitLimit));
    return FromProto(reply);
  }

  std::unique_ptr<RunWatch> Watch(const std::string& run) override {
    return std::make_unique<GrpcRunWatch>(*stub_, run);
  }

  absl::StatusOr<std::vector<RunSummary>> ListRuns() override {
    v1::ListRunsReply reply;
    ASSAY_RETURN_IF_ERROR(
        Call(&v1::Control::Stub::ListRuns, v1::ListRunsRequest(), &reply, kCallLimit));
    std::vector<RunSummary> runs;
    for (const auto& run : reply.runs()) runs.push_back(FromProto(run));
    return runs;
  }

  absl::StatusOr<std::string> EachResult(const std::string& run, const RecordSink& sink) override {
    v1::GetResultsRequest request;
    request.set_run(run);
    grpc::ClientContext context;
    Limit(context, kResultsLimit);
    const auto reader = stub_->GetResults(&context, request);
    size_t records = 0;
    std::string baseline;
    v1::ResultPage page;
    while (reader->Read(&page)) {
      if (baseline.empty()) baseline = page.baseline();
      for (const auto& record : page.records()) sink(wire::FromProto(record));
      records += static_cast<size_t>(page.records_size());
      if (records > kMaxRecords) {
        context.TryCancel();
        return absl::ResourceExhaustedError("the coordinator sent more than 2,000,000 results");
      }
    }
    ASSAY_RETURN_IF_ERROR(FromGrpcStatus(reader->Finish()));
    return baseline;
  }

  absl::StatusOr<CellDetail> GetCell(const std::string& run, uint64_t cell) override {
    v1::GetCellRequest request;
    request.set_run(run);
    request.set_cell(cell);
    v1::CellDetail reply;
    ASSAY_RETURN_IF_ERROR(Call(&v1::Control::Stub::GetCell, request, &reply, kCallLimit));
    CellDetail detail;
    detail.run = reply.run();
    detail.cell = reply.cell();
    detail.spec = wire::FromProto(reply.spec());
    detail.target = reply.target();
    detail.repeat = reply.repeat();
    detail.record = wire::FromProto(reply.record());
    for (const auto& attempt : reply.attempts()) detail.attempts.push_back(FromProto(attempt));
    return detail;
  }

  absl::StatusOr<CancelResult> Cancel(const std::string& run) override {
    v1::CancelRequest request;
    request.set_run(run);
    v1::CancelReply reply;
    ASSAY_RETURN_IF_ERROR(Call(&v1::Control::Stub::Cancel, request, &reply, kCallLimit));
    return CancelResult{reply.run(), reply.state()};
  }

  absl::StatusOr<SubmitResult> RerunFailed(const std::string& run,
                                           const std::string& request_id) override {
    v1::RerunRequest request;
    request.set_run(run);
    request.set_failed_only(true);
    request.set_request_id(request_id);
    v1::SubmitReply reply;
    ASSAY_RETURN_IF_ERROR(Call(&v1::Control::Stub::Rerun, request, &reply, kSubmitLimit));
    return FromProto(reply);
  }

  absl::StatusOr<std::vector<AgentSummary>> ListAgents(const std::string& node) override {
    v1::ListAgentsRequest request;
    request.set_node(node);
    std::vector<AgentSummary> agents;
    while (true) {
      v1::ListAgentsReply page;
      ASSAY_RETURN_IF_ERROR(Call(&v1::Control::Stub::ListAgents, request, &page, kCallLimit));
      for (const auto& agent : page.agents()) agents.push_back(FromProto(agent));
      if (!page.more()) return agents;
      const std::string last =
          page.agents_size() > 0 ? page.agents().rbegin()->inventory().node() : "";
      if (last <= request.after()) {
        return absl::InternalError("the coordinator sent a list of agents that does not end");
      }
      request.set_after(last);
    }
  }

  absl::StatusOr<DrainResult> Drain(const std::string& node, bool on) override {
    v1::DrainRequest request;
    request.set_node(node);
    request.set_on(on);
    v1::DrainReply reply;
    ASSAY_RETURN_IF_ERROR(Call(&v1::Control::Stub::Drain, request, &reply, kCallLimit));
    return DrainResult{reply.node(), reply.state(), HeldCells(reply.held())};
  }

  absl::StatusOr<DoctorReport> Doctor(const std::string& node) override {
    v1::DoctorRequest request;
    request.set_node(wire::CleanText(node, wire::kMaxNameBytes));
    v1::DoctorReply reply;
    const absl::Status status = Call(&v1::Control::Stub::Doctor, request, &reply, kDoctorLimit);
    // gRPC's word for a call that an older coordinator does not have is empty.
    if (absl::IsUnimplemented(status) && status.message().empty()) {
      return absl::UnimplementedError(
          "this coordinator is older than this command and cannot ask an agent; log in to the node "
          "and type `assay doctor`");
    }
    ASSAY_RETURN_IF_ERROR(status);
    return wire::FromProto(reply.report());
  }

  absl::Status Export(const std::string& run, const ChunkSink& sink) override {
    v1::ExportRequest request;
    request.set_run(run);
    grpc::ClientContext context;
    Limit(context, kTransferLimit);
    const auto reader = stub_->Export(&context, request);
    v1::ExportChunk chunk;
    while (reader->Read(&chunk)) {
      if (absl::Status status = sink(chunk.data()); !status.ok()) {
        context.TryCancel();
        return status;
      }
    }
    return FromGrpcStatus(reader->Finish());
  }

  absl::StatusOr<MergeResult> Merge(const ChunkSource& source) override {
    grpc::ClientContext context;
    Limit(context, kTransferLimit);
    v1::MergeReply reply;
    const auto writer = stub_->Merge(&context, &reply);
    while (true) {
      absl::StatusOr<std::string> data = source();
      if (!data.ok()) {
        context.TryCancel();
        return data.status();
      }
      if (data->empty()) break;
      v1::ExportChunk chunk;
      chunk.set_data(std::move(*data));
      // False: the coordinator has already answered, most likely with an error that Finish() tells.
      if (!writer->Write(chunk)) break;
    }
    writer->WritesDone();
    ASSAY_RETURN_IF_ERROR(FromGrpcStatus(writer->Finish()));
    return MergeResult{Texts(reply.runs()), reply.attempts_new(), reply.attempts_known()};
  }

 private:
  static void Limit(grpc::ClientContext& context, seconds limit) {
    context.set_deadline(std::chrono::system_clock::now() + limit);
  }

  template <class Request, class Reply>
  absl::Status Call(grpc::Status (v1::Control::Stub::*method)(grpc::ClientContext*, const Request&,
                                                              Reply*),
                    const Request& request, Reply* reply, seconds limit) {
    grpc::ClientContext context;
    Limit(context, limit);
    const grpc::Status status = (*stub_.*method)(&context, request, reply);
    if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
      return absl::DeadlineExceededError(
          fmt::format("the coordinator did not answer within {} s", limit.count()));
    }
    return FromGrpcStatus(status);
  }

  std::unique_ptr<v1::Control::Stub> stub_;
  const Address address_;
  const Transport transport_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Control>> MakeGrpcControl(const std::string& address,
                                                         const Transport& transport) {
  ASSAY_ASSIGN_OR_RETURN(Address parsed, ParseAddress(address));
  ASSAY_RETURN_IF_ERROR(CheckTransport(transport, parsed));
  if (transport.UsesTls(parsed)) {
    const auto now = std::chrono::floor<seconds>(std::chrono::system_clock::now());
    const auto report = CheckTlsFiles(transport.tls, Identity::Kind::kUser, now);
    if (!report.ok()) return absl::FailedPreconditionError(Message(report.status()));
  }
  ASSAY_ASSIGN_OR_RETURN(auto channel, MakeChannel(parsed, ChannelUse::kUser, transport));
  return std::unique_ptr<Control>(
      new GrpcControl(std::move(channel), std::move(parsed), transport));
}

}  // namespace assay::cli
