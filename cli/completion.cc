#include "cli/completion.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "cli/completion_scripts.h"
#include "common/version.h"

namespace assay::cli {
namespace {

// What a command, an option or an argument takes, as the scripts write it: flag, none (anything),
// file, dir, run, node, or words=a,b,c; with a + where it may be given again.
using Kind = std::string;

struct Taken {
  std::vector<std::string> names;  // "--detach", "-d"; of an argument its word
  Kind kind;
  std::string doc;
};

// One command with what may follow it.
struct Place {
  std::string path;  // "", "run", "certs init"
  std::vector<Taken> commands;
  std::vector<Taken> options;
  std::vector<Taken> arguments;
};

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

Kind KindOf(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::string name = option.get_name(/*positional=*/true);
  Kind kind = "none";
  if (option.get_items_expected_max() == 0) {
    kind = "flag";
  } else if (type.find('|') != std::string::npos) {
    kind = "words=" + type;
    std::replace(kind.begin(), kind.end(), '|', ',');
  } else if (type == "FILE" || name == "FILE") {
    kind = "file";
  } else if (type == "DIR") {
    kind = "dir";
  } else if (name == "RUN") {
    kind = "run";
  } else if (name == "NODE") {
    kind = "node";
  }
  return option.get_positional() && option.get_items_expected_max() > 1 ? kind + "+" : kind;
}

void Collect(const CLI::App& app, const std::string& path, std::vector<Place>& places) {
  Place place;
  place.path = path;
  for (const CLI::Option* option : app.get_options()) {
    Taken taken;
    taken.kind = KindOf(*option);
    taken.doc = FirstLine(option->get_description());
    if (option->get_positional()) {
      taken.names = {option->get_name(/*positional=*/true)};
      place.arguments.push_back(std::move(taken));
      continue;
    }
    for (const std::string& name : option->get_lnames()) taken.names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) taken.names.push_back("-" + name);
    place.options.push_back(std::move(taken));
  }
  const auto subcommands = app.get_subcommands([](const CLI::App*) { return true; });
  for (const CLI::App* sub : subcommands) {
    place.commands.push_back({{sub->get_name()}, "flag", FirstLine(sub->get_description())});
  }
  places.push_back(std::move(place));
  for (const CLI::App* sub : subcommands) {
    Collect(*sub, path.empty() ? sub->get_name() : path + " " + sub->get_name(), places);
  }
}

std::string Names(const std::vector<Taken>& list) {
  std::string text;
  for (const Taken& taken : list) {
    for (const std::string& name : taken.names) text += (text.empty() ? "" : " ") + name;
  }
  return text;
}

std::string Kinds(const std::vector<Taken>& list) {
  std::string text;
  for (const Taken& taken : list) text += (text.empty() ? "" : " ") + taken.kind;
  return text;
}

// The two functions that both shells of this family read: every command, and every option that is
// not a flag. Options of `assay` itself may stand behind any command.
std::string ShellTables(const std::vector<Place>& places) {
  const Place& root = places.front();
  std::string tables = "_assay_place() {\n  case $1 in\n";
  for (const Place& place : places) {
    std::vector<Taken> options = place.options;
    for (const Taken& option : root.options) {
      const bool known = std::any_of(options.begin(), options.end(), [&](const Taken& each) {
        return each.names == option.names;  // --help
      });
      if (!known) options.push_back(option);
    }
    tables += fmt::format("    '{}') commands='{}'; options='{}'; arguments='{}' ;;\n", place.path,
                          Names(place.commands), Names(options), Kinds(place.arguments));
  }
  tables += "  esac\n}\n\n_assay_kind() {\n  kind=flag\n  case \"$1 $2\" in\n";
  for (const Place& place : places) {
    for (const Taken& option : place.options) {
      if (option.kind == "flag") continue;
      for (const std::string& name : option.names) {
        const std::string pattern = place.path == root.path
                                        ? fmt::format("*' {}'", name)
                                        : fmt::format("'{} {}'", place.path, name);
        tables += fmt::format("    {}) kind='{}' ;;\n", pattern, option.kind);
      }
    }
  }
  return tables + "  esac\n}\n";
}

std::string FishQuoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

// What fish offers for a value of that kind.
std::string FishValue(const Kind& kind) {
  if (kind == "flag") return "";
  if (kind.starts_with("file")) return " -r -F";
  if (kind == "dir") return " -x -a '(__fish_complete_directories)'";
  if (kind == "run") return " -x -a '(__assay_runs)'";
  if (kind == "node") return " -x -a '(__assay_nodes)'";
  if (kind.starts_with("words=")) {
    std::string words = kind.substr(6);
    std::replace(words.begin(), words.end(), ',', ' ');
    return " -x -a " + FishQuoted(words);
  }
  return " -x";
}

// True while the command line stands behind this command.
std::string FishCondition(const Place& place) {
  if (place.path.empty()) return "__fish_use_subcommand";
  std::string condition;
  for (size_t at = 0; at < place.path.size();) {
    const size_t end = std::min(place.path.find(' ', at), place.path.size());
    condition += fmt::format("{}__fish_seen_subcommand_from {}", at == 0 ? "" : "; and ",
                             place.path.substr(at, end - at));
    at = end + 1;
  }
  if (!place.commands.empty()) {
    condition += "; and not __fish_seen_subcommand_from " + Names(place.commands);
  }
  return condition;
}

std::string FishLines(const std::vector<Place>& places) {
  std::string lines;
  for (const Place& place : places) {
    const bool root = place.path.empty();
    const std::string when = fmt::format("complete -c assay -n '{}'", FishCondition(place));
    for (const Taken& command : place.commands) {
      lines += fmt::format("{} -f -a {} -d {}\n", when, command.names[0], FishQuoted(command.doc));
    }
    for (const Taken& option : place.options) {
      std::string names;
      for (const std::string& name : option.names) {
        names += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      lines += fmt::format("{}{}{} -d {}\n", root ? "complete -c assay" : when, names,
                           FishValue(option.kind), FishQuoted(option.doc));
    }
    for (const Taken& argument : place.arguments) {
      // Without -x and -r, which are for values of options.
      const std::string value = FishValue(argument.kind);
      const size_t words = value.find(" -a ");
      lines += argument.kind.starts_with("file") ? when + " -F\n"
               : words == std::string::npos      ? std::string()
                                                 : when + " -f" + value.substr(words) + "\n";
    }
  }
  return lines;
}

}  // namespace

std::string CompletionScript(const CLI::App& app, std::string_view shell) {
  std::vector<Place> places;
  Collect(app, "", places);
  const std::string head = fmt::format("# {} completion of assay {}, by `assay completion {}`.\n",
                                       shell, kVersion, shell);
  if (shell == "bash") return head + ShellTables(places) + kShellScript + kBashScript;
  if (shell == "zsh")
    return "#compdef assay\n" + head + ShellTables(places) + kShellScript + kZshScript;
  if (shell == "fish") return head + kFishScript + FishLines(places);
  return "";
}

}  // namespace assay::cli
