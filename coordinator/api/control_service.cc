#include "coordinator/api/control_service.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <variant>

#include "common/ids/ids.h"
#include "common/matrix/matrix.h"
#include "common/net/grpc_options.h"
#include "common/status/status.h"
#include "common/version.h"
#include "common/wire/wire.h"
#include "coordinator/api/access.h"
#include "coordinator/api/run_answers.h"
#include "coordinator/api/unary_call.h"

namespace assay {
namespace {

constexpr size_t kMaxArgumentBytes = 256;

absl::Status CheckArgument(const std::string& text, const char* name) {
  if (text.size() <= kMaxArgumentBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{} has {} bytes; at most {} are taken", name, text.size(), kMaxArgumentBytes));
}

void FinishSubmit(grpc::ServerUnaryReactor* call, const Access& access, const Reply& reply,
                  v1::SubmitReply* response) {
  if (const auto* body = std::get_if<SubmitReply>(&reply.body); body != nullptr) {
    access.Log(body->run, reply.status);
    response->set_run(body->run);
    response->set_cells(body->cells);
    response->set_specs(body->specs);
    response->set_continued(body->continued);
    for (const std::string& warning : body->warnings) response->add_warnings(warning);
  }
  call->Finish(ToGrpcStatus(reply.status));
}

absl::StatusOr<event::SubmitRun> ParseSubmit(const v1::SubmitRequest& request) {
  ASSAY_RETURN_IF_ERROR(CheckArgument(request.request_id(), "request_id"));
  if (request.matrix_yaml().size() > kMaxMatrixBytes) {
    return absl::InvalidArgumentError(fmt::format("the matrix has {} bytes; at most {} are taken",
                                                  request.matrix_yaml().size(), kMaxMatrixBytes));
  }
  event::SubmitRun submit;
  submit.request_id = request.request_id();
  submit.file_name = wire::CleanText(request.file_name(), wire::kMaxSentenceBytes);
  submit.yaml = request.matrix_yaml();
  submit.digest = Sha256Hex(submit.yaml);
  submit.force_new = request.force_new();
  submit.labels = Labels(request.labels().begin(), request.labels().end());
  ASSAY_RETURN_IF_ERROR(CheckLabels(submit.labels));
  submit.slice = {request.slice(), request.slices(), request.slice_id()};
  ASSAY_RETURN_IF_ERROR(CheckSlice(submit.slice));
  MatrixOptions options;
  options.allow_many = request.allow_many();
  ASSAY_ASSIGN_OR_RETURN(submit.matrix, ParseMatrix(submit.yaml, submit.file_name, options));
  return submit;
}

// `run` is a full id.
absl::StatusOr<Event> RerunEvent(const std::string& run, bool failed_only,
                                 const std::string& request_id, ResultReader& reader,
                                 const Access& access) {
  ASSAY_RETURN_IF_ERROR(access.CheckOwner(reader, run));
  event::Rerun rerun;
  rerun.run = run;
  rerun.failed_only = failed_only;
  rerun.request_id = request_id;
  ASSAY_ASSIGN_OR_RETURN(RunSnapshot snapshot, reader.LoadRun(run));
  rerun.loaded = std::move(snapshot);
  if (failed_only) {
    ASSAY_ASSIGN_OR_RETURN(const std::vector<Spec> specs, reader.ListSpecs(run));
    ASSAY_ASSIGN_OR_RETURN(Comparands comparands,
                           ComparandsOf(reader, rerun.loaded->run, specs, nullptr));
    rerun.invalid = std::move(comparands.invalid);
  }
  return Event(std::move(rerun));
}

// An unfinished run goes on as it is; one that has ended opens its failed cells again.
absl::StatusOr<Event> ResumeEvent(event::SubmitRun submit, ResultReader& reader,
                                  const Access& access) {
  ASSAY_ASSIGN_OR_RETURN(const std::vector<RunOverview> runs, reader.ListRuns());
  const RunOverview* found = FindResumable(runs, submit.digest, submit.slice);
  if (found == nullptr) {
    return absl::NotFoundError(
        fmt::format("nothing to resume: no run of this matrix{} is unfinished or has cells that "
                    "failed or were cancelled; `assay run` without --resume starts one",
                    submit.slice.IsWhole() ? "" : " and slice"));
  }
  if (!IsEnded(found->run.state)) {
    submit.resumed = found->run.id;
    return Event(std::move(submit));
  }
  return RerunEvent(found->run.id, true, submit.request_id, reader, access);
}

// Of SubmitRun and Rerun.
void PostSubmit(StateLoop& loop, grpc::ServerUnaryReactor* call, const Access& access, Event event,
                v1::SubmitReply* response) {
  auto posted = std::make_shared<Event>(std::move(event));
  loop.Call(
      [posted](ReplyToken token) -> Event {
        if (auto* submit = std::get_if<event::SubmitRun>(posted.get())) submit->token = token;
        if (auto* rerun = std::get_if<event::Rerun>(posted.get())) rerun->token = token;
        return std::move(*posted);
      },
      [call, response, access](const Reply& reply) {
        FinishSubmit(call, access, reply, response);
      });
}

}  // namespace

grpc::ServerUnaryReactor* ControlService::GetInfo(grpc::CallbackServerContext* context,
                                                  const v1::GetInfoRequest*, v1::Info* info) {
  auto* call = new UnaryCall(*this);
  if (!Access(parts_.peers, *context, "info").Allow(Role::kView, call)) return call;
  info->set_version(kVersion);
  info->set_fleet_protocol(kFleetProtocol);
  info->set_result_schema(kResultSchema);
  info->set_rules_version(kRulesVersion);
  info->set_state_dir(wire::CleanText(parts_.state_dir, wire::kMaxSentenceBytes));
  info->set_pid(getpid());
  info->set_insecure(parts_.insecure);
  call->Finish(grpc::Status::OK);
  return call;
}

grpc::ServerUnaryReactor* ControlService::Submit(grpc::CallbackServerContext* context,
                                                 const v1::SubmitRequest* request,
                                                 v1::SubmitReply* response) {
  auto* call = new UnaryCall(*this);
  const Access access(parts_.peers, *context, "submit");
  if (!access.Allow(Role::kSubmit, call)) return call;
  parts_.work.Post([this, call, request, response, access] {
    absl::StatusOr<event::SubmitRun> parsed = ParseSubmit(*request);
    absl::Status status = parsed.status();
    if (status.ok()) status = access.CheckPriority(parsed->matrix.select.priority);
    if (!status.ok()) return call->Finish(ToGrpcStatus(status));
    for (const std::string& warning : parsed->matrix.warnings) {
      response->add_warnings(wire::CleanText(warning, wire::kMaxSentenceBytes));
    }
    parsed->user = access.user();
    absl::StatusOr<Event> event = request->resume()
                                      ? ResumeEvent(*std::move(parsed), parts_.reader, access)
                                      : absl::StatusOr<Event>(*std::move(parsed));
    if (!event.ok()) return call->Finish(ToGrpcStatus(event.status()));
    PostSubmit(parts_.loop, call, access, *std::move(event), response);
  });
  return call;
}

grpc::ServerUnaryReactor* ControlService::ListRuns(grpc::CallbackServerContext* context,
                                                   const v1::ListRunsRequest*,
                                                   v1::ListRunsReply* response) {
  auto* call = new UnaryCall(*this);
  if (!Access(parts_.peers, *context, "list runs").Allow(Role::kView, call)) return call;
  parts_.work.Post([this, call, response] {
    const absl::StatusOr<std::vector<RunOverview>> runs = parts_.reader.ListRuns();
    if (!runs.ok()) return call->Finish(ToGrpcStatus(runs.status()));
    for (const RunOverview& run : *runs) {
      FillSummary(run, response->add_runs());
      // 16 MiB hold some 60,000 of them; the newest come first.
      if (response->runs_size() == 20'000) break;
    }
    call->Finish(grpc::Status::OK);
  });
  return call;
}

grpc::ServerUnaryReactor* ControlService::GetCell(grpc::CallbackServerContext* context,
                                                  const v1::GetCellRequest* request,
                                                  v1::CellDetail* response) {
  auto* call = new UnaryCall(*this);
  if (!Access(parts_.peers, *context, "show a cell").Allow(Role::kView, call)) return call;
  const auto fill = [this, request, response]() -> absl::Status {
    ASSAY_ASSIGN_OR_RETURN(const std::string id, parts_.reader.ResolveRun(request->run()));
    ASSAY_ASSIGN_OR_RETURN(const RunRow run, parts_.reader.GetRun(id));
    ASSAY_ASSIGN_OR_RETURN(const CellResult cell, parts_.reader.GetCell(id, request->cell()));
    ASSAY_ASSIGN_OR_RETURN(const std::vector<Spec> specs, parts_.reader.ListSpecs(id));
    ASSAY_ASSIGN_OR_RETURN(const std::vector<AttemptRow> attempts,
                           parts_.reader.ListAttempts(id, request->cell()));
    if (cell.cell.spec_index >= specs.size()) {
      return absl::DataLossError(fmt::format("cell {} of run {} has no spec", request->cell(), id));
    }
    const bool drift = std::any_of(attempts.begin(), attempts.end(), [](const AttemptRow& each) {
      return each.record.Has(Field::kSentinelSeries);
    });
    ASSAY_ASSIGN_OR_RETURN(const Comparands comparands,
                           ComparandsOf(parts_.reader, run, specs, drift ? nullptr : &cell.cell));
    FillCell(run, specs[cell.cell.spec_index], cell, attempts, comparands, response);
    return absl::OkStatus();
  };
  parts_.work.Post([call, fill] { call->Finish(ToGrpcStatus(fill())); });
  return call;
}

grpc::ServerUnaryReactor* ControlService::Cancel(grpc::CallbackServerContext* context,
                                                 const v1::CancelRequest* request,
                                                 v1::CancelReply* response) {
  auto* call = new UnaryCall(*this);
  const Access access(parts_.peers, *context, "cancel");
  if (!access.Allow(Role::kSubmit, call)) return call;
  parts_.work.Post([this, call, request, response, access] {
    const absl::StatusOr<std::string> run = parts_.reader.ResolveRun(request->run());
    if (!run.ok()) return call->Finish(ToGrpcStatus(run.status()));
    const absl::Status owner = access.CheckOwner(parts_.reader, *run);
    if (!owner.ok()) return call->Finish(ToGrpcStatus(owner));
    parts_.loop.Call(
        [id = *run](ReplyToken token) -> Event {
          event::CancelRun cancel;
          cancel.token = token;
          cancel.run = id;
          return cancel;
        },
        [call, response, access, id = *run](const Reply& reply) {
          access.Log(id, reply.status);
          if (const auto* body = std::get_if<CancelReply>(&reply.body); body != nullptr) {
            response->set_run(body->run);
            response->set_state(std::string(RunStateName(body->state)));
          }
          call->Finish(ToGrpcStatus(reply.status));
        });
  });
  return call;
}

grpc::ServerUnaryReactor* ControlService::Rerun(grpc::CallbackServerContext* context,
                                                const v1::RerunRequest* request,
                                                v1::SubmitReply* response) {
  auto* call = new UnaryCall(*this);
  const Access access(parts_.peers, *context, "rerun");
  if (!access.Allow(Role::kSubmit, call)) return call;
  const auto load = [this, request, access]() -> absl::StatusOr<Event> {
    ASSAY_RETURN_IF_ERROR(CheckArgument(request->request_id(), "request_id"));
    ASSAY_ASSIGN_OR_RETURN(const std::string run, parts_.reader.ResolveRun(request->run()));
    return RerunEvent(run, request->failed_only(), request->request_id(), parts_.reader, access);
  };
  parts_.work.Post([this, call, load, response, access] {
    absl::StatusOr<Event> event = load();
    if (!event.ok()) return call->Finish(ToGrpcStatus(event.status()));
    PostSubmit(parts_.loop, call, access, *std::move(event), response);
  });
  return call;
}

grpc::ServerUnaryReactor* ControlService::ListAgents(grpc::CallbackServerContext* context,
                                                     const v1::ListAgentsRequest* request,
                                                     v1::ListAgentsReply* response) {
  auto* call = new UnaryCall(*this);
  if (!Access(parts_.peers, *context, "list agents").Allow(Role::kView, call)) return call;
  const bool taken = parts_.loop.Ask([call, request, response](const CoordinatorState& state) {
    FillAgents(state.Agents(), *request, static_cast<size_t>(kMessageBudgetBytes), response);
    call->Finish(grpc::Status::OK);
  });
  if (!taken) {
    call->Finish(
        grpc::Status(grpc::StatusCode::UNAVAILABLE, "the coordinator is shutting down; try again"));
  }
  return call;
}

grpc::ServerUnaryReactor* ControlService::Drain(grpc::CallbackServerContext* context,
                                                const v1::DrainRequest* request,
                                                v1::DrainReply* response) {
  auto* call = new UnaryCall(*this);
  const Access access(parts_.peers, *context, request->on() ? "drain" : "undrain");
  if (!access.Allow(Role::kAdmin, call)) return call;
  if (const absl::Status status = CheckArgument(request->node(), "node"); !status.ok()) {
    call->Finish(ToGrpcStatus(status));
    return call;
  }
  parts_.loop.Call([node = request->node(), on = request->on()](
                       ReplyToken token) -> Event { return event::DrainNode{token, node, on}; },
                   [call, response, access, node = request->node()](const Reply& reply) {
                     access.Log(wire::CleanText(node, wire::kMaxNameBytes), reply.status, "node");
                     if (const auto* body = std::get_if<DrainReply>(&reply.body); body != nullptr) {
                       FillDrain(*body, response);
                     }
                     call->Finish(ToGrpcStatus(reply.status));
                   });
  return call;
}

}  // namespace assay
