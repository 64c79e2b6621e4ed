#include "agent/telemetry/heat_session.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace assay {
namespace {

// Of two slopes the one that is farther from flat.
void Steeper(std::optional<double>& worst, const std::optional<double>& slope) {
  if (slope && (!worst || std::abs(*slope) > std::abs(*worst))) worst = slope;
}

}  // namespace

HeatSession::HeatSession(Nvml* nvml, const Clock* clock, std::chrono::milliseconds period,
                         std::vector<std::string> uuids)
    : nvml_(nvml),
      clock_(clock),
      period_(period),
      uuids_(std::move(uuids)),
      devices_(uuids_.size()) {
  thread_ = std::thread([this] { Work(); });
}

HeatSession::~HeatSession() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

void HeatSession::LoadBegan() {
  MutexLock lock(mutex_);
  for (One& device : devices_) device.test.Restart();
}

HeatReading HeatSession::Read() {
  MutexLock lock(mutex_);
  HeatReading reading;
  reading.flat = !devices_.empty();
  reading.sensors = HeatReading::Sensors::kThere;
  for (const One& device : devices_) {
    reading.flat = reading.flat && device.test.Flat();
    Steeper(reading.celsius_per_second, device.test.celsius_per_second());
    Steeper(reading.clock_ratio_per_second, device.test.clock_ratio_per_second());
    if (!device.last) {
      if (reading.sensors == HeatReading::Sensors::kThere) {
        reading.sensors = HeatReading::Sensors::kNotYet;
      }
    } else if (!device.last->temperature_celsius || !device.last->sm_clock_hertz) {
      reading.sensors = HeatReading::Sensors::kMissing;
    } else {
      reading.celsius = std::max(reading.celsius.value_or(*device.last->temperature_celsius),
                                 *device.last->temperature_celsius);
    }
  }
  return reading;
}

void HeatSession::Work() {
  for (;;) {
    for (size_t i = 0; i < uuids_.size(); ++i) {
      const BootTime at = clock_->Now();
      const auto sample = nvml_->Sample(uuids_[i]);
      if (!sample.ok()) continue;
      MutexLock lock(mutex_);
      devices_[i].last = *sample;
      if (sample->temperature_celsius && sample->sm_clock_hertz) {
        devices_[i].test.Add(at, *sample->temperature_celsius, *sample->sm_clock_hertz);
      }
    }
    MutexLock lock(mutex_);
    const BootTime until = BootClock::now() + period_;
    while (!stopping_ && BootClock::now() < until) {
      changed_.WaitFor(mutex_, until - BootClock::now());
    }
    if (stopping_) return;
  }
}

}  // namespace assay
