// Clock, limits and processor.
#include <fmt/format.h>

#include "agent/doctor/checks.h"
#include "agent/doctor/findings.h"
#include "common/text/number_format.h"

namespace assay {
namespace {

// Certificates are dated to the second; more is no synchronised clock.
constexpr double kMostErrorSeconds = 1;
constexpr uint64_t kFewOpenFiles = 1024;
// What RDMA registers for one rank; a shell's default is 8 MiB.
constexpr uint64_t kLittleLockedBytes = uint64_t{1} << 30;

DoctorCheck CheckClock(const ClockFacts& clock) {
  const std::string set = "sudo timedatectl set-ntp true; timedatectl";
  if (!clock.error.empty()) {
    return NotKnown("clock", "the kernel does not say: " + clock.error, "timedatectl");
  }
  if (!clock.synchronised) {
    return Warn("clock",
                "not synchronised by NTP: times shown may be wrong, and so may the dates of "
                "certificates",
                set);
  }
  const std::string text =
      fmt::format("synchronised, wrong by at most {:.0f} ms", clock.most_error_seconds * 1e3);
  if (clock.most_error_seconds > kMostErrorSeconds) return Warn("clock", text, set);
  return Good("clock", text);
}

DoctorCheck CheckOpenFiles(const LimitFacts& limits) {
  if (!limits.open_files) return Good("open-files", "no limit");
  const std::string hard = limits.open_files_hard
                               ? HumanInteger(static_cast<int64_t>(*limits.open_files_hard))
                               : "no limit";
  const std::string text = fmt::format(
      "limit {}, hard limit {}", HumanInteger(static_cast<int64_t>(*limits.open_files)), hard);
  if (*limits.open_files >= kFewOpenFiles) return Good("open-files", text);
  return Warn("open-files", fmt::format("{}: under {}", text, kFewOpenFiles),
              fmt::format("ulimit -n {}", 4 * kFewOpenFiles));
}

DoctorCheck CheckLocked(const LimitFacts& limits) {
  if (!limits.locked_bytes) return Good("locked-memory", "no limit");
  const std::string text =
      fmt::format("limit {}", HumanBytes(static_cast<int64_t>(*limits.locked_bytes)));
  if (!limits.infiniband)
    return Good("locked-memory", text + ", and no RDMA device that needs more");
  if (*limits.locked_bytes >= kLittleLockedBytes) return Good("locked-memory", text);
  return Warn("locked-memory", text + ": NCCL over RDMA fails to register memory",
              "ulimit -l unlimited");
}

DoctorCheck CheckProcessors(const Facts& facts) {
  const CpuFacts& cpu = facts.cpu;
  if (cpu.listed == 0) return NotKnown("processors", "/proc/cpuinfo lists none");
  std::string text = Counted(static_cast<uint64_t>(cpu.listed), "processor");
  if (cpu.allowed_count > 0 && cpu.allowed_count < cpu.listed) {
    text += fmt::format(", {} of them for this process ({})", cpu.allowed_count, cpu.allowed);
  }
  const int usable = cpu.allowed_count > 0 ? cpu.allowed_count : cpu.listed;
  if (cpu.quota && *cpu.quota < usable) {
    const std::string stopped =
        cpu.throttled_count.value_or(0) > 0
            ? fmt::format(" and has stopped it {} times", *cpu.throttled_count)
            : "";
    return Warn("processors",
                fmt::format("{}; the cgroup grants the time of {:.1f}{}: steps that wait for the "
                            "host take longer",
                            text, *cpu.quota, stopped),
                "cat /proc/self/cgroup  # container: no --cpus");
  }
  size_t gpus = 0;
  for (const Device& device : facts.devices) {
    gpus += device.kind != "cpu" && device.usable && !device.simulated ? 1 : 0;
  }
  if (gpus > 0 && static_cast<size_t>(usable) < gpus) {
    return Warn("processors", fmt::format("{}: fewer than the {} GPUs, one a rank", text, gpus));
  }
  return Good("processors", text);
}

DoctorCheck CheckGovernor(const CpuFacts& cpu) {
  if (cpu.governors.empty()) {
    return Good("governor", "none: this kernel does not set the clock of the processor");
  }
  std::vector<std::string> parts;
  bool all_performance = true;
  for (const auto& [name, count] : cpu.governors) {
    parts.push_back(
        fmt::format("{} on {}", name, Counted(static_cast<uint64_t>(count), "processor")));
    all_performance = all_performance && name == "performance";
  }
  if (all_performance) return Good("governor", Listed(parts));
  return Warn("governor", Listed(parts) + ": the clock of the host follows its load",
              "sudo cpupower frequency-set -g performance");
}

}  // namespace

void CheckHost(const Facts& facts, std::vector<DoctorCheck>& checks) {
  checks.push_back(CheckClock(facts.clock));
  checks.push_back(CheckOpenFiles(facts.limits));
  checks.push_back(CheckLocked(facts.limits));
  checks.push_back(CheckProcessors(facts));
  checks.push_back(CheckGovernor(facts.cpu));
}

}  // namespace assay
