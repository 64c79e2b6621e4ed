// SettleRule: when the load that brings a GPU to its temperature begins and ends.
//
//   sensors answer -> the load is started -> every rank measures -> temperature and clock are flat
//
// It ends without that at kSettleCap, where a sensor is missing, or where the load is no load: its
// runner left, or was silent for as long as would make a cell `hung`. Pure: looked at a few times a
// second with the boot clock's time. Thread rule: one owner.
#ifndef ASSAY_AGENT_CELL_SETTLE_RULE_H_
#define ASSAY_AGENT_CELL_SETTLE_RULE_H_

#include <chrono>
#include <optional>

#include "agent/cell/gang_events.h"
#include "agent/cell/ports.h"
#include "common/clock/clock.h"

namespace assay {

// From the start of the load's processes. A card that is not flat by then is on a machine whose
// cooling moves by itself.
inline constexpr std::chrono::seconds kSettleCap{600};
// For the first answer of the sensors.
inline constexpr std::chrono::seconds kSensorWait{3};

// What became of the processes that make the load.
struct SettleLoad {
  bool measuring = false;  // all of them, past their warm-up
  bool gone = false;       // one has left
  BootTime last_sign{};    // of the one that was silent longest
};

enum class SettleStep { kWait, kStartLoad, kLoadBegan, kEnd };

class SettleRule {
 public:
  SettleRule(std::chrono::nanoseconds silence, BootTime now) : silence_(silence), asked_(now) {}

  // `load` is looked at from kStartLoad on. After kEnd every further call says kEnd.
  SettleStep Look(BootTime now, const HeatReading& heat, const SettleLoad& load);
  // After kEnd.
  const SideResult& result() const { return result_; }

 private:
  SettleStep End(BootTime now, const HeatReading& heat, std::string why, bool hopeless);

  const std::chrono::nanoseconds silence_;
  const BootTime asked_;
  std::optional<BootTime> started_;
  bool counting_ = false;
  bool ended_ = false;
  SideResult result_;
};

}  // namespace assay

#endif  // ASSAY_AGENT_CELL_SETTLE_RULE_H_
