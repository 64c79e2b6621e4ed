// Interfaces and ports.
#include <fmt/format.h>

#include <algorithm>

#include "agent/doctor/checks.h"
#include "agent/doctor/findings.h"
#include "common/text/shell_word.h"

namespace assay {
namespace {

// Below, gradients of any model take longer than its step.
constexpr int64_t kSlowMegabits = 1000;
// What IPv6 needs of a link.
constexpr int64_t kLeastMtu = 1280;
constexpr size_t kMostShown = 6;

std::string SpeedText(int64_t megabits) {
  if (megabits <= 0) return "";
  if (megabits % 1000 == 0) return fmt::format(", {} Gb/s", megabits / 1000);
  return fmt::format(", {} Mb/s", megabits);
}

std::string InterfaceText(const InterfaceFacts& interface) {
  return fmt::format("{} {}{}, MTU {}", interface.name, interface.addresses.front(),
                     SpeedText(interface.speed_megabits), interface.mtu);
}

DoctorCheck CheckInterfaces(const Facts& facts) {
  const std::string name = "interfaces";
  if (!facts.interfaces_error.empty()) {
    return NotKnown(name, "they cannot be listed: " + facts.interfaces_error, "ip address");
  }
  std::vector<std::string> shown, trouble;
  std::string first_trouble;
  bool loopback = false;
  size_t more = 0;
  for (const InterfaceFacts& interface : facts.interfaces) {
    if (interface.addresses.empty()) continue;
    if (interface.loopback) {
      loopback = true;
      continue;
    }
    // A bridge has no link while no container or virtual machine runs behind it.
    if (interface.bridge && !interface.carrier) continue;
    std::string why;
    if (!interface.carrier) why = "has no link";
    if (interface.speed_megabits > 0 && interface.speed_megabits < kSlowMegabits) {
      why = fmt::format("runs at {} Mb/s", interface.speed_megabits);
    }
    if (interface.mtu > 0 && interface.mtu < kLeastMtu) {
      why = fmt::format("has MTU {}", interface.mtu);
    }
    if (!why.empty()) {
      trouble.push_back(interface.name + " " + why);
      if (first_trouble.empty()) first_trouble = interface.name;
    } else if (shown.size() < kMostShown) {
      shown.push_back(InterfaceText(interface));
    } else {
      ++more;
    }
  }
  if (!loopback) {
    return Bad(name, "the loopback interface has no address: cells on one machine meet there",
               "sudo ip link set lo up");
  }
  if (!trouble.empty()) {
    return Warn(name,
                fmt::format("{}{}{}", Listed(trouble),
                            shown.empty() ? "" : "; good: ", fmt::join(shown, "; ")),
                "ip -s link show " + ShellWord(first_trouble));
  }
  if (shown.empty()) {
    return Good(name, "only the loopback: this node measures alone, no gang over several");
  }
  return Good(name, fmt::format("{}{}", fmt::join(shown, "; "),
                                more > 0 ? fmt::format("; {} more", more) : ""));
}

DoctorCheck CheckPorts(const Facts& facts) {
  std::vector<std::string> failed;
  size_t bound = 0;
  for (const InterfaceFacts& interface : facts.interfaces) {
    if (interface.addresses.empty()) continue;
    if (interface.bind_error.empty()) {
      bound += interface.addresses.size();
    } else {
      failed.push_back(fmt::format("{} ({})", interface.name, interface.bind_error));
    }
  }
  if (!failed.empty()) {
    return Bad("ports", "no TCP port can be bound on " + Listed(failed),
               "sysctl net.ipv4.ip_local_port_range; ss -s");
  }
  if (bound == 0) return NotKnown("ports", "there is no address to bind one on");
  return Good("ports", fmt::format("a TCP port can be bound on {}",
                                   bound == 1 ? "the one address"
                                              : fmt::format("each of {} addresses", bound)));
}

}  // namespace

void CheckNetwork(const Facts& facts, std::vector<DoctorCheck>& checks) {
  checks.push_back(CheckInterfaces(facts));
  checks.push_back(CheckPorts(facts));
}

}  // namespace assay
