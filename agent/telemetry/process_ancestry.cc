#include "agent/telemetry/process_ancestry.h"

#include <fmt/format.h>

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <optional>

namespace assay {
namespace {

std::optional<std::string> ReadSmallFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string text(8192, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

std::optional<int64_t> ParentOf(const std::string& proc_root, int64_t pid) {
  const auto text = ReadSmallFile(fmt::format("{}/{}/stat", proc_root, pid));
  if (!text) return std::nullopt;
  // The name in parentheses may hold anything, parentheses too: the last one ends it.
  const size_t end = text->rfind(')');
  int64_t parent = 0;
  char state = 0;
  if (end == std::string::npos ||
      std::sscanf(text->c_str() + end + 1, " %c %" SCNd64, &state, &parent) != 2) {
    return std::nullopt;
  }
  return parent;
}

}  // namespace

Ancestry AncestryOf(const std::string& proc_root, int64_t pid, int64_t ancestor) {
  if (pid == ancestor) return Ancestry::kOurs;
  std::optional<int64_t> parent = ParentOf(proc_root, pid);
  if (!parent) return Ancestry::kUnseen;
  for (int depth = 0; depth < 64 && parent && *parent > 0; ++depth) {
    if (*parent == ancestor) return Ancestry::kOurs;
    parent = ParentOf(proc_root, *parent);
  }
  return Ancestry::kForeign;
}

}  // namespace assay
