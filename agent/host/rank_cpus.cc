#include "agent/host/rank_cpus.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "agent/host/proc_files.h"
#include "common/text/utf8.h"

namespace assay {
namespace {

// As many as Linux can be built for.
constexpr int kMostCpus = 8192;
constexpr size_t kMaskSets = kMostCpus / CPU_SETSIZE;

bool TakeNumber(std::string_view& text, int& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0 || number >= kMostCpus) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

// "performance", or all there are: "performance, powersave".
std::string Governors(const std::string& sys_root, const std::vector<int>& cpus) {
  std::set<std::string> names;
  for (const int cpu : cpus) {
    const auto text = ReadFileText(
        fmt::format("{}/devices/system/cpu/cpu{}/cpufreq/scaling_governor", sys_root, cpu), 64);
    if (!text) continue;
    std::string name = ScrubForTerminal(*text);
    name.erase(std::find_if(name.begin(), name.end(), [](char c) { return c == '\n' || c == ' '; }),
               name.end());
    if (!name.empty()) names.insert(name);
  }
  std::string joined;
  for (const std::string& name : names) joined += (joined.empty() ? "" : ", ") + name;
  return joined;
}

}  // namespace

std::vector<int> CpusOfList(std::string_view list) {
  while (!list.empty() && (list.back() == '\n' || list.back() == ' ')) list.remove_suffix(1);
  std::set<int> cpus;
  while (!list.empty()) {
    int first = 0;
    if (!TakeNumber(list, first)) return {};
    int last = first;
    if (list.starts_with('-')) {
      list.remove_prefix(1);
      if (!TakeNumber(list, last) || last < first) return {};
    }
    for (int cpu = first; cpu <= last; ++cpu) cpus.insert(cpu);
    if (list.empty()) break;
    if (!list.starts_with(',')) return {};
    list.remove_prefix(1);
    if (list.empty()) return {};
  }
  return {cpus.begin(), cpus.end()};
}

std::string ListOfCpus(const std::vector<int>& cpus) {
  std::string list;
  for (size_t i = 0; i < cpus.size();) {
    size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    if (!list.empty()) list += ",";
    list += last == i ? fmt::format("{}", cpus[i]) : fmt::format("{}-{}", cpus[i], cpus[last]);
    i = last + 1;
  }
  return list;
}

std::vector<int> CpusOfNode(const std::string& sys_root, int numa_node,
                            const std::vector<int>& allowed) {
  if (numa_node < 0) return {};
  const auto text = ReadFileText(
      fmt::format("{}/devices/system/node/node{}/cpulist", sys_root, numa_node), 65536);
  const std::vector<int> of_node = CpusOfList(text.value_or(""));
  std::vector<int> both;
  std::set_intersection(of_node.begin(), of_node.end(), allowed.begin(), allowed.end(),
                        std::back_inserter(both));
  return both;
}

std::vector<int> AffinityOf(pid_t pid) {
  std::array<cpu_set_t, kMaskSets> mask{};
  std::vector<int> cpus;
  if (sched_getaffinity(pid, sizeof mask, mask.data()) != 0) return cpus;
  for (int cpu = 0; cpu < kMostCpus; ++cpu) {
    if (CPU_ISSET_S(cpu, sizeof mask, mask.data())) cpus.push_back(cpu);
  }
  return cpus;
}

void FillPlacement(const RankPlacement& placement, const std::string& sys_root, Record& record) {
  if (placement.has_gpu) {
    if (placement.numa_node >= 0) {
      record.Set(Field::kNumaNode, int64_t{placement.numa_node}).IgnoreError();
    }
    const bool pinned = !placement.near.empty() && placement.near == placement.cpus;
    record.Set(Field::kNumaPinned, pinned).IgnoreError();
  }
  if (placement.cpus.empty()) return;
  record.SetText(Field::kRankCpus, ListOfCpus(placement.cpus));
  if (const std::string governors = Governors(sys_root, placement.cpus); !governors.empty()) {
    record.SetText(Field::kCpuGovernor, governors);
  }
}

}  // namespace assay
