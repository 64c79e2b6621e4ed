// `assay certs`: the certificates of a fleet (common/certs).
#include <fmt/core.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/fitted_table.h"
#include "cli/printable.h"
#include "common/certs/authority.h"
#include "common/status/status.h"
#include "common/text/shell_word.h"

namespace assay::cli {
namespace {

using What = CertsArguments::What;

CertificateTime Now(const CommandContext& context) {
  return std::chrono::floor<std::chrono::seconds>(context.clock.WallNow());
}

// The role of a user whose certificate is renewed without saying it.
absl::StatusOr<Role> RoleOf(const CertsArguments& certs, const std::string& dir) {
  if (certs.role.has_value()) return *certs.role;
  ASSAY_RETURN_IF_ERROR(CheckIdentityName(certs.name, "name"));
  ASSAY_ASSIGN_OR_RETURN(const Certificate old,
                         Certificate::Load(fmt::format("{}/users/{}.crt", dir, certs.name)));
  ASSAY_ASSIGN_OR_RETURN(const Identity identity, old.identity());
  return identity.role;
}

std::string WhatToCopy(const CertsArguments& certs, const std::string& dir,
                       const IssuedFiles& files) {
  const auto words = [&](const char* program) {
    return fmt::format(
        "Give it these files (or copies, the key readable by that account alone):\n"
        "  {} --tls-ca {} --tls-cert {} --tls-key {}\n",
        program, ShellWord(dir + "/ca.crt"), ShellWord(files.certificate), ShellWord(files.key));
  };
  switch (certs.what) {
    case What::kCoordinator:
      return "Copy ca.crt, coordinator.crt and coordinator.key to the coordinator's machine.\n" +
             words("assay-coordinator --listen 0.0.0.0:7070");
    case What::kAgent:
      return fmt::format("Copy ca.crt, {0}.crt and {0}.key to the node {0}.\n", certs.name) +
             words(
                 fmt::format("assay-agent --node {} --coordinator HOST:7070", certs.name).c_str());
    case What::kUser:
      return fmt::format("Hand ca.crt, {0}.crt and {0}.key to {0}.\n", certs.name) +
             words("assay agents --coordinator HOST:7070");
    default:
      return "Keep ca.key here and a copy in a safe place; ca.crt goes to every machine of the "
             "fleet.\nNext: assay certs coordinator --host NAME_OR_IP\n";
  }
}

absl::StatusOr<IssuedFiles> Make(const CommandContext& context, const std::string& dir) {
  const CertsArguments& certs = context.args.certs;
  if (certs.what == What::kInit) {
    return Authority::Create(dir, certs.name.empty() ? "Assay CA" : certs.name,
                             certs.days > 0 ? certs.days : kAuthorityDays, certs.renew,
                             Now(context));
  }
  CertificateRequest request;
  request.renew = certs.renew;
  request.hosts = certs.hosts;
  if (certs.days > 0) request.days = certs.days;
  request.identity.name = certs.what == What::kCoordinator ? "" : certs.name;
  request.identity.kind = certs.what == What::kCoordinator ? Identity::Kind::kCoordinator
                          : certs.what == What::kAgent     ? Identity::Kind::kAgent
                                                           : Identity::Kind::kUser;
  if (certs.what == What::kUser) {
    ASSAY_ASSIGN_OR_RETURN(request.identity.role, RoleOf(certs, dir));
  }
  ASSAY_ASSIGN_OR_RETURN(const Authority authority, Authority::Open(dir));
  return authority.Issue(request, Now(context));
}

std::string Hosts(const ListedCertificate& item) {
  std::string text;
  for (const std::string& host : item.hosts) text += (text.empty() ? "" : ", ") + host;
  return text;
}

int List(CommandContext& context, const std::string& dir) {
  const auto list = Authority::List(dir);
  if (!list.ok()) return FailCommand(context, list.status());
  const CertificateTime now = Now(context);
  nlohmann::json json = nlohmann::json::array();
  std::vector<FittedRow> rows;
  for (const ListedCertificate& item : *list) {
    const bool expired = item.readable && item.not_after < now;
    const std::string end = item.readable ? assay::TimeText(item.not_after) : "";
    rows.push_back({{item.what, Hosts(item), expired ? "expired " + end : end, item.path},
                    expired || !item.readable ? Color::kRed : Color::kNone});
    json.push_back({{"what", item.what},
                    {"hosts", item.hosts},
                    {"valid_until", end},
                    {"expired", expired},
                    {"file", item.path}});
  }
  if (context.args.format == Format::kJson) {
    context.output.Out(nlohmann::json{{"certificates", json}}.dump(
                           2, ' ', false, nlohmann::json::error_handler_t::replace) +
                       "\n");
    return kExitOk;
  }
  const std::vector<FittedColumn> columns = {{"for", Align::kLeft, 12, 0, ""},
                                             {"hosts", Align::kLeft, 12, 1, ""},
                                             {"valid until", Align::kLeft, 0, 0, ""},
                                             {"file", Align::kLeft, 12, 2, ""}};
  context.output.Out(
      RenderFitted(columns, rows, TableWidth(context.output.out_fd()), context.output.out_color()));
  return kExitOk;
}

}  // namespace

int CertsCommand(CommandContext& context) {
  const CertsArguments& certs = context.args.certs;
  const std::string dir = certs.dir.empty() ? context.state_dir + "/certs" : certs.dir;
  if (certs.what == What::kList) return List(context, dir);
  const auto files = Make(context, dir);
  if (!files.ok()) return FailCommand(context, files.status());
  context.output.Out(
      fmt::format("{}, valid until {}\n", files->certificate, assay::TimeText(files->not_after)));
  if (files->cut) {
    context.output.Warning(
        "it ends with the authority; `assay certs init --renew` gives the authority more time");
  }
  if (context.args.quiet) return kExitOk;
  context.output.Out(certs.renew
                         ? "The key is the same: copy the .crt over the old one. Running programs "
                           "take it within seconds, without a restart.\n"
                         : WhatToCopy(certs, dir, *files));
  return kExitOk;
}

}  // namespace assay::cli
