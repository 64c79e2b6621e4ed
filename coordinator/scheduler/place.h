// Place: where a spec can run for a target, from what the fleet has. Pure; state thread.
#ifndef ASSAY_COORDINATOR_SCHEDULER_PLACE_H_
#define ASSAY_COORDINATOR_SCHEDULER_PLACE_H_

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/matrix/matrix.h"
#include "coordinator/scheduler/coordinator_state.h"
#include "coordinator/scheduler/fleet.h"

namespace assay {

// What a spec is placed on.
struct Target {
  std::string name;  // card, node or GPU UUID
  bool simulated = false;
  friend auto operator<=>(const Target&, const Target&) = default;
};

// A node that can carry its share of the gang.
struct Candidate {
  std::string node;
  std::string stack;
  std::string runner;
  bool simulated = false;          // the stack is
  uint64_t inventory_version = 0;  // of the node, to which `devices` belongs
  std::vector<size_t> devices;  // of the node's inventory, all of one card; at least `gpus` of them
};

// Where equal specs can go. Two specs with equal keys can go to the same places.
struct Place {
  std::string key;
  int64_t gpus = 1;
  int64_t nodes = 1;
  bool everywhere = false;            // colocate: all, every device of a candidate at once
  std::vector<Candidate> candidates;  // by node name; empty where it cannot run
  bool absent = false;                // no connected node has the target
  std::string reason;                 // code, where it cannot run
  std::string message;
  bool CanRun() const { return !candidates.empty(); }
  // Devices that a gang takes of a candidate.
  int64_t DevicesOf(const Candidate& candidate) const {
    return everywhere ? static_cast<int64_t>(candidate.devices.size()) : gpus;
  }
};

// Keeps what ChooseStack answered, by spec and device signature; one for each run.
class PlaceFinder {
 public:
  PlaceFinder(const CoordinatorDeps& deps, const Selection& select)
      : deps_(deps), select_(select) {}

  // Targets that the fleet has for this selection now, in the order of their names.
  std::vector<Target> TargetsOf(const Fleet& fleet) const;

  Place Find(const Fleet& fleet, const Spec& spec, const Target& target);

 private:
  struct Answer {
    std::string stack, runner;
    bool simulated = false;
    std::string reason, message;
  };
  bool Matches(const Fleet& fleet, const Node& node, size_t device, const Target& target) const;
  const Answer& Ask(const Spec& spec, const Node& node, size_t device);
  // `nodes` over 1: every member must run the same build, or NCCL hangs without a word.
  void FindMultiNode(const Spec& spec,
                     const std::vector<std::pair<const Node*, std::vector<size_t>>>& homes,
                     Place& place) const;

  const CoordinatorDeps& deps_;
  const Selection& select_;
  std::unordered_map<uint64_t, Answer> answers_;
};

}  // namespace assay

#endif  // ASSAY_COORDINATOR_SCHEDULER_PLACE_H_
