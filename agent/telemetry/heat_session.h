// HeatSession: temperature and SM clock of some GPUs at 10 Hz, by a thread of its own, until they
// are flat under load (FlatTest). Thread rule: as HeatWatch; the Nvml must outlive it.
#ifndef ASSAY_AGENT_TELEMETRY_HEAT_SESSION_H_
#define ASSAY_AGENT_TELEMETRY_HEAT_SESSION_H_

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "agent/cell/ports.h"
#include "agent/telemetry/flat_test.h"
#include "agent/telemetry/nvml.h"
#include "common/clock/clock.h"
#include "common/sync/mutex.h"

namespace assay {

class HeatSession final : public HeatWatch {
 public:
  // `nvml` and `clock` outlive this.
  HeatSession(Nvml* nvml, const Clock* clock, std::chrono::milliseconds period,
              std::vector<std::string> uuids);
  ~HeatSession() override;

  void LoadBegan() override;
  HeatReading Read() override;

 private:
  struct One {
    FlatTest test;
    std::optional<NvmlSample> last;  // the newest that was answered
  };
  void Work();

  Nvml* const nvml_;
  const Clock* const clock_;
  const std::chrono::milliseconds period_;
  const std::vector<std::string> uuids_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<One> devices_ ASSAY_GUARDED_BY(mutex_);
  bool stopping_ ASSAY_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace assay

#endif  // ASSAY_AGENT_TELEMETRY_HEAT_SESSION_H_
