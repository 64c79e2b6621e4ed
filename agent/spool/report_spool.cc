#include "agent/spool/report_spool.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>

#include "common/ids/ids.h"
#include "common/log/log.h"
#include "common/net/state_dir.h"
#include "common/status/status.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr char kSuffix[] = ".pb";
constexpr char kBroken[] = ".broken";
// Above any report (eight ranks with 16 KiB of log and some fields); a foreign file is not read in.
constexpr uintmax_t kLargestFile = 64 << 20;

std::string Wrap(const std::string& bytes) {
  return fmt::format("assay-spool 1 {} {}\n", Sha256Hex(bytes), bytes.size()) + bytes;
}

// The report, or nothing where the file does not hold what was written.
std::optional<std::string> Unwrap(const std::string& text) {
  const size_t line = text.find('\n');
  if (line == std::string::npos) return std::nullopt;
  std::string bytes = text.substr(line + 1);
  if (Wrap(bytes) != text) return std::nullopt;
  return bytes;
}

std::optional<std::string> ReadWhole(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(fs::symlink_status(path, error)) ||
      fs::file_size(path, error) > kLargestFile || error) {
    return std::nullopt;
  }
  std::ifstream in(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in.good() && !in.eof()) return std::nullopt;
  return text;
}

}  // namespace

absl::StatusOr<ReportSpool> ReportSpool::Open(const std::string& dir) {
  ASSAY_RETURN_IF_ERROR(CreateStateDir(dir));
  ReportSpool spool(dir);
  std::error_code error;
  std::vector<fs::path> files;
  for (fs::directory_iterator it(dir, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() == kSuffix) files.push_back(it->path());
  }
  if (error) return absl::InternalError(fmt::format("cannot list {}: {}", dir, error.message()));
  for (const fs::path& file : files) {
    const std::string attempt = file.stem().string();
    const std::optional<std::string> text = ReadWhole(file);
    const std::optional<std::string> bytes = text ? Unwrap(*text) : std::nullopt;
    if (IsSafeId(attempt) && bytes) {
      spool.reports_[attempt] = *bytes;
    } else {
      spool.SetAside(attempt);
    }
  }
  return spool;
}

absl::Status ReportSpool::Put(const std::string& attempt, const std::string& bytes) {
  if (!IsSafeId(attempt)) return absl::InvalidArgumentError("an attempt's id is no file name");
  reports_[attempt] = bytes;
  return WriteFileAtomically(PathOf(attempt, kSuffix), Wrap(bytes));
}

void ReportSpool::Remove(const std::string& attempt) {
  if (reports_.erase(attempt) == 0) return;
  std::error_code ignored;
  fs::remove(PathOf(attempt, kSuffix), ignored);
}

void ReportSpool::SetAside(const std::string& attempt) {
  reports_.erase(attempt);
  const std::string to = PathOf(attempt, kBroken);
  std::error_code error;
  fs::rename(PathOf(attempt, kSuffix), to, error);
  spdlog::warn("a spooled report cannot be read back and is set aside as {}{}", to,
               error ? ": " + error.message() : "");
}

std::vector<std::string> ReportSpool::Attempts() const {
  std::vector<std::string> attempts;
  for (const auto& [attempt, bytes] : reports_) attempts.push_back(attempt);
  return attempts;
}

const std::string* ReportSpool::Find(const std::string& attempt) const {
  const auto found = reports_.find(attempt);
  return found == reports_.end() ? nullptr : &found->second;
}

std::string ReportSpool::PathOf(const std::string& attempt, const char* suffix) const {
  return dir_ + "/" + attempt + suffix;
}

}  // namespace assay
