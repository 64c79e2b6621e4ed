#include "agent/inventory/stack_manifests.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "agent/host/proc_files.h"
#include "agent/inventory/bounded_command.h"
#include "agent/inventory/local_inventory.h"
#include "common/ids/ids.h"
#include "common/status/status.h"
#include "common/text/utf8.h"

namespace assay {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr size_t kMostManifestBytes = 64 << 10;
constexpr size_t kMostManifests = 256;

bool IsStackName(const std::string& name) {
  return !name.empty() && name.size() <= 64 &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) || c == '.' || c == '_' || c == '-' || c == '+';
         });
}

// A list of short texts; anything else is a fault of the program's answer.
std::vector<std::string> Texts(const json& info, const char* key) {
  std::vector<std::string> texts;
  const auto found = info.find(key);
  if (found == info.end() || found->is_null()) return texts;
  for (const json& item : found->get<std::vector<json>>()) {
    texts.push_back(ScrubUtf8(item.get<std::string>()));
  }
  return texts;
}

// Changes when the file is replaced or edited; "-" where there is none.
std::string StampOf(const std::string& path) {
  struct stat info{};
  if (stat(path.c_str(), &info) != 0) return "-";
  return fmt::format("{}:{}:{}:{}.{:09}", info.st_dev, info.st_ino, info.st_size,
                     info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
}

// The last line with text of what a failed program said.
std::string LastLine(const std::string& text) {
  std::string scrubbed = ScrubForTerminal(text);
  while (!scrubbed.empty() && (scrubbed.back() == '\n' || scrubbed.back() == ' ')) {
    scrubbed.pop_back();
  }
  const size_t at = scrubbed.rfind('\n');
  std::string line = at == std::string::npos ? scrubbed : scrubbed.substr(at + 1);
  return line.substr(0, Utf8Boundary(line, 500));
}

}  // namespace

std::string DefaultStacksDir() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error) return "";
  return (self.parent_path().parent_path() / "share" / "assay" / "stacks").string();
}

absl::StatusOr<StackProgram> ParseStackManifest(const std::string& text, const std::string& path) {
  const auto fault = [&](const std::string& what) {
    return absl::InvalidArgumentError(fmt::format("stack manifest {}: {}", path, what));
  };
  json manifest = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!manifest.is_object()) return fault("not a JSON object");
  StackProgram program;
  for (const auto& [key, value] : manifest.items()) {
    if (key == "name" && value.is_string()) {
      program.stack.name = value.get<std::string>();
    } else if (key == "program" && value.is_string()) {
      program.program = value.get<std::string>();
    } else if (key == "env" && value.is_object()) {
      for (const auto& [variable, content] : value.items()) {
        if (!content.is_string() || variable.empty() ||
            variable.find_first_of(std::string("=\0", 2)) != std::string::npos ||
            content.get_ref<const std::string&>().find('\0') != std::string::npos) {
          return fault("'env' must hold texts, by the variable's name");
        }
        program.environment[variable] = content.get<std::string>();
      }
    } else {
      return fault(fmt::format(
          "key '{}' is unknown or of the wrong type: 'name', 'program' and 'env' are known",
          ScrubForTerminal(key)));
    }
  }
  if (!IsStackName(program.stack.name)) {
    return fault("'name' must be 1 to 64 letters, digits, '.', '_', '-' or '+'");
  }
  if (program.program.empty() || program.program.find('\0') != std::string::npos) {
    return fault("'program' is missing");
  }
  fs::path resolved = program.program;
  if (resolved.is_relative()) resolved = fs::path(path).parent_path() / resolved;
  program.program = resolved.lexically_normal().string();
  return program;
}

absl::Status ParseStackInfo(const std::string& text, Stack& stack) {
  try {
    const json info = json::parse(text);
    Stack parsed;
    parsed.name = stack.name;
    parsed.runner = ScrubUtf8(info.at("runner").get<std::string>());
    const int protocol = info.at("protocol").get<int>();
    if (protocol != 1) {
      return absl::InvalidArgumentError(fmt::format(
          "it speaks runner protocol {}, this agent protocol 1: install matching versions",
          protocol));
    }
    if (const auto versions = info.find("versions"); versions != info.end()) {
      for (const auto& [key, value] : versions->items()) {
        if (!value.is_null()) {
          parsed.versions[ScrubUtf8(key)] =
              ScrubUtf8(value.is_string() ? value.get<std::string>() : value.dump());
        }
      }
    }
    parsed.models = Texts(info, "models");
    parsed.modes = Texts(info, "modes");
    parsed.precisions = Texts(info, "precisions");
    parsed.lanes = Texts(info, "lanes");
    parsed.layouts = Texts(info, "layouts");
    parsed.arch_list = Texts(info, "arch_list");
    parsed.device_kinds = Texts(info, "device_kinds");
    parsed.max_world_size = std::max<int64_t>(1, info.value("max_world_size", int64_t{1}));
    parsed.simulated = info.value("simulated", false);
    stack = std::move(parsed);
    return absl::OkStatus();
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(
        fmt::format("its --stack-info is not what was expected: {}",
                    ScrubForTerminal(std::string(error.what()).substr(0, 300))));
  }
}

