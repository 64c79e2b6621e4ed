// Identity: who is at the other end of a connection, and what that one may do.
//
// It stands in the peer's certificate as one URI of its subject alternative names:
//   assay://coordinator   assay://agent/NODE   assay://user/NAME/ROLE
// A URI and not the subject's OU or CN: it is typed, so that no name can be taken for a role; TLS
// libraries hand it over as it is (gRPC as `peer_uri`); and a CA that signs for others copies
// subjects from requests more easily than alternative names.
//
// Thread rule: plain values, any thread.
#ifndef ASSAY_COMMON_NET_IDENTITY_H_
#define ASSAY_COMMON_NET_IDENTITY_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace assay {

// Each may do what the ones before it may.
enum class Role {
  kView,    // reads
  kSubmit,  // also submits runs, cancels and reruns its own
  kAdmin,   // also cancels and reruns those of others, merges, drains
};

std::string_view RoleName(Role role);  // view, submit, admin
// InvalidArgument with the three names.
absl::StatusOr<Role> RoleFromName(std::string_view name);

struct Identity {
  enum class Kind {
    kNobody,       // over TLS, without a certificate that says who
    kOpen,         // plain text: this machine's user, or anyone where --insecure allows it
    kCoordinator,  // by certificate, as the next two
    kAgent,
    kUser,
  };
  Kind kind = Kind::kNobody;
  std::string name;         // kAgent: the node; kUser: the user
  Role role = Role::kView;  // kUser

  // "assay://agent/n1"; kCoordinator, kAgent and kUser only.
  std::string Uri() const;
  // For sentences and logs: "user alice (submit)", "the agent of n1", "a coordinator",
  // "the local user", "nobody".
  std::string ToString() const;

  // What a call may use: users by their role, and whoever came in plain text.
  bool May(Role needed) const {
    return kind == Kind::kOpen || (kind == Kind::kUser && role >= needed);
  }

  friend bool operator==(const Identity&, const Identity&) = default;
};

// Of a certificate's URI. InvalidArgument for anything else than the three forms.
absl::StatusOr<Identity> IdentityFromUri(std::string_view uri);

// Names become file names and parts of a URI: letters, digits, '.', '_', '-', at most 64, and
// neither '.' nor '-' first. InvalidArgument names `what`.
absl::Status CheckIdentityName(std::string_view name, std::string_view what);

}  // namespace assay

#endif  // ASSAY_COMMON_NET_IDENTITY_H_
