#include "common/config/settings.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <optional>
#include <utility>

#include "common/net/state_dir.h"
#include "common/net/state_files.h"
#include "common/status/status.h"
#include "common/yaml/scalars.h"
#include "common/yaml/yaml_tree.h"

namespace assay {
namespace {

constexpr unsigned kCli = static_cast<unsigned>(Program::kCli);
constexpr unsigned kCoordinator = static_cast<unsigned>(Program::kCoordinator);
constexpr unsigned kAgent = static_cast<unsigned>(Program::kAgent);

enum class Kind { kText, kFlag, kSeconds, kLevel, kList };

struct Info {
  std::string_view name;
  const char* environment;  // null: none
  Kind kind;
  unsigned programs;
  const char* otherwise;  // null: not set
};

constexpr Info kSettings[] = {
    {"state", "ASSAY_STATE", Kind::kText, kCli | kCoordinator | kAgent, nullptr},
    {"coordinator", "ASSAY_COORDINATOR", Kind::kText, kCli | kAgent, nullptr},
    {"tls-ca", "ASSAY_TLS_CA", Kind::kText, kCli | kCoordinator | kAgent, nullptr},
    {"tls-cert", "ASSAY_TLS_CERT", Kind::kText, kCli | kCoordinator | kAgent, nullptr},
    {"tls-key", "ASSAY_TLS_KEY", Kind::kText, kCli | kCoordinator | kAgent, nullptr},
    {"insecure", "ASSAY_INSECURE", Kind::kFlag, kCli | kCoordinator | kAgent, "false"},
    {"quiet", "ASSAY_QUIET", Kind::kFlag, kCli, "false"},
    {"no-color", "ASSAY_NO_COLOR", Kind::kFlag, kCli, "false"},
    {"listen", "ASSAY_LISTEN", Kind::kText, kCoordinator, nullptr},
    {"local", "ASSAY_LOCAL", Kind::kFlag, kCoordinator, "false"},
    {"idle-exit", "ASSAY_IDLE_EXIT", Kind::kSeconds, kCoordinator, nullptr},
    {"heartbeat", "ASSAY_HEARTBEAT", Kind::kSeconds, kCoordinator, "10"},
    {"agent-arg", nullptr, Kind::kList, kCoordinator, nullptr},
    {"node", "ASSAY_NODE", Kind::kText, kAgent, nullptr},
    {"stacks", "ASSAY_STACKS", Kind::kText, kAgent, nullptr},
    {"devices", "ASSAY_DEVICES", Kind::kText, kAgent, "auto"},
    {"pin", "ASSAY_PIN", Kind::kFlag, kAgent, "true"},
    {"log-level", "ASSAY_LOG_LEVEL", Kind::kLevel, kCoordinator | kAgent, "info"},
};
constexpr std::string_view kLevels[] = {"debug", "info", "warn", "error"};
constexpr size_t kMostConfigBytes = size_t{64} << 10;

const Info* InfoOf(std::string_view name) {
  for (const Info& info : kSettings) {
    if (info.name == name) return &info;
  }
  return nullptr;
}

std::optional<bool> FlagIn(std::string_view text) {
  if (text == "true" || text == "1") return true;
  if (text == "false" || text == "0") return false;
  return std::nullopt;
}

std::optional<double> NumberIn(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value, std::chars_format::fixed);
  if (error != std::errc() || rest != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

// What is wrong with `text`, or empty.
std::string Fault(const Info& info, const std::string& text) {
  const std::string shown = Printable(text, 80);
  switch (info.kind) {
    case Kind::kFlag:
      return FlagIn(text) ? "" : fmt::format("'{}' is neither true nor false", shown);
    case Kind::kSeconds:
      return NumberIn(text).value_or(-1) >= 0
                 ? ""
                 : fmt::format("'{}' is no number of seconds from 0", shown);
    case Kind::kLevel:
      if (std::find(std::begin(kLevels), std::end(kLevels), text) != std::end(kLevels)) return "";
      return fmt::format("unknown level '{}'{}", shown, Suggestion(text, kLevels));
    case Kind::kText:
      // Mostly a variable of a script that was not set. Taken as the default, `--devices ""` would
      // offer every GPU where a list of allowed ones was meant.
      return text.empty() ? "empty; give a value or leave it out" : "";
    case Kind::kList:
      return "";
  }
  return "";
}

absl::StatusOr<std::string> ScalarText(const Info& info, const YamlNode& node) {
  if (info.kind == Kind::kFlag) {
    ASSAY_ASSIGN_OR_RETURN(const bool flag, FlagOf(node));
    return std::string(flag ? "true" : "false");
  }
  if (info.kind == Kind::kSeconds) {
    ASSAY_ASSIGN_OR_RETURN([[maybe_unused]] const double number, NumberOf(node));
    return node.text;
  }
  return TextOf(node);
}

absl::StatusOr<std::vector<std::string>> ValuesOf(const Info& info, const YamlNode& node) {
  std::vector<std::string> values;
  if (info.kind == Kind::kList && node.IsList()) {
    for (const YamlPtr& item : node.items) {
      ASSAY_ASSIGN_OR_RETURN(std::string text, ScalarText(info, *item));
      values.push_back(std::move(text));
    }
    return values;
  }
  ASSAY_ASSIGN_OR_RETURN(std::string text, ScalarText(info, node));
  if (const std::string fault = Fault(info, text); !fault.empty()) {
    return absl::InvalidArgumentError(fault);
  }
  values.push_back(std::move(text));
  return values;
}

// As a scalar of the file, quoted where it could be read as something else.
std::string Scalar(const Info& info, const std::string& text) {
  const auto harmless = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '/' ||
           c == '.' || c == '_';
  };
  const bool word =
      info.kind == Kind::kFlag || info.kind == Kind::kSeconds || info.kind == Kind::kLevel ||
      text == "auto" ||
      (!text.empty() && text[0] == '/' && std::all_of(text.begin(), text.end(), harmless));
  if (word) return text;
  std::string quoted = "\"";
  for (const char c : Printable(text, 4096)) {
    if (c == '"' || c == '\\') quoted.push_back('\\');
    quoted.push_back(c);
  }
  return quoted + "\"";
}

}  // namespace

Settings::Settings(Program program, Environment environment)
    : program_(program), environment_(std::move(environment)) {}

void Settings::SetFlag(const std::string& name, std::vector<std::string> values) {
  values_[name] = {std::move(values), "--" + name};
}

absl::Status Settings::Resolve(bool with_file) {
  const auto mine = [&](const Info& info) {
    return (info.programs & static_cast<unsigned>(program_)) != 0;
  };
  for (const Info& info : kSettings) {
    if (!mine(info) || info.environment == nullptr || values_.contains(info.name)) continue;
    const char* value = environment_(info.environment);
    if (value == nullptr || *value == '\0') continue;
    values_[std::string(info.name)] = {{value}, info.environment};
  }
  for (const Info& info : kSettings) {
    const Value* value = Find(info.name);
    if (value == nullptr) continue;
    for (const std::string& text : value->values) {
      if (const std::string fault = Fault(info, text); !fault.empty()) {
        return absl::InvalidArgumentError(fmt::format("{}: {}", value->source, fault));
      }
    }
  }
  if (!with_file) return absl::OkStatus();
  const char* variable = environment_("ASSAY_CONFIG");
  if (const Value* named = Find("config"); named != nullptr) {
    ASSAY_RETURN_IF_ERROR(TakeFile(named->values.front(), false));
  } else if (variable != nullptr && *variable != '\0') {
    ASSAY_RETURN_IF_ERROR(TakeFile(variable, false));
  } else if (const auto state = ResolveStateDir(Text("state")); state.ok()) {
    ASSAY_RETURN_IF_ERROR(TakeFile(*state + "/config.yaml", true));
  }
  return absl::OkStatus();
}

absl::Status Settings::TakeFile(const std::string& path, bool is_default) {
  if (is_default) {
    // Nobody named it: a pipe there must not be waited for.
    ASSAY_RETURN_IF_ERROR(CheckIsFile(path));
    // What is wrong with the folder is told by whoever needs it.
    if (faccessat(AT_FDCWD, path.c_str(), F_OK, AT_EACCESS) != 0) return absl::OkStatus();
  }
  const auto text = ReadTextFile(path, kMostConfigBytes);
  if (absl::IsPermissionDenied(text.status())) {
    return absl::FailedPreconditionError(
        Message(text.status()) +
        "; give this user the right to read it, or name another file with --config");
  }
  ASSAY_RETURN_IF_ERROR(text.status());
  file_ = path;
  if (text->find_first_not_of(" \t\r\n") == std::string::npos) return absl::OkStatus();
  Diagnostics faults(path);
  YamlLimits limits;
  limits.bytes = kMostConfigBytes;
  limits.nodes = 1000;
  const YamlPtr root = ParseYaml(*text, limits, &faults);
  if (root == nullptr) return faults.ToStatus();
  if (root->IsNull()) return absl::OkStatus();
  if (!root->IsMap()) {
    faults.Add(root->at, "", Describe(*root) + " where a map is wanted; write `key: value`");
    return faults.ToStatus();
  }
  std::vector<std::string_view> known;
  for (const Info& info : kSettings) known.push_back(info.name);
  for (const YamlEntry& entry : root->entries) {
    const Info* info = InfoOf(entry.key);
    if (info == nullptr) {
      faults.Add(entry.key_at, JoinPath("", entry.key),
                 "unknown key" + Suggestion(entry.key, known));
      continue;
    }
    if (is_default && info->name == "state") {
      faults.Add(entry.key_at, entry.key, "this file is found through it; give it with --state");
      continue;
    }
    const auto values = ValuesOf(*info, *entry.value);
    if (!values.ok()) {
      faults.Add(entry.value->at, entry.key, Message(values.status()));
    } else if ((info->programs & static_cast<unsigned>(program_)) != 0 &&
               !values_.contains(entry.key)) {
      values_[entry.key] = {*values, fmt::format("{}:{}", path, entry.key_at.line)};
    }
  }
  return faults.ToStatus();
}

const Settings::Value* Settings::Find(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

std::string Settings::Text(std::string_view name) const {
  const Value* value = Find(name);
  if (value != nullptr && !value->values.empty()) return value->values.back();
  const Info* info = InfoOf(name);
  return info == nullptr || info->otherwise == nullptr ? "" : info->otherwise;
}

bool Settings::Flag(std::string_view name) const { return FlagIn(Text(name)).value_or(false); }

double Settings::Seconds(std::string_view name, double otherwise) const {
  return NumberIn(Text(name)).value_or(otherwise);
}

const std::vector<std::string>& Settings::List(std::string_view name) const {
  static const auto& none = *new std::vector<std::string>();
  const Value* value = Find(name);
  return value == nullptr ? none : value->values;
}

std::string Settings::Source(std::string_view name) const {
  const Value* value = Find(name);
  return value == nullptr ? "default" : value->source;
}

std::string Settings::Printed() const {
  std::string text = fmt::format("# file: {}\n", file_.empty() ? "none" : Printable(file_, 4096));
  for (const Info& info : kSettings) {
    if ((info.programs & static_cast<unsigned>(program_)) == 0) continue;
    std::string value;
    if (info.kind == Kind::kList) {
      for (const std::string& item : List(info.name)) {
        value += (value.empty() ? "[" : ", ") + Scalar(info, item);
      }
      if (!value.empty()) value += "]";
    } else if (const std::string plain = Text(info.name); !plain.empty()) {
      value = Scalar(info, plain);
    }
    text += value.empty() ? fmt::format("# {} is not set\n", info.name)
                          : fmt::format("{}: {}  # {}\n", info.name, value, Source(info.name));
  }
  return text;
}

Transport TransportOf(const Settings& settings) {
  return {{settings.Text("tls-ca"), settings.Text("tls-cert"), settings.Text("tls-key")},
          settings.Flag("insecure")};
}

}  // namespace assay
