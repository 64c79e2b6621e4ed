#include "agent/inventory/visible_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "common/text/utf8.h"

namespace assay {
namespace {

std::optional<int> IndexOf(const std::string& text) {
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Parents of slices are shown but take no number of CUDA's.
std::vector<const Device*> Numbered(const std::vector<Device>& devices) {
  std::vector<const Device*> numbered;
  for (const Device& device : devices) {
    if (device.kind == "gpu") numbered.push_back(&device);
  }
  return numbered;
}

struct Chosen {
  std::set<std::string> uuids;
  std::vector<std::string> warnings;
  bool refused = false;
};

// Every device of `uuid` or the only one whose UUID begins so; null otherwise.
const Device* FindByUuid(const std::vector<Device>& devices, const std::string& uuid) {
  const Device* found = nullptr;
  for (const Device& device : devices) {
    if (device.uuid == uuid) return &device;
    if (device.uuid.starts_with(uuid)) {
      if (found != nullptr) return nullptr;
      found = &device;
    }
  }
  return found;
}

Chosen Choose(const std::vector<Device>& devices, const std::vector<std::string>& entries,
              const std::string& from, bool numbers_allowed, bool stop_at_invalid) {
  Chosen chosen;
  const std::vector<const Device*> numbered = Numbered(devices);
  for (const std::string& entry : entries) {
    const Device* device = nullptr;
    if (const auto number = IndexOf(entry)) {
      if (numbers_allowed && *number >= 0 && static_cast<size_t>(*number) < numbered.size()) {
        device = numbered[static_cast<size_t>(*number)];
      }
    } else if (entry.size() >= 5) {  // "GPU-" alone would begin every UUID
      device = FindByUuid(devices, entry);
    }
    if (device == nullptr) {
      if (entry == "-1") break;  // CUDA's way to say: no more
      chosen.warnings.push_back(fmt::format("{} names '{}', which is no GPU of this node{}", from,
                                            ScrubForTerminal(entry),
                                            stop_at_invalid ? "; what follows is ignored" : ""));
      if (stop_at_invalid) break;
      continue;
    }
    if (!chosen.uuids.insert(device->uuid).second) {
      chosen.warnings.push_back(fmt::format(
          "{} names GPU {} twice; no GPU is offered until each is named once", from, device->uuid));
      chosen.refused = true;
    }
  }
  return chosen;
}

// A slice keeps its parent in view, which is shown and never offered.
void Keep(VisibleDevices& visible, const Chosen& chosen) {
  std::set<int> parents;
  std::vector<Device> kept;
  for (const Device& device : visible.devices) {
    if (device.kind == "mig" && chosen.uuids.contains(device.uuid)) {
      parents.insert(device.physical_index);
    }
  }
  for (const Device& device : visible.devices) {
    const bool named = chosen.uuids.contains(device.uuid);
    const bool parent =
        device.kind == "gpu" && !device.usable && parents.contains(device.physical_index);
    if (!chosen.refused && (named || parent)) kept.push_back(device);
  }
  visible.devices = std::move(kept);
  visible.warnings.insert(visible.warnings.end(), chosen.warnings.begin(), chosen.warnings.end());
}

bool CardsDiffer(const std::vector<Device>& devices) {
  return std::any_of(devices.begin(), devices.end(), [&](const Device& device) {
    return device.kind == "gpu" && device.raw_name != devices.front().raw_name;
  });
}

bool AnyNumber(const std::vector<std::string>& entries) {
  return std::any_of(entries.begin(), entries.end(),
                     [](const std::string& entry) { return IndexOf(entry).has_value(); });
}

}  // namespace

std::vector<std::string> SplitList(const std::string& text) {
  std::vector<std::string> parts;
  std::string part;
  for (const char c : text + ",") {
    if (c == ',') {
      if (!part.empty()) parts.push_back(part);
      part.clear();
    } else if (c != ' ' && c != '\t' && c != '\n') {
      part.push_back(c);
    }
  }
  return parts;
}

VisibleDevices FilterVisible(const std::vector<Device>& devices,
                             const std::map<std::string, std::string>& environment,
                             const std::vector<std::string>& allowed) {
  VisibleDevices visible{devices, {}};
  if (devices.empty()) return visible;
  const auto value = [&](const char* name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    return found == environment.end() ? std::nullopt : std::optional(found->second);
  };
  // Where the toolkit has set up a container its numbers are the host's and already applied; only
  // UUIDs can be checked again.
  if (const auto nvidia = value("NVIDIA_VISIBLE_DEVICES")) {
    const std::vector<std::string> entries = SplitList(*nvidia);
    if (*nvidia == "none") {
      Keep(visible, {{}, {"NVIDIA_VISIBLE_DEVICES is 'none': no GPU is offered"}, false});
    } else if (!entries.empty() && *nvidia != "all" && *nvidia != "void" && !AnyNumber(entries)) {
      Keep(visible, Choose(devices, entries, "NVIDIA_VISIBLE_DEVICES", false, false));
    } else if (AnyNumber(entries) && entries.size() != Numbered(devices).size()) {
      Keep(visible, Choose(devices, entries, "NVIDIA_VISIBLE_DEVICES", true, false));
    }
  }
  if (const auto cuda = value("CUDA_VISIBLE_DEVICES")) {
    const std::vector<std::string> entries = SplitList(*cuda);
    if (entries.empty()) {
      Keep(visible, {{}, {"CUDA_VISIBLE_DEVICES is empty: no GPU is offered"}, false});
    } else if (!visible.devices.empty()) {
      const bool ambiguous = AnyNumber(entries) && CardsDiffer(visible.devices) &&
                             value("CUDA_DEVICE_ORDER").value_or("") != "PCI_BUS_ID";
      Keep(visible, Choose(visible.devices, entries, "CUDA_VISIBLE_DEVICES", true, true));
      if (ambiguous) {
        visible.warnings.push_back(
            "CUDA_VISIBLE_DEVICES holds numbers on a node of unlike cards; they are read in PCI "
            "order, CUDA's own default is fastest first: use UUIDs or "
            "CUDA_DEVICE_ORDER=PCI_BUS_ID");
      }
    }
  }
  if (!allowed.empty()) {
    Keep(visible, Choose(visible.devices, allowed, "--devices", false, false));
  }
  return visible;
}

}  // namespace assay
