#include "common/ids/ids.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>

#include "common/status/status.h"

namespace assay {
namespace {

constexpr std::string_view kAlphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

using DigestContext = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;

DigestContext NewSha256() {
  DigestContext context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr);
  return context;
}

std::string FinishHex(EVP_MD_CTX* context) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  EVP_DigestFinal_ex(context, digest.data(), &size);
  std::string hex;
  for (unsigned int i = 0; i < size; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

}  // namespace

std::string NewUlid(WallTime wall) {
  std::array<uint8_t, 16> bytes{};
  // Before 1970 there is no such time; as a large number it would sort behind every other id.
  constexpr int64_t kLatest = (int64_t{1} << 48) - 1;
  auto ms = static_cast<uint64_t>(std::clamp<int64_t>(wall.time_since_epoch().count(), 0, kLatest));
  for (int i = 5; i >= 0; --i, ms >>= 8) bytes[i] = static_cast<uint8_t>(ms);
  size_t filled = 6;
  while (filled < bytes.size()) {
    const ssize_t got = getrandom(bytes.data() + filled, bytes.size() - filled, 0);
    if (got > 0) filled += static_cast<size_t>(got);
  }
  // 128 bits in 26 digits of 5 bits: the first digit holds the top 3.
  unsigned __int128 value = 0;
  for (const uint8_t byte : bytes) value = (value << 8) | byte;
  std::string text(26, '0');
  for (int i = 25; i >= 0; --i, value >>= 5) text[i] = kAlphabet[static_cast<size_t>(value & 31)];
  return text;
}

bool IsUlid(std::string_view text) {
  return text.size() == 26 && text[0] <= '7' &&
         text.find_first_not_of(kAlphabet) == std::string_view::npos;
}

bool IsSafeId(std::string_view id) {
  return !id.empty() && id.size() <= 64 && std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' ||
           c == '_';
  });
}

std::string Sha256Hex(std::string_view bytes) {
  const DigestContext context = NewSha256();
  EVP_DigestUpdate(context.get(), bytes.data(), bytes.size());
  return FinishHex(context.get());
}

absl::StatusOr<std::string> Sha256HexOfFile(const std::string& path) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rbe"), &std::fclose);
  if (file == nullptr) return ErrnoStatus(errno, fmt::format("cannot read '{}'", path));
  const DigestContext context = NewSha256();
  std::array<char, 65536> buffer{};
  size_t got = 0;
  while ((got = std::fread(buffer.data(), 1, buffer.size(), file.get())) > 0) {
    EVP_DigestUpdate(context.get(), buffer.data(), got);
  }
  if (std::ferror(file.get()) != 0) return ErrnoStatus(EIO, fmt::format("cannot read '{}'", path));
  return FinishHex(context.get());
}

}  // namespace assay
