#include "coordinator/session/peer.h"

#include <fmt/format.h>
#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/auth_context.h>

#include <memory>
#include <vector>

#include "common/wire/wire.h"

namespace assay {
namespace {

Identity IdentityOf(const grpc::AuthContext* context) {
  if (context == nullptr || !context->IsPeerAuthenticated()) return {};
  const std::vector<grpc::string_ref> uris =
      context->FindPropertyValues(GRPC_PEER_URI_PROPERTY_NAME);
  if (uris.size() != 1) return {};
  const absl::StatusOr<Identity> identity =
      IdentityFromUri(std::string_view(uris[0].data(), uris[0].size()));
  return identity.ok() ? *identity : Identity{};
}

}  // namespace

Peer PeerReader::Of(const grpc::CallbackServerContext& context) const {
  Peer peer;
  peer.address = context.peer();
  peer.identity.kind = Identity::Kind::kOpen;
  if (tls_) peer.identity = IdentityOf(context.auth_context().get());
  return peer;
}

absl::Status CheckIsAgent(const Identity& who) {
  if (who.kind == Identity::Kind::kAgent || who.kind == Identity::Kind::kOpen) {
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError(
      fmt::format("{} may not join as an agent: that needs a certificate by `assay certs agent "
                  "NODE`",
                  who.ToString()));
}

absl::Status CheckAgentNode(const Identity& who, std::string_view node) {
  if (who.kind != Identity::Kind::kAgent || who.name == node) return absl::OkStatus();
  const std::string shown = wire::CleanText(std::string(node), 80);
  return absl::PermissionDeniedError(
      fmt::format("the agent of {} may not join as node '{}': its certificate is for {} alone; "
                  "start it with --node {}, or make one with `assay certs agent {}`",
                  who.name, shown, who.name, who.name, shown));
}

}  // namespace assay
