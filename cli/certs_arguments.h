// Arguments of `assay certs`.
//
// Thread rule: one owner.
#ifndef ASSAY_CLI_CERTS_ARGUMENTS_H_
#define ASSAY_CLI_CERTS_ARGUMENTS_H_

#include <optional>
#include <string>
#include <vector>

#include "common/net/identity.h"

namespace CLI {
class App;
}

namespace assay::cli {

struct CertsArguments {
  enum class What { kInit, kCoordinator, kAgent, kUser, kList };
  What what = What::kList;
  std::string dir;                 // empty: `certs` of the state directory
  std::string name;                // of the authority, node or user
  std::vector<std::string> hosts;  // coordinator
  std::string role_name;           // user; as typed
  std::optional<Role> role;        // of role_name
  int days = 0;                    // 0: the default
  bool renew = false;

  // Set by CLI11, one of them.
  bool init = false;
  bool coordinator = false;
  bool agent = false;
  bool user = false;
};

extern const char kCertsFooter[];

// Adds the commands below `certs`; gives the one that lists. `to` is written while words are
// parsed.
CLI::App* AddCertsOptions(CLI::App& certs, CertsArguments& to);

// What CLI11 does not check. One sentence, or empty.
std::string TakeCerts(CertsArguments& certs);

}  // namespace assay::cli

#endif  // ASSAY_CLI_CERTS_ARGUMENTS_H_
