// HeldGang: the resources of one gang's part on this node. Private to GangHost.
#ifndef ASSAY_AGENT_CELL_HELD_GANG_H_
#define ASSAY_AGENT_CELL_HELD_GANG_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/cell/device_lock.h"
#include "agent/cell/endpoint.h"
#include "agent/cell/gang_events.h"
#include "agent/cell/ports.h"
#include "agent/cell/record_lines.h"
#include "agent/cell/settle_rule.h"
#include "agent/cell/side_run.h"
#include "agent/host/rank_cpus.h"
#include "agent/process/child_process.h"

namespace assay {

// One local rank: its process, and its bytes turned into events.
class HeldRank final : public ChildObserver {
 public:
  HeldRank(std::string attempt, LocalRank place, Device device, std::function<void(GangEvent)> post)
      : attempt_(std::move(attempt)),
        place_(std::move(place)),
        device_(std::move(device)),
        post_(std::move(post)) {}

  void OnRecords(std::string_view bytes) override;
  void OnRecordsClosed() override;
  void OnGone(const ChildExit& exit) override;

  const LocalRank& place() const { return place_; }
  const Device& device() const { return device_; }
  const std::optional<ChildExit>& exit() const { return exit_; }

  std::unique_ptr<ChildProcess> child;
  std::optional<DeviceLock> lock;
  RankPlacement placement;
  uint64_t oom_kills_before = 0;

 private:
  void OnLine(std::string_view line, bool last);

  std::string attempt_;
  LocalRank place_;
  Device device_;
  std::function<void(GangEvent)> post_;
  RecordLines lines_;
  bool broken_ = false;  // garbage was seen: nothing that follows is believed
  std::optional<ChildExit> exit_;
};

// What runs beside the cell, from RunSide to SideEnded.
struct HeldSide {
  HeldSide(Side which, std::chrono::nanoseconds longest_silence, EventLoop& loop,
           OrphanReaper& reaper, const Clock& clock)
      : side(which),
        silence(longest_silence),
        began(clock.Now()),
        rule(silence, began),
        run(loop, reaper, clock) {}

  const Side side;
  const std::chrono::nanoseconds silence;
  const BootTime began;
  std::unique_ptr<HeatWatch> heat;  // of the settling load
  SettleRule rule;                  // the same
  SideRun run;
  std::optional<SideResult> result;  // decided; its processes are being ended
};

struct HeldGang {
  PrepareOrder order;
  std::vector<std::unique_ptr<HeldRank>> ranks;
  StackProgram stack;
  std::optional<BoundEndpoint> endpoint;
  std::unique_ptr<EndpointProbe> probe;
  std::unique_ptr<TelemetrySession> telemetry;
  std::unique_ptr<HeldSide> side;
  // Of the attempt's own telemetry, once it was ended.
  Record measured;
  std::vector<DeviceFault> faults;
  WallTime started_at{};
};

}  // namespace assay

#endif  // ASSAY_AGENT_CELL_HELD_GANG_H_
