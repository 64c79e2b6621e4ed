#include "common/net/transport.h"

#include <fmt/format.h>

namespace assay {

absl::Status CheckTransport(const Transport& transport, const Address& address) {
  const TlsFiles& tls = transport.tls;
  const bool any = !tls.ca.empty() || !tls.certificate.empty() || !tls.key.empty();
  const char* missing = tls.ca.empty()            ? "--tls-ca"
                        : tls.certificate.empty() ? "--tls-cert"
                        : tls.key.empty()         ? "--tls-key"
                                                  : nullptr;
  if (any && missing != nullptr) {
    return absl::InvalidArgumentError(
        fmt::format("{} is missing: TLS takes --tls-ca, --tls-cert and --tls-key together "
                    "(`assay certs` makes the files)",
                    missing));
  }
  if (any && transport.insecure) {
    return absl::InvalidArgumentError(
        "--insecure means plain text and the --tls files mean TLS: give one or the other");
  }
  if (any || transport.insecure || address.IsLocal()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("address '{}' is not on this machine alone, and plain text stays on it: give "
                  "--tls-ca, --tls-cert and --tls-key (`assay certs` makes the files), or "
                  "--insecure where everyone on that network may read, change and run everything",
                  address.ToString()));
}

}  // namespace assay
