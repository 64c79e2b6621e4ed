#include "cli/certs_arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "common/certs/authority.h"
#include "common/status/status.h"

namespace assay::cli {

const char kCertsFooter[] =
    R"(The authority is a folder (default: certs of the state directory); keep it on one machine. Each
command says which files to copy where. A renewed certificate keeps its key, its name and its role,
and is taken by running programs without a restart.

Examples:
  assay certs init
  assay certs coordinator --host gpu.example.com --host 10.1.2.3
  assay certs agent node7
  assay certs user alice --role submit
  assay certs agent node7 --renew
  assay certs list)";

CLI::App* AddCertsOptions(CLI::App& certs, CertsArguments& to) {
  certs.require_subcommand(1, 1);
  const auto add = [&](const char* name, const char* doc, bool* flag) {
    CLI::App* sub = certs.add_subcommand(name, doc);
    sub->add_option("--dir", to.dir, "Folder of the authority")->type_name("DIR");
    if (flag == nullptr) return sub;
    sub->callback([flag] { *flag = true; });
    sub->add_option("--days", to.days, "How long it is valid")
        ->check(CLI::Range(1, kMostCertificateDays))
        ->type_name("N");
    sub->add_flag("--renew", to.renew, "A new validity for the one that is there");
    return sub;
  };
  add("init", "Make the authority that signs the others", &to.init)
      ->add_option("--name", to.name, "Name of the authority")
      ->type_name("CA");
  add("coordinator", "Make the coordinator's certificate", &to.coordinator)
      ->add_option("--host", to.hosts, "Name or address by which it is reached, once for each")
      ->type_name("NAME_OR_IP")
      ->allow_extra_args(false);
  add("agent", "Make the certificate of one node", &to.agent)
      ->add_option("NODE", to.name, "Name of the node, as --node of its agent")
      ->required()
      ->type_name("");
  CLI::App* user = add("user", "Make the certificate of a user", &to.user);
  user->add_option("NAME", to.name, "Name of the user")->required()->type_name("");
  user->add_option("--role", to.role_name,
                   "view: reads; submit: also runs, cancels and reruns own; admin: everything")
      ->type_name("view|submit|admin");
  return add("list", "List the certificates and their ends", nullptr);
}

std::string TakeCerts(CertsArguments& certs) {
  using What = CertsArguments::What;
  certs.what = certs.init          ? What::kInit
               : certs.coordinator ? What::kCoordinator
               : certs.agent       ? What::kAgent
               : certs.user        ? What::kUser
                                   : What::kList;
  if (!certs.role_name.empty()) {
    const absl::StatusOr<Role> role = RoleFromName(certs.role_name);
    if (!role.ok()) return Message(role.status());
    certs.role = *role;
  }
  if (certs.what == What::kUser && !certs.role.has_value() && !certs.renew) {
    return "say what the user may do: --role view, submit or admin";
  }
  return "";
}

}  // namespace assay::cli
