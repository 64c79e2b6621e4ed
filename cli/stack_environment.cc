#include "cli/stack_environment.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <system_error>
#include <vector>

#include "common/net/sibling.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

constexpr uintmax_t kMostManifestBytes = 64 << 10;

nlohmann::json ReadManifest(const fs::path& path) {
  std::error_code error;
  if (fs::file_size(path, error) > kMostManifestBytes || error) return {};
  std::ifstream in(path);
  return nlohmann::json::parse(std::istreambuf_iterator<char>(in), {}, nullptr,
                               /*allow_exceptions=*/false);
}

}  // namespace

std::optional<std::map<std::string, std::string>> StackEnvironment(const std::string& folder,
                                                                   const std::string& stack) {
  std::error_code error;
  std::vector<fs::path> paths;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() == ".json" && it->is_regular_file(error))
      paths.push_back(it->path());
  }
  std::sort(paths.begin(), paths.end());
  for (const fs::path& path : paths) {
    const nlohmann::json manifest = ReadManifest(path);
    if (!manifest.is_object() || !manifest.contains("name") || manifest["name"] != stack) continue;
    std::map<std::string, std::string> environment;
    const auto env = manifest.find("env");
    if (env == manifest.end() || !env->is_object()) return environment;
    for (const auto& [name, value] : env->items()) {
      if (value.is_string()) environment[name] = value.get<std::string>();
    }
    return environment;
  }
  return std::nullopt;
}

std::string StacksFolder() {
  if (const char* given = std::getenv("ASSAY_STACKS"); given != nullptr && *given != '\0') {
    return given;
  }
  const auto programs = ProgramDir();
  if (!programs.ok()) return "";
  return (fs::path(*programs).parent_path() / "share" / "assay" / "stacks").string();
}

}  // namespace assay::cli
