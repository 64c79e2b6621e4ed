#include "coordinator/session/peer.h"

#include <fmt/format.h>
#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/auth_context.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "common/certs/certificate.h"
#include "common/wire/wire.h"

namespace assay {
namespace {

// The one value of a property; empty where there is none, or several.
std::string Property(const grpc::AuthContext* context, const char* name) {
  if (context == nullptr || !context->IsPeerAuthenticated()) return "";
  const std::vector<grpc::string_ref> values = context->FindPropertyValues(name);
  return values.size() == 1 ? std::string(values[0].data(), values[0].size()) : "";
}

std::string RenewCommand(const Identity& who) {
  return who.kind == Identity::Kind::kAgent
             ? fmt::format("assay certs agent {} --renew", who.name)
             : fmt::format("assay certs user {} --role {} --renew", who.name, RoleName(who.role));
}

}  // namespace

Peer PeerReader::Of(const grpc::CallbackServerContext& context) const {
  Peer peer;
  peer.address = context.peer();
  peer.identity.kind = Identity::Kind::kOpen;
  if (!tls_) return peer;
  const auto shown = context.auth_context();
  const absl::StatusOr<Identity> identity =
      IdentityFromUri(Property(shown.get(), GRPC_PEER_URI_PROPERTY_NAME));
  peer.identity = identity.ok() ? *identity : Identity{};
  if (peer.identity.kind == Identity::Kind::kNobody) return peer;
  const absl::StatusOr<Certificate> certificate = Certificate::FromPem(
      Property(shown.get(), GRPC_X509_PEM_CERT_PROPERTY_NAME), "the peer's certificate");
  if (!certificate.ok()) {
    peer.identity = {};
    return peer;
  }
  // Another authority may mean "without an end" by the year 9999, which nanoseconds cannot hold.
  constexpr std::chrono::milliseconds kLongest = std::chrono::hours(24 * 36'500);
  peer.good_until =
      clock_->Now() + std::clamp<std::chrono::milliseconds>(
                          certificate->not_after() - clock_->WallNow(), -kLongest, kLongest);
  peer.when_ended = fmt::format("the certificate of {} expired at {}: renew it with `{}`",
                                peer.identity.ToString(), TimeText(certificate->not_after()),
                                RenewCommand(peer.identity));
  return peer;
}

absl::Status PeerReader::CheckGood(const Peer& peer) const {
  if (!peer.good_until.has_value() || clock_->Now() <= *peer.good_until) return absl::OkStatus();
  return absl::UnauthenticatedError(peer.when_ended);
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
