#include "fake_control.h"

#include <fmt/core.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>
#include <unistd.h>

#include <chrono>

#include "common/net/address.h"
#include "common/net/grpc_options.h"
#include "common/net/state_dir.h"
#include "common/version.h"

namespace assay::cli {
namespace {

void AddText(v1::Record* record, const std::string& name, const std::string& text) {
  v1::FieldValue* field = record->add_fields();
  field->set_name(name);
  field->set_text(text);
}

void AddInteger(v1::Record* record, const std::string& name, int64_t value) {
  v1::FieldValue* field = record->add_fields();
  field->set_name(name);
  field->set_integer(value);
}

void AddNumber(v1::Record* record, const std::string& name, double value) {
  v1::FieldValue* field = record->add_fields();
  field->set_name(name);
  field->set_number(value);
}

v1::Outcome ProtoOutcome(const std::string& name) {
  static const std::map<std::string, v1::Outcome> kNames = {
      {"ok", v1::OUTCOME_OK},     {"mem_limit", v1::OUTCOME_MEM_LIMIT},
      {"fail", v1::OUTCOME_FAIL}, {"unsupported", v1::OUTCOME_UNSUPPORTED},
      {"hung", v1::OUTCOME_HUNG}, {"timeout", v1::OUTCOME_TIMEOUT},
      {"lost", v1::OUTCOME_LOST}, {"cancelled", v1::OUTCOME_CANCELLED}};
  const auto found = kNames.find(name);
  return found == kNames.end() ? v1::OUTCOME_UNSPECIFIED : found->second;
}

bool IsFailureName(const std::string& name) {
  return name == "fail" || name == "hung" || name == "timeout" || name == "lost";
}

constexpr char kHeldRun[] = "01JHELD";

grpc::Status NoRun(const std::string& word) {
  return {grpc::StatusCode::NOT_FOUND, fmt::format("there is no run {}", word)};
}

}  // namespace

void FakeControl::Release() {
  MutexLock lock(mutex_);
  for (auto& [id, run] : runs_) run.released = true;
  changed_.NotifyAll();
}
int FakeControl::submits() const {
  MutexLock lock(mutex_);
  return submits_;
}
int FakeControl::cancels() const {
  MutexLock lock(mutex_);
  return cancels_;
}
int FakeControl::watches() const {
  MutexLock lock(mutex_);
  return watches_;
}
std::string FakeControl::merged() const {
  MutexLock lock(mutex_);
  return merged_;
}
void FakeControl::SetExported(std::vector<std::string> parts) {
  MutexLock lock(mutex_);
  script_.exported = std::move(parts);
}
void FakeControl::AddRun(const std::string& id, const std::string& name) {
  MutexLock lock(mutex_);
  runs_[id].name = name;
}

std::string FakeControl::Find(const std::string& word) const {
  if (word == "last") return runs_.empty() ? "" : runs_.rbegin()->first;
  std::string found;
  for (const auto& [id, run] : runs_) {
    if (!word.empty() && id.compare(0, word.size(), word) == 0) found = id;
  }
  return found;
}

bool FakeControl::Ended(const Run& run) const {
  if (run.released) return true;
  return run.cancelled ? !script_.hold_cancel : !script_.hold;
}

std::string FakeControl::OutcomeOf(const Run& run, size_t cell) const {
  // Held: the first cell is done, the others go on until they are cancelled.
  if (run.cancelled && cell > 0) return "cancelled";
  if (!Ended(run) && cell > 0) return "";
  return script_.outcomes[cell];
}

void FakeControl::FillRecord(const Run& run, size_t cell, v1::Record* record) const {
  const std::string outcome = OutcomeOf(run, cell);
  AddText(record, "key", fmt::format("{:016x}", cell));
  AddInteger(record, "index", static_cast<int64_t>(cell));
  AddInteger(record, "cell", static_cast<int64_t>(cell) + 1);
  AddInteger(record, "repeat", 1);
  AddText(record, "card", script_.card);
  AddText(record, "target", script_.card);
  AddText(record, "model", "resnet50");
  AddText(record, "mode", "train");
  AddText(record, "precision", "fp32");
  AddText(record, "batch", fmt::format("{}", 32 << cell));
  AddText(record, "lane", "eager");
  if (!outcome.empty()) AddText(record, "outcome", outcome);
  if (outcome == "ok") {
    AddNumber(record, "throughput", 800.5 + static_cast<double>(cell));
    AddText(record, "unit", "img/s");
    AddInteger(record, "steps", 100);
    // A peer of any quality: case 53.
    AddNumber(record, "step_p99_ms", std::numeric_limits<double>::quiet_NaN());
  } else if (!outcome.empty()) {
    AddText(record, "reason", outcome == "mem_limit" ? "out_of_memory" : "crash");
    AddText(record, "message", script_.message);
  }
}

v1::RunUpdate FakeControl::UpdateOf(const std::string& id) const {
  const Run& run = runs_.at(id);
  v1::RunUpdate update;
  update.set_run(id);
  update.set_name(run.name);
  const bool ended = Ended(run);
  update.set_state(ended ? (run.cancelled ? "cancelled" : "done")
                         : (run.cancelled ? "cancelling" : "running"));
  update.set_cells(script_.outcomes.size());
  for (size_t cell = 0; cell < script_.outcomes.size(); ++cell) {
    const std::string outcome = OutcomeOf(run, cell);
    if (!outcome.empty()) {
      ++(*update.mutable_outcomes())[outcome];
      update.set_done(update.done() + 1);
    } else if (update.active_size() == 0) {
      v1::CellProgress* active = update.add_active();
      active->set_cell(cell + 1);
      active->set_label(fmt::format("resnet50 train fp32 b{} eager {}", 32 << cell, script_.card));
      active->set_phase("measure");
      active->set_step(120);
      active->set_throughput(812.5);
      active->set_unit("img/s");
      active->set_seconds_left(20);
    }
  }
  if (script_.outcomes.empty()) update.set_waiting_for("no agent has connected within 60 s");
  update.set_final(ended);
  return update;
}

grpc::Status FakeControl::GetInfo(grpc::ServerContext*, const v1::GetInfoRequest*,
                                  v1::Info* reply) {
  MutexLock lock(mutex_);
  reply->set_version(script_.version.empty() ? kVersion : script_.version);
  reply->set_pid(getpid());
  return grpc::Status::OK;
}

grpc::Status FakeControl::Submit(grpc::ServerContext*, const v1::SubmitRequest* request,
                                 v1::SubmitReply* reply) {
  MutexLock lock(mutex_);
  ++submits_;
  if (!script_.refuse_submit.empty()) {
    return {grpc::StatusCode::INVALID_ARGUMENT, script_.refuse_submit};
  }
  std::string& run = requests_[request->request_id()];
  if (run.empty()) {
    for (const auto& [id, known] : runs_) {
      if (!request->force_new() && !Ended(known)) run = id;
    }
    reply->set_continued(!run.empty());
    if (run.empty()) run = fmt::format("01JAAAAAAAAAAAAAAAAAAAAA{:02}", runs_.size() + 1);
    runs_[run].name = "fake";
    runs_[run].labels = Labels(request->labels().begin(), request->labels().end());
  }
  reply->set_run(run);
  reply->set_cells(script_.outcomes.size());
  reply->set_specs(script_.outcomes.size());
  reply->add_warnings("a warning of the coordinator");
  return grpc::Status::OK;
}

grpc::Status FakeControl::Watch(grpc::ServerContext* context, const v1::WatchRequest* request,
                                grpc::ServerWriter<v1::RunUpdate>* writer) {
  std::string id;
  v1::RunUpdate update;
  bool breaks = false;
  {
    MutexLock lock(mutex_);
    ++watches_;
    id = Find(request->run());
    if (id.empty()) return NoRun(request->run());
    update = UpdateOf(id);
    breaks = script_.break_watches > 0 && script_.break_watches-- > 0;
  }
  if (breaks) {
    update.set_final(false);
    writer->Write(update);
    return {grpc::StatusCode::UNAVAILABLE, "shutting down"};
  }
  std::string state = update.state();
  writer->Write(update);
  while (!update.final() && !context->IsCancelled()) {
    {
      MutexLock lock(mutex_);
      changed_.WaitFor(mutex_, std::chrono::milliseconds(50));
      update = UpdateOf(id);
    }
    if (update.state() != state) writer->Write(update);
    state = update.state();
  }
  return grpc::Status::OK;
}

grpc::Status FakeControl::ListRuns(grpc::ServerContext*, const v1::ListRunsRequest*,
                                   v1::ListRunsReply* reply) {
  MutexLock lock(mutex_);
  for (auto it = runs_.rbegin(); it != runs_.rend(); ++it) {
    const v1::RunUpdate update = UpdateOf(it->first);
    v1::RunSummary* run = reply->add_runs();
    run->set_id(it->first);
    run->set_name(it->second.name);
    run->set_state(update.state());
    run->set_cells(update.cells());
    run->set_done(update.done());
    run->mutable_labels()->insert(it->second.labels.begin(), it->second.labels.end());
    for (const auto& [outcome, count] : update.outcomes()) {
      if (outcome == "ok") run->set_ok(count);
      if (IsFailureName(outcome)) run->set_failed(run->failed() + count);
    }
    run->set_started_at_unix_ms(1774747800250);  // 2026-03-29T01:30:00.250Z
  }
  return grpc::Status::OK;
}

grpc::Status FakeControl::GetResults(grpc::ServerContext*, const v1::GetResultsRequest* request,
                                     grpc::ServerWriter<v1::ResultPage>* writer) {
  MutexLock lock(mutex_);
  const std::string id = Find(request->run());
  if (id.empty()) return NoRun(request->run());
  for (size_t cell = 0; cell < script_.outcomes.size(); ++cell) {
    v1::ResultPage page;
    FillRecord(runs_.at(id), cell, page.add_records());
    writer->Write(page);
  }
  return grpc::Status::OK;
}

grpc::Status FakeControl::GetCell(grpc::ServerContext*, const v1::GetCellRequest* request,
                                  v1::CellDetail* reply) {
  MutexLock lock(mutex_);
  const std::string id = Find(request->run());
  if (id.empty()) return NoRun(request->run());
  if (request->cell() < 1 || request->cell() > script_.outcomes.size()) {
    return {grpc::StatusCode::NOT_FOUND, fmt::format("there is no cell {}", request->cell())};
  }
  reply->set_run(id);
  reply->set_cell(request->cell());
  FillRecord(runs_.at(id), request->cell() - 1, reply->mutable_record());
  v1::AttemptDetail* attempt = reply->add_attempts();
  attempt->set_attempt("01JBBBBBBBBBBBBBBBBBBBBBBB");
  attempt->set_number(1);
  attempt->set_node("node-1");
  attempt->set_counted(true);
  attempt->set_outcome(ProtoOutcome(OutcomeOf(runs_.at(id), request->cell() - 1)));
  attempt->set_log_tail(script_.log_tail);
  attempt->set_cell_file(script_.cell_file);
  attempt->set_runner(script_.runner);
  attempt->add_gpu_uuids("GPU-1");
  return grpc::Status::OK;
}

grpc::Status FakeControl::Cancel(grpc::ServerContext*, const v1::CancelRequest* request,
                                 v1::CancelReply* reply) {
  MutexLock lock(mutex_);
  ++cancels_;
  const std::string id = Find(request->run());
  if (id.empty()) return NoRun(request->run());
  if (!Ended(runs_[id])) runs_[id].cancelled = true;
  reply->set_run(id);
  reply->set_state(UpdateOf(id).state());
  changed_.NotifyAll();
  return grpc::Status::OK;
}

grpc::Status FakeControl::Rerun(grpc::ServerContext*, const v1::RerunRequest* request,
                                v1::SubmitReply* reply) {
  MutexLock lock(mutex_);
  const std::string id = Find(request->run());
  if (id.empty()) return NoRun(request->run());
  reply->set_run(id);
  reply->set_cells(script_.outcomes.size());
  reply->set_continued(true);
  return grpc::Status::OK;
}

std::string FakeControl::AgentState(bool* held) {
  *held = script_.held > 0 && script_.held-- > 0;
  return !draining_ ? "up" : *held ? "draining" : "drained";
}

grpc::Status FakeControl::Drain(grpc::ServerContext*, const v1::DrainRequest* request,
                                v1::DrainReply* reply) {
  MutexLock lock(mutex_);
  if (request->node() != "node-1") return {grpc::StatusCode::NOT_FOUND, "there is no node"};
  draining_ = request->on();
  bool held = false;
  reply->set_node(request->node());
  reply->set_state(AgentState(&held));
  if (held) reply->add_held()->set_run(kHeldRun);
  return grpc::Status::OK;
}

grpc::Status FakeControl::ListAgents(grpc::ServerContext*, const v1::ListAgentsRequest* request,
                                     v1::ListAgentsReply* reply) {
  MutexLock lock(mutex_);
  if (!script_.agents) return grpc::Status::OK;
  // Before the others by name, each on a page of its own.
  if (request->node().empty() && pages_ < script_.agent_pages) {
    if (request->after() != (pages_ == 0 ? "" : fmt::format("a-{:04}", pages_))) {
      return {grpc::StatusCode::INVALID_ARGUMENT, "another page than the next"};
    }
    ++pages_;
    reply->add_agents()->mutable_inventory()->set_node(
        script_.same_page ? "a-0001" : fmt::format("a-{:04}", pages_));
    reply->set_more(true);
    return grpc::Status::OK;
  }
  v1::AgentSummary* agent = reply->add_agents();
  bool held = false;
  // The call that is made before a drain asks of all nodes.
  agent->set_state(request->node().empty() && !draining_ ? "up" : AgentState(&held));
  agent->set_draining(draining_);
  if (held) agent->add_held()->set_run(kHeldRun);
  agent->set_last_seen_unix_ms(1774747800250);
  agent->add_cards(script_.card);
  v1::NodeInventory* node = agent->mutable_inventory();
  node->set_node("node-1");
  v1::Device* device = node->add_devices();
  device->set_uuid("GPU-1");
  device->set_kind("gpu");
  device->set_raw_name(script_.card);
  device->set_memory_total_bytes(uint64_t{24} << 30);
  device->set_usable(true);
  v1::Stack* stack = node->add_stacks();
  stack->set_name("simulate-1");
  stack->set_runner("assay-simulate");
  stack->set_simulated(true);
  return grpc::Status::OK;
}

grpc::Status FakeControl::Export(grpc::ServerContext*, const v1::ExportRequest* request,
                                 grpc::ServerWriter<v1::ExportChunk>* writer) {
  MutexLock lock(mutex_);
  const std::string id = Find(request->run());
  if (id.empty()) return NoRun(request->run());
  for (const std::string& part : script_.exported) {
    v1::ExportChunk chunk;
    chunk.set_data(part);
    writer->Write(chunk);
  }
  return grpc::Status::OK;
}

grpc::Status FakeControl::Merge(grpc::ServerContext*, grpc::ServerReader<v1::ExportChunk>* reader,
                                v1::MergeReply* reply) {
  std::string data;
  v1::ExportChunk chunk;
  while (reader->Read(&chunk)) data += chunk.data();
  if (data.find("broken") != std::string::npos) {
    return {grpc::StatusCode::INVALID_ARGUMENT, "it ends in the middle of a record"};
  }
  MutexLock lock(mutex_);
  merged_ += data;
  reply->add_runs("01JAAAAAAAAAAAAAAAAAAAAAAA");
  reply->set_attempts_new(2);
  reply->set_attempts_known(1);
  return grpc::Status::OK;
}

FakeServer::FakeServer(const std::string& state_dir, FakeScript script)
    : state_dir_(state_dir),
      address_("unix:" + state_dir + "/c.sock"),
      control_(std::move(script)) {
  grpc::ServerBuilder builder;
  int port = 0;
  const auto address = ParseAddress(address_);
  if (!address.ok() || !ConfigureServer(builder, *address, &port).ok()) return;
  builder.RegisterService(&control_);
  server_ = builder.BuildAndStart();
  if (server_ != nullptr) (void)WriteEndpoint(state_dir_, {address_, getpid(), kVersion});
}

FakeServer::~FakeServer() {
  RemoveEndpoint(state_dir_, getpid());
  if (server_ != nullptr) {
    server_->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(200));
    server_->Wait();
  }
}

}  // namespace assay::cli
