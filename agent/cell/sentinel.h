// The sentinel: a fixed cell by which a GPU is compared with itself over a session, so that what
// drifts (heat of the room, a neighbour, a driver's daemon) is seen and what lies between is
// marked.
//
// When: at the first settled cell, whenever the GPU had to be settled again, every kSentinelPeriod
// before the next cell, and behind the last cell of a session (docs/adr/0004-sentinel.md).
// Pure. Thread rule: one owner.
#ifndef ASSAY_AGENT_CELL_SENTINEL_H_
#define ASSAY_AGENT_CELL_SENTINEL_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/clock/clock.h"
#include "common/fleet/inventory.h"
#include "common/matrix/spec.h"

namespace assay {

inline constexpr std::chrono::minutes kSentinelPeriod{15};
// From the start of its processes: 10 s of measuring behind a start from a cold disk.
inline constexpr std::chrono::seconds kSentinelLimit{300};

// The same for equal cards with the same stack: training of ResNet-50, AMP fp16 where the card has
// tensor cores, ten seconds, at a batch that keeps the card and not the host busy and fits beside
// its memory class. nullopt where the stack has no such cell.
std::optional<Spec> SentinelSpec(const Device& device, const Stack& stack);

// What the sentinels of this agent's GPUs said. Readings of one set of GPUs under one stack are a
// series, numbered from 1.
class SentinelBook {
 public:
  struct Reading {
    std::string series;  // the attempt before which its first one ran
    int64_t index = 0;
    double throughput = 0;  // of all GPUs of the set together
  };

  // `cold`: the GPUs had to be settled.
  bool Due(const std::vector<std::string>& uuids, const std::string& stack, bool cold,
           BootTime now) const;
  // One ran. Without a throughput it failed: it is not due again before its period is over, and
  // what comes next has no reading before it.
  void Note(const std::vector<std::string>& uuids, const std::string& stack,
            const std::string& attempt, std::optional<double> throughput, BootTime now);
  std::optional<Reading> Last(const std::vector<std::string>& uuids,
                              const std::string& stack) const;

 private:
  struct Series {
    Reading last;
    bool known = false;  // the last one succeeded
    BootTime at{};
  };
  std::map<std::pair<std::vector<std::string>, std::string>, Series> series_;
};

}  // namespace assay

#endif  // ASSAY_AGENT_CELL_SENTINEL_H_
