#include "common/net/identity.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/status/status.h"

namespace assay {
namespace {

constexpr std::string_view kScheme = "assay://";
constexpr size_t kMostNameBytes = 64;

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

std::string PlainAscii(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 80)) out += c >= 0x20 && c < 0x7f ? c : '?';
  return out;
}

absl::Status NoIdentity(std::string_view uri) {
  return absl::InvalidArgumentError(
      fmt::format("'{}' is no identity of Assay (assay://coordinator, assay://agent/NODE or "
                  "assay://user/NAME/ROLE)",
                  PlainAscii(uri)));
}

}  // namespace

std::string_view RoleName(Role role) {
  switch (role) {
    case Role::kView:
      return "view";
    case Role::kSubmit:
      return "submit";
    case Role::kAdmin:
      return "admin";
  }
  return "view";
}

absl::StatusOr<Role> RoleFromName(std::string_view name) {
  for (const Role role : {Role::kView, Role::kSubmit, Role::kAdmin}) {
    if (name == RoleName(role)) return role;
  }
  return absl::InvalidArgumentError(
      fmt::format("'{}' is no role: take view, submit or admin", PlainAscii(name)));
}

std::string Identity::Uri() const {
  switch (kind) {
    case Kind::kCoordinator:
      return fmt::format("{}coordinator", kScheme);
    case Kind::kAgent:
      return fmt::format("{}agent/{}", kScheme, name);
    case Kind::kUser:
      return fmt::format("{}user/{}/{}", kScheme, name, RoleName(role));
    case Kind::kNobody:
    case Kind::kOpen:
      break;
  }
  return "";
}

std::string Identity::ToString() const {
  switch (kind) {
    case Kind::kNobody:
      return "nobody";
    case Kind::kOpen:
      return "the local user";
    case Kind::kCoordinator:
      return "a coordinator";
    case Kind::kAgent:
      return fmt::format("the agent of {}", name);
    case Kind::kUser:
      return fmt::format("user {} ({})", name, RoleName(role));
  }
  return "nobody";
}

absl::StatusOr<Identity> IdentityFromUri(std::string_view uri) {
  if (!uri.starts_with(kScheme)) return NoIdentity(uri);
  std::string_view rest = uri.substr(kScheme.size());
  Identity identity;
  if (rest == "coordinator") {
    identity.kind = Identity::Kind::kCoordinator;
    return identity;
  }
  if (rest.starts_with("agent/")) {
    identity.kind = Identity::Kind::kAgent;
    identity.name = std::string(rest.substr(6));
  } else if (rest.starts_with("user/")) {
    rest.remove_prefix(5);
    const size_t slash = rest.find('/');
    if (slash == std::string_view::npos) return NoIdentity(uri);
    const absl::StatusOr<Role> role = RoleFromName(rest.substr(slash + 1));
    if (!role.ok()) return NoIdentity(uri);
    identity.kind = Identity::Kind::kUser;
    identity.name = std::string(rest.substr(0, slash));
    identity.role = *role;
  }
  if (!CheckIdentityName(identity.name, "name").ok()) return NoIdentity(uri);
  return identity;
}

absl::Status CheckIdentityName(std::string_view name, std::string_view what) {
  const bool good = !name.empty() && name.size() <= kMostNameBytes && name[0] != '.' &&
                    name[0] != '-' && std::all_of(name.begin(), name.end(), IsNameCharacter);
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{} '{}' cannot be used: take letters, digits, '.', '_' and '-', at most {}, "
                  "a letter or digit first",
                  what, PlainAscii(name), kMostNameBytes));
}

}  // namespace assay
