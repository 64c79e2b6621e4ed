// HeatBook: which GPUs of this node are warm, and whether they came to their temperature.
//
// A card is warm for kMostIdle after its last load. What its last settling came to holds until it
// was without load for longer. Pure. Thread rule: one owner.
#ifndef ASSAY_AGENT_CELL_HEAT_BOOK_H_
#define ASSAY_AGENT_CELL_HEAT_BOOK_H_

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/clock/clock.h"

namespace assay {

// The die of a card follows its load within seconds, its heat sink within a minute.
inline constexpr std::chrono::seconds kMostIdle{30};

class HeatBook {
 public:
  // An attempt begins on these: those that went cold must be settled again.
  void Arrive(const std::vector<std::string>& uuids, BootTime now);
  // They were under load until `now`.
  void NoteLoad(const std::vector<std::string>& uuids, BootTime now);
  void NoteSettled(const std::vector<std::string>& uuids, bool settled);
  // True where all are settled, false where one is not; nullopt where one was not settled since it
  // was cold.
  std::optional<bool> Settled(const std::vector<std::string>& uuids) const;

 private:
  struct One {
    std::optional<BootTime> loaded_until;
    std::optional<bool> settled;
  };
  std::map<std::string, One> gpus_;
};

}  // namespace assay

#endif  // ASSAY_AGENT_CELL_HEAT_BOOK_H_
