#include "coordinator/scheduler/fleet.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace assay {
namespace {

// Everything about a device and the stacks beside it that decides what it can run. The UUID, the
// place and the warnings are left out.
std::string SignatureOf(const Device& d, std::string_view card, std::string_view stacks) {
  return fmt::format("{}|{}|{}|{}.{}|{}|{}|{}|{}|{}\n{}", card, d.kind, d.raw_name, d.cc_major,
                     d.cc_minor, d.sm_count, d.memory_total_bytes, d.simulated, d.usable,
                     d.driver_version, stacks);
}

std::string StacksText(const std::vector<Stack>& stacks) {
  std::string text;
  for (const Stack& s : stacks) {
    text += fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|", s.name, s.runner, s.digest,
                        s.simulated, s.unusable_reason, s.max_world_size, fmt::join(s.models, ","),
                        fmt::join(s.modes, ","), fmt::join(s.precisions, ","),
                        fmt::join(s.lanes, ","), fmt::join(s.layouts, ","),
                        fmt::join(s.arch_list, ","), fmt::join(s.device_kinds, ","));
    for (const auto& [name, version] : s.versions) text += fmt::format("{}={},", name, version);
    text += '\n';
  }
  return text;
}

}  // namespace

Node* Fleet::Find(std::string_view name) {
  const auto it = nodes_.find(name);
  return it == nodes_.end() ? nullptr : &it->second;
}

const Node* Fleet::Find(std::string_view name) const {
  const auto it = nodes_.find(name);
  return it == nodes_.end() ? nullptr : &it->second;
}

Node& Fleet::Get(const std::string& name) {
  Node& node = nodes_[name];
  node.name = name;
  return node;
}

Node* Fleet::OfSession(SessionHandle session) {
  const auto it = sessions_.find(session);
  return it == sessions_.end() ? nullptr : Find(it->second);
}

void Fleet::Attach(Node& node, SessionHandle session) {
  Detach(node);
  node.session = session;
  node.lost = false;
  sessions_[session] = node.name;
  ClaimDevices(node);
}

void Fleet::Detach(Node& node) {
  if (node.session == 0) return;
  sessions_.erase(node.session);
  node.session = 0;
  ReleaseDevices(node);
}

bool Fleet::SetInventory(Node& node, NodeInventory inventory, std::vector<std::string> cards) {
  if (node.Up()) ReleaseDevices(node);
  const std::string stacks = StacksText(inventory.stacks);
  std::vector<uint32_t> signatures;
  bool same = inventory.devices.size() == node.inventory.devices.size();
  for (size_t i = 0; i < inventory.devices.size(); ++i) {
    signatures.push_back(Intern(SignatureOf(inventory.devices[i], cards[i], stacks)));
    same = same && inventory.devices[i].uuid == node.inventory.devices[i].uuid;
  }
  same = same && signatures == node.signatures;
  node.inventory = std::move(inventory);
  node.cards = std::move(cards);
  node.signatures = std::move(signatures);
  if (node.Up()) ClaimDevices(node);
  if (!same) ++node.inventory_version;
  return !same;
}

bool Fleet::Offers(const Node& node, const Device& device) const {
  if (!device.usable || device.uuid.empty()) return false;
  const auto it = gpu_claims_.find(device.uuid);
  return it == gpu_claims_.end() || it->second.front() == node.name;
}

uint32_t Fleet::Intern(const std::string& text) {
  return signatures_.try_emplace(text, static_cast<uint32_t>(signatures_.size())).first->second;
}

void Fleet::ClaimDevices(const Node& node) {
  for (const Device& device : node.inventory.devices) {
    // A processor's id comes from the machine id, which cloned machines share.
    if (device.kind == "cpu") continue;
    std::vector<std::string>& claims = gpu_claims_[device.uuid];
    if (std::find(claims.begin(), claims.end(), node.name) == claims.end()) {
      claims.push_back(node.name);
    }
  }
}

void Fleet::ReleaseDevices(const Node& node) {
  // By the node's own devices: a look at those of all for each hello and each end of a session
  // took seconds when a fleet of thousands came back at once.
  for (const Device& device : node.inventory.devices) {
    const auto it = gpu_claims_.find(device.uuid);
    if (it == gpu_claims_.end()) continue;
    std::erase(it->second, node.name);
    if (it->second.empty()) gpu_claims_.erase(it);
  }
}

}  // namespace assay
