#include "common/net/address.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <charconv>

namespace assay {
namespace {

// The text as it can be quoted in a sentence: printable ASCII, at most 120 characters.
std::string Quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text.substr(0, 120)) out += c >= 0x20 && c < 0x7f ? c : '?';
  if (text.size() > 120) out += "...";
  return out + "'";
}

absl::Status Bad(std::string_view text, std::string_view why) {
  return absl::InvalidArgumentError(
      fmt::format("address {} {}; write unix:/path, host:port or [ipv6]:port", Quoted(text), why));
}

bool IsIpv6Literal(const std::string& host) {
  in6_addr address;
  return inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

absl::StatusOr<Address> ParseUnix(std::string_view text, std::string_view path) {
  if (path.empty() || path.front() != '/') return Bad(text, "has no absolute path");
  if (path.size() > kMaxUnixPathBytes) {
    return Bad(text, fmt::format("has a path of {} bytes, and a Unix socket takes {}", path.size(),
                                 kMaxUnixPathBytes));
  }
  Address address;
  address.kind = Address::Kind::kUnix;
  address.path = std::string(path);
  return address;
}

}  // namespace

std::string Address::ToString() const {
  if (kind == Kind::kUnix) return "unix:" + path;
  if (host.find(':') != std::string::npos) return fmt::format("[{}]:{}", host, port);
  return fmt::format("{}:{}", host, port);
}

bool Address::IsLocal() const {
  if (kind == Kind::kUnix || host == "localhost") return true;
  in_addr v4;
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6;
  return inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

absl::StatusOr<Address> ParseAddress(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) <= 0x20 || c == 0x7f) {
      return Bad(text, "has a blank or control character");
    }
  }
  if (text.starts_with("unix:")) return ParseUnix(text, text.substr(5));

  std::string_view host;
  std::string_view port;
  if (text.starts_with("[")) {
    const size_t close = text.find("]:");
    if (close == std::string_view::npos) return Bad(text, "has no ']:port'");
    host = text.substr(1, close - 1);
    port = text.substr(close + 2);
    if (!IsIpv6Literal(std::string(host))) return Bad(text, "has no IPv6 address in its brackets");
  } else {
    const size_t colon = text.rfind(':');
    if (colon == std::string_view::npos) return Bad(text, "has no port");
    host = text.substr(0, colon);
    port = text.substr(colon + 1);
    if (host.find(':') != std::string_view::npos)
      return Bad(text, "has an IPv6 address without []");
    if (host.find_first_of("/\\") != std::string_view::npos) return Bad(text, "has no host name");
  }
  if (host.empty() || host.size() > 253) return Bad(text, "has no host name");
  Address address;
  address.host = std::string(host);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (port.empty() || error != std::errc() || end != port.data() + port.size()) {
    return Bad(text, "has a port that is not a number from 0 to 65535");
  }
  return address;
}

}  // namespace assay