StackManifests::StackManifests(std::string dir, std::chrono::milliseconds deadline)
    : dir_(std::move(dir)), deadline_(deadline) {}

void StackManifests::Refresh(std::vector<std::string>& warnings) {
  programs_.clear();
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::directory_iterator it(dir_, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() == ".json") paths.push_back(it->path().string());
  }
  if (error) {
    warnings.push_back(fmt::format("no stacks: cannot read folder {}: {}", dir_, error.message()));
    return;
  }
  std::sort(paths.begin(), paths.end());
  if (paths.size() > kMostManifests) {
    warnings.push_back(fmt::format("{} holds {} manifests: only the first {} are read", dir_,
                                   paths.size(), kMostManifests));
    paths.resize(kMostManifests);
  }
  for (const std::string& path : paths) ReadOne(path, warnings);
  std::erase_if(known_, [&](const auto& entry) {
    return !std::binary_search(paths.begin(), paths.end(), entry.first);
  });
  if (paths.empty()) warnings.push_back(fmt::format("no stacks: {} holds no manifest", dir_));
}

void StackManifests::ReadOne(const std::string& path, std::vector<std::string>& warnings) {
  const auto text = ReadFileText(path, kMostManifestBytes + 1);
  if (!text || text->size() > kMostManifestBytes) {
    warnings.push_back(
        fmt::format("stack manifest {} cannot be read or is over 64 KiB: left out", path));
    return;
  }
  auto parsed = ParseStackManifest(*text, path);
  if (!parsed.ok()) {
    warnings.push_back(Message(parsed.status()) + ": left out");
    return;
  }
  const std::string& name = parsed->stack.name;
  for (const StackProgram& other : programs_) {
    if (other.stack.name == name) {
      warnings.push_back(fmt::format(
          "stack manifest {}: the name '{}' is taken by another manifest: left out", path, name));
      return;
    }
  }
  const std::string stamp = *text + StampOf(parsed->program);
  const auto found = known_.find(path);
  if (found == known_.end() || found->second.stamp != stamp) {
    Ask(*parsed);
    known_[path] = {stamp, *std::move(parsed)};
  }
  const StackProgram& program = known_[path].program;
  if (!program.stack.unusable_reason.empty()) {
    warnings.push_back(
        fmt::format("stack {}: {}", program.stack.name, program.stack.unusable_reason));
  }
  programs_.push_back(program);
}

void StackManifests::Ask(StackProgram& program) const {
  Stack& stack = program.stack;
  auto digest = Sha256HexOfFile(program.program);
  if (!digest.ok()) {
    stack.unusable_reason = ScrubUtf8(Message(digest.status()));
    return;
  }
  std::map<std::string, std::string> environment = ProcessEnvironment();
  for (const auto& [name, value] : program.environment) environment[name] = value;
  const auto answer = RunBounded(program.program, {"--stack-info"}, environment, deadline_);
  if (!answer.ok()) {
    stack.unusable_reason = ScrubUtf8(Message(answer.status()));
  } else if (answer->exit_code != 0) {
    // A library that the loader does not find ends up here, with the loader's own sentence.
    stack.unusable_reason =
        fmt::format("{} --stack-info ended with {}: {}", program.program,
                    answer->signal ? fmt::format("signal {}", answer->signal)
                                   : fmt::format("exit code {}", answer->exit_code),
                    LastLine(answer->errors));
  } else if (absl::Status parsed = ParseStackInfo(answer->output, stack); !parsed.ok()) {
    stack.unusable_reason = program.program + ": " + Message(parsed);
  }
  stack.digest = *digest;
}

absl::StatusOr<StackProgram> StackManifests::Find(const std::string& name) const {
  std::vector<std::string> names;
  for (const StackProgram& program : programs_) {
    if (program.stack.name == name) {
      if (program.stack.unusable_reason.empty()) return program;
      return absl::FailedPreconditionError(
          fmt::format("stack {} cannot be used: {}", name, program.stack.unusable_reason));
    }
    names.push_back(program.stack.name);
  }
  return absl::NotFoundError(
      fmt::format("this node has no stack '{}'; it has: {}", ScrubForTerminal(name),
                  names.empty() ? "none" : fmt::to_string(fmt::join(names, ", "))));
}

}  // namespace assay
