#include "agent/process/process_table.h"

#include <dirent.h>
#include <fcntl.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>

#include "agent/process/unique_fd.h"

namespace assay {
namespace {

std::optional<std::string> ReadSmallFile(const std::string& path, size_t limit) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return std::nullopt;
  std::string text;
  char buffer[4096];
  while (text.size() < limit) {
    const ssize_t got = ::read(fd.get(), buffer, sizeof buffer);
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    text.append(buffer, static_cast<size_t>(got));
  }
  return text;
}

}  // namespace

std::optional<ProcessEntry> ParseProcStat(std::string_view text) {
  ProcessEntry entry;
  const auto number = std::from_chars(text.data(), text.data() + text.size(), entry.pid);
  const size_t end = text.rfind(')');
  if (number.ec != std::errc() || end == std::string_view::npos) return std::nullopt;
  // Fields 3 to 22 of proc(5): state, parent, group, session, ..., start time.
  text.remove_prefix(end + 1);
  const auto next = [&text]() -> std::string_view {
    const size_t begin = std::min(text.find_first_not_of(' '), text.size());
    const size_t stop = std::min(text.find_first_of(" \n", begin), text.size());
    const std::string_view field = text.substr(begin, stop - begin);
    text.remove_prefix(stop);
    return field;
  };
  const auto to_number = [](std::string_view field, auto& value) {
    return std::from_chars(field.data(), field.data() + field.size(), value).ec == std::errc();
  };
  const std::string_view state = next();
  if (state.size() != 1) return std::nullopt;
  entry.state = state[0];
  for (pid_t* value : {&entry.parent, &entry.group, &entry.session}) {
    if (!to_number(next(), *value)) return std::nullopt;
  }
  for (int i = 7; i <= 19; ++i) next();
  if (!to_number(next(), entry.threads)) return std::nullopt;
  next();
  if (!to_number(next(), entry.start_ticks)) return std::nullopt;
  return entry;
}

std::optional<ProcessEntry> ReadProcess(pid_t pid, const std::string& proc) {
  const auto text = ReadSmallFile(proc + "/" + std::to_string(pid) + "/stat", 8192);
  if (!text) return std::nullopt;
  return ParseProcStat(*text);
}

std::vector<ProcessEntry> ReadProcessTable(const std::string& proc) {
  std::vector<ProcessEntry> table;
  DIR* dir = ::opendir(proc.c_str());
  if (dir == nullptr) return table;
  while (const dirent* item = ::readdir(dir)) {
    if (!std::isdigit(static_cast<unsigned char>(item->d_name[0]))) continue;
    if (const auto entry = ReadProcess(std::atoi(item->d_name), proc)) table.push_back(*entry);
  }
  ::closedir(dir);
  return table;
}

std::optional<std::string> EnvironmentOf(pid_t pid, std::string_view name,
                                         const std::string& proc) {
  const auto text = ReadSmallFile(proc + "/" + std::to_string(pid) + "/environ", 1 << 20);
  if (!text) return std::nullopt;
  for (size_t start = 0; start < text->size();) {
    const size_t end = std::min(text->find('\0', start), text->size());
    const std::string_view item(text->data() + start, end - start);
    if (item.size() > name.size() && item.starts_with(name) && item[name.size()] == '=') {
      return std::string(item.substr(name.size() + 1));
    }
    start = end + 1;
  }
  return std::nullopt;
}

}  // namespace assay
