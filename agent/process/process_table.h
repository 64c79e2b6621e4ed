// ProcessTable: what /proc says about the processes of this machine at one moment.
//
// Thread rule: plain values and functions; any thread.
#ifndef ASSAY_AGENT_PROCESS_PROCESS_TABLE_H_
#define ASSAY_AGENT_PROCESS_PROCESS_TABLE_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

struct ProcessEntry {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t group = 0;
  pid_t session = 0;
  char state = '?';
  uint64_t start_ticks = 0;  // since boot; with the pid it names a process for good
  int threads = 1;
  // A process whose first thread has ended shows as a zombie for as long as another one lives, say
  // in a call of a driver.
  bool Living() const { return state != 'X' && (state != 'Z' || threads > 1); }
};

// Text of /proc/PID/stat; nullopt for anything else. The command's name may hold blanks, brackets
// and newlines.
std::optional<ProcessEntry> ParseProcStat(std::string_view text);

// Unordered; processes that end while it reads are left out.
std::vector<ProcessEntry> ReadProcessTable(const std::string& proc = "/proc");
std::optional<ProcessEntry> ReadProcess(pid_t pid, const std::string& proc = "/proc");

// Value of `name` in the environment that `pid` was started with; nullopt where it has none or
// belongs to somebody else.
std::optional<std::string> EnvironmentOf(pid_t pid, std::string_view name,
                                         const std::string& proc = "/proc");

}  // namespace assay

#endif  // ASSAY_AGENT_PROCESS_PROCESS_TABLE_H_
