// Fleet: the nodes that said hello, what they have, who holds them, and who rests after a refusal.
// Passive: it keeps facts and answers questions; CoordinatorState decides. State thread only.
#ifndef ASSAY_COORDINATOR_SCHEDULER_FLEET_H_
#define ASSAY_COORDINATOR_SCHEDULER_FLEET_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/clock/clock.h"
#include "common/fleet/inventory.h"
#include "coordinator/cell/events.h"
#include "coordinator/cell/rows.h"

namespace assay {

// Back-off of a node or of a GPU after refused offers.
struct Rest {
  int refusals = 0;  // in a row
  BootTime until{};
  std::string why;  // the last refusal in words
};

struct Node {
  std::string name;
  uint64_t epoch = 0;
  std::string machine_id, boot_id, instance, address;
  uint64_t hello_ordinal = 0;  // of the instance's newest hello
  NodeInventory inventory;
  uint64_t inventory_version = 0;    // grows with each inventory that differs
  std::vector<std::string> cards;    // of inventory.devices, in order
  std::vector<uint32_t> signatures;  // of inventory.devices: equal ones can run the same specs
  SessionHandle session = 0;         // 0: none
  bool seen = false;                 // said hello to this process
  BootTime last_heartbeat{};
  int64_t last_seen_unix_ms = 0;
  int64_t clock_ahead_ms = 0;   // its wall clock before ours, by its latest heartbeat
  bool user_draining = false;   // stored
  bool agent_draining = false;  // it leaves, or refused an offer so; until its next heartbeat
  bool lost = false;
  bool answers_doctor = false;
  std::string gang;    // attempt that holds the node; empty: free
  uint64_t gangs = 0;  // held so far: the least used of equals is taken
  Rest rest;
  std::map<std::string, Rest> device_rests;     // by UUID
  std::map<std::string, uint64_t> device_uses;  // by UUID

  bool Up() const { return session != 0; }
  bool Draining() const { return agent_draining || user_draining; }
};

class Fleet {
 public:
  Node* Find(std::string_view name);
  const Node* Find(std::string_view name) const;
  Node& Get(const std::string& name);  // made where it is not known
  Node* OfSession(SessionHandle session);
  std::map<std::string, Node, std::less<>>& nodes() { return nodes_; }
  const std::map<std::string, Node, std::less<>>& nodes() const { return nodes_; }

  void Attach(Node& node, SessionHandle session);
  void Detach(Node& node);

  // True where something that matters to placing differs from before.
  bool SetInventory(Node& node, NodeInventory inventory, std::vector<std::string> cards);

  // A device may be offered: usable, and no other connected node offers the same GPU. Two agents on
  // one machine see the same GPUs; the first to say hello has them.
  bool Offers(const Node& node, const Device& device) const;

 private:
  uint32_t Intern(const std::string& text);
  void ClaimDevices(const Node& node);
  void ReleaseDevices(const Node& node);

  std::map<std::string, Node, std::less<>> nodes_;
  std::unordered_map<SessionHandle, std::string> sessions_;
  // UUID to the connected nodes that offer it; the first of them has it.
  std::unordered_map<std::string, std::vector<std::string>> gpu_claims_;
  std::unordered_map<std::string, uint32_t> signatures_;
};

}  // namespace assay

#endif  // ASSAY_COORDINATOR_SCHEDULER_FLEET_H_
