#include "coordinator/api/access.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "common/log/log.h"
#include "common/net/grpc_options.h"
#include "common/status/status.h"

namespace assay {

absl::Status Access::Refuse(const std::string& sentence) const {
  spdlog::warn("refused at {}: {}", peer_.address, sentence);
  return absl::PermissionDeniedError(sentence);
}

absl::Status Access::Check(Role needed) const {
  if (!good_.ok()) {
    spdlog::warn("refused at {}: {}", peer_.address, Message(good_));
    return good_;
  }
  const Identity& who = peer_.identity;
  if (who.May(needed)) return absl::OkStatus();
  if (who.kind == Identity::Kind::kUser) {
    return Refuse(fmt::format("{} may not {}: that needs the role {}", who.ToString(), action_,
                              RoleName(needed)));
  }
  return Refuse(
      fmt::format("{} may not {}: that needs a certificate by `assay certs user NAME --role {}`",
                  who.ToString(), action_, RoleName(needed)));
}

bool Access::Allow(Role needed, grpc::ServerUnaryReactor* call) const {
  const absl::Status status = Check(needed);
  if (!status.ok()) call->Finish(ToGrpcStatus(status));
  return status.ok();
}

absl::Status Access::CheckOwner(ResultReader& reader, const std::string& run) const {
  if (peer_.identity.May(Role::kAdmin)) return absl::OkStatus();
  ASSAY_ASSIGN_OR_RETURN(const RunRow row, reader.GetRun(run));
  if (!row.submitted_by.empty() && row.submitted_by == user()) return absl::OkStatus();
  return Refuse(fmt::format("{} may not {} run {} of {}: that needs the role admin",
                            peer_.identity.ToString(), action_, run,
                            row.submitted_by.empty() ? "an admin" : "user " + row.submitted_by));
}

absl::Status Access::CheckPriority(int64_t priority) const {
  if (priority <= 0 || peer_.identity.May(Role::kAdmin)) return absl::OkStatus();
  return Refuse(fmt::format("{} may not {} a run of priority {}: above 0 that needs the role admin",
                            peer_.identity.ToString(), action_, priority));
}

void Access::Log(const std::string& id, const absl::Status& status, const char* kind) const {
  const Identity& who = peer_.identity;
  const bool user = who.kind == Identity::Kind::kUser;
  spdlog::info("action={} {}={} user={} role={} address={} result={}", action_, kind, id,
               user ? who.name : "local", RoleName(user ? who.role : Role::kAdmin), peer_.address,
               status.ok() ? "ok" : Message(status));
}

}  // namespace assay
