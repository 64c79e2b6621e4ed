#include "agent/cell/settle_rule.h"

#include <fmt/format.h>

#include <utility>

namespace assay {

SettleStep SettleRule::Look(BootTime now, const HeatReading& heat, const SettleLoad& load) {
  using Sensors = HeatReading::Sensors;
  if (ended_) return SettleStep::kEnd;
  if (!started_) {
    if (heat.sensors == Sensors::kThere) {
      started_ = now;
      result_.begin_celsius = heat.celsius;
      return SettleStep::kStartLoad;
    }
    const bool silent = heat.sensors == Sensors::kNotYet && now - asked_ >= kSensorWait;
    if (!silent && heat.sensors != Sensors::kMissing) return SettleStep::kWait;
    return End(now, heat,
               silent ? "the sensors do not answer" : "there is no thermometer or no SM clock",
               true);
  }
  if (load.gone) return End(now, heat, "the load ended by itself", false);
  if (counting_ && heat.flat) return End(now, heat, "", false);
  if (now - *started_ >= kSettleCap) {
    return End(now, heat, fmt::format("not flat within {} s", kSettleCap.count()), true);
  }
  if (now - load.last_sign >= silence_) {
    return End(now, heat, "the load's runner gave no sign of life", false);
  }
  if (!counting_ && load.measuring) {
    counting_ = true;
    return SettleStep::kLoadBegan;
  }
  return SettleStep::kWait;
}

SettleStep SettleRule::End(BootTime now, const HeatReading& heat, std::string why, bool hopeless) {
  ended_ = true;
  result_.applies = true;
  result_.done = why.empty();
  result_.hopeless = hopeless;
  result_.why = std::move(why);
  if (started_) {
    result_.seconds = std::chrono::duration<double>(now - *started_).count();
    result_.end_celsius = heat.celsius;
  }
  if (counting_) {
    result_.celsius_per_second = heat.celsius_per_second;
    result_.clock_ratio_per_second = heat.clock_ratio_per_second;
  }
  return SettleStep::kEnd;
}

}  // namespace assay
