#include "agent/cell/gang_host.h"

#include <fmt/format.h>

#include <utility>

#include "agent/cell/cgroup_memory.h"
#include "agent/cell/rank_result.h"
#include "common/log/log.h"
#include "common/status/status.h"

namespace assay {
namespace {

// A connection within a machine room takes milliseconds; a dropped first packet costs a second.
constexpr std::chrono::seconds kProbeLimit{5};
// For KillFormerGangs: SIGKILL works in milliseconds, unless a driver holds a process.
constexpr std::chrono::seconds kFormerGangsLimit{5};

// Every rank is a world of its own: the same cell on all GPUs at once.
bool IsApart(const PrepareOrder& order) { return order.spec.colocate == "all"; }

std::string RunnerDeviceKind(const Device& device) {
  if (device.simulated) return "simulated";
  return device.kind == "cpu" ? "cpu" : "cuda";
}

}  // namespace

GangHost::GangHost(EventLoop& loop, OrphanReaper& reaper, const Clock& clock,
                   const StackCatalog& stacks, DeviceTelemetry& telemetry, GangOutbox& outbox,
                   GangHostOptions options)
    : loop_(loop),
      reaper_(reaper),
      clock_(clock),
      stacks_(stacks),
      telemetry_(telemetry),
      outbox_(outbox),
      options_(std::move(options)),
      files_(options_.state_dir),
      machine_(options_.node),
      timer_(loop, [this] { Post(gang_event::Tick{}); }) {}

GangHost::~GangHost() { *alive_ = false; }

absl::Status GangHost::Open() {
  ASSAY_RETURN_IF_ERROR(files_.Open());
  const FormerGangs former = files_.KillFormerGangs(kFormerGangsLimit);
  former_gangs_ended_ = former.all_ended;
  if (former.killed > 0) {
    spdlog::warn("ended {} processes that a killed agent had left behind", former.killed);
  }
  return absl::OkStatus();
}

void GangHost::Post(const GangEvent& event) {
  if (!draining_events_) outbox_.CatchUp();
  events_.push_back(event);
  Drain();
}

void GangHost::Drain() {
  // An action may end in an event (a refused lock), and a child's callback may come from within an
  // action; both wait their turn here.
  if (draining_events_) return;
  draining_events_ = true;
  while (!events_.empty()) {
    const std::vector<GangEvent> events = std::exchange(events_, {});
    for (const GangEvent& event : events) {
      const std::vector<std::string> before = machine_.HeldAttempts();
      for (const GangAction& action : machine_.Step(event, clock_.Now())) {
        std::visit([this](const auto& a) { Apply(a); }, action);
      }
      if (machine_.HeldAttempts() != before) outbox_.HeldChanged();
    }
  }
  draining_events_ = false;
  timer_.Set(machine_.NextDeadline());
}

const Device* GangHost::FindDevice(const std::string& uuid) const {
  for (const Device& device : devices_) {
    if (device.uuid == uuid) return &device;
  }
  return nullptr;
}

// --- taking part

std::optional<GangHost::Refusal> GangHost::TakeDevices(HeldGang& held) {
  for (const std::unique_ptr<HeldRank>& rank : held.ranks) {
    const Device& device = rank->device();
    if (!device.usable) {
      return Refusal{refusal::kGpuGone, fmt::format("{} is not usable", device.uuid)};
    }
    if (device.kind == "mig" && held.order.members.size() > 1) {
      return Refusal{
          refusal::kBadOffer,
          fmt::format("{} is a MIG slice, and slices cannot work together", device.uuid)};
    }
    absl::StatusOr<DeviceLock> lock = DeviceLock::Acquire(options_.lock_dir, device.uuid);
    if (!lock.ok()) {
      // Only what passes by itself is "busy", which is asked for again without end.
      const bool held = absl::IsResourceExhausted(lock.status());
      return Refusal{held ? refusal::kGpuBusy : refusal::kLockFailed, Message(lock.status())};
    }
    rank->lock = *std::move(lock);
  }
  return std::nullopt;
}

std::optional<GangHost::Refusal> GangHost::FindStack(HeldGang& held) {
  absl::StatusOr<StackProgram> stack = stacks_.Find(held.order.stack);
  if (!stack.ok()) return Refusal{refusal::kStackMissing, Message(stack.status())};
  held.stack = *std::move(stack);
  for (const std::unique_ptr<HeldRank>& rank : held.ranks) {
    if (rank->device().simulated && !held.stack.stack.simulated) {
      return Refusal{refusal::kStackMissing,
                     fmt::format("{} is simulated and takes only simulated stacks, not {}",
                                 rank->device().uuid, held.order.stack)};
    }
  }
  return std::nullopt;
}

std::optional<GangHost::Refusal> GangHost::MakeEndpoint(HeldGang& held) {
  if (IsApart(held.order) || held.order.members.size() < 2 ||
      held.ranks.front()->place().rank != 0) {
    return std::nullopt;
  }
  absl::StatusOr<BoundEndpoint> endpoint = BindEndpoint(options_.endpoint_host);
  if (!endpoint.ok()) return Refusal{refusal::kUnreachable, Message(endpoint.status())};
  held.endpoint = *std::move(endpoint);
  return std::nullopt;
}

void GangHost::Apply(const gang_action::Acquire& action) {
  const std::string& attempt = action.order.attempt;
  const auto refuse = [&](const Refusal& refusal) {
    // A busy device is nobody's fault and is asked for again and again.
    if (refusal.reason != refusal::kGpuBusy) {
      spdlog::warn("refused {}: {}: {}", attempt, refusal.reason, refusal.message);
    }
    held_.erase(attempt);
    events_.push_back(gang_event::PrepareFailed{attempt, refusal.reason, refusal.message});
  };
  auto owned = std::make_unique<HeldGang>();
  HeldGang& held = *owned;
  held.order = action.order;
  for (const LocalRank& place : action.ranks) {
    const Device* device = FindDevice(place.gpu_uuid);
    if (device == nullptr) {
      return refuse({refusal::kGpuGone,
                     fmt::format("node {} has no device {}", options_.node, place.gpu_uuid)});
    }
    held.ranks.push_back(std::make_unique<HeldRank>(
        attempt, place, *device, [this](const GangEvent& event) { Post(event); }));
  }
  held_[attempt] = std::move(owned);
  if (const absl::Status disk = files_.CheckDiskSpace(); !disk.ok()) {
    return refuse({refusal::kDiskFull, Message(disk)});
  }
  for (auto step : {&GangHost::FindStack, &GangHost::TakeDevices, &GangHost::MakeEndpoint}) {
    if (const std::optional<Refusal> refusal = (this->*step)(held)) return refuse(*refusal);
  }
  const bool has_rank_zero = held.ranks.front()->place().rank == 0;
  if (held.order.members.size() < 2 || has_rank_zero) {
    events_.push_back(gang_event::Prepared{
        attempt, held.endpoint ? held.endpoint->address : std::string(), held.stack.stack.digest});
    return;
  }
  held.probe = std::make_unique<EndpointProbe>(
      loop_, held.order.endpoint, kProbeLimit, [this, attempt](const absl::Status& status) {
        if (status.ok()) return Post(gang_event::Prepared{attempt, ""});
        held_.erase(attempt);
        Post(gang_event::PrepareFailed{attempt, refusal::kUnreachable, Message(status)});
      });
}

void GangHost::Apply(const gang_action::Release& action) { held_.erase(action.attempt); }

// --- running

void GangHost::Apply(const gang_action::Spawn& action) {
  const auto found = held_.find(action.attempt);
  if (found == held_.end()) return;
  HeldGang& held = *found->second;
  std::vector<std::string> uuids;
  std::vector<uint32_t> ranks;
  for (const auto& rank : held.ranks) {
    uuids.push_back(rank->device().uuid);
    ranks.push_back(rank->place().rank);
  }
  held.telemetry = telemetry_.Begin(uuids);
  held.started_at = clock_.WallNow();
  // Twice: without the ids before, so that the mark finds what a kill in between leaves.
  absl::Status recorded = files_.RecordPids(action.attempt, ranks, {});
  // A coordinator that was started anew may not know it; the Prepare named it.
  const std::string& given = action.endpoint.empty() ? held.order.endpoint : action.endpoint;
  const std::string endpoint = held.endpoint ? held.endpoint->address : given;
  std::vector<pid_t> pids;
  for (const auto& rank : held.ranks) {
    absl::Status status = recorded.ok() ? SpawnRank(held, *rank, endpoint) : recorded;
    if (status.ok()) {
      pids.push_back(rank->child->pid());
    } else {
      events_.push_back(
          gang_event::SpawnFailed{action.attempt, rank->place().rank,
                                  fmt::format("cannot start the runner: {}", Message(status))});
    }
  }
  // The child has its own copy now.
  if (held.endpoint) held.endpoint->socket.Reset();
  if (recorded.ok()) recorded = files_.RecordPids(action.attempt, ranks, pids);
  if (!recorded.ok()) spdlog::warn("{}", Message(recorded));
}

CellFile GangHost::CellOf(const HeldGang& held, const HeldRank& rank) const {
  CellFile cell;
  cell.attempt = held.order.attempt;
  cell.run = held.order.run;
  cell.cell = held.order.cell;
  cell.repeat = held.order.repeat;
  cell.stack = held.order.stack;
  cell.spec = held.order.spec;
  if (IsApart(held.order)) {
    // As long on every GPU: none may be without its neighbours for a part of its window.
    cell.spec.stop.min_seconds = cell.spec.stop.max_seconds;
  } else {
    cell.rank = static_cast<int>(rank.place().rank);
    cell.local_rank = static_cast<int>(rank.place().local_rank);
    cell.world_size = static_cast<int>(held.order.members.size());
  }
  cell.device_kind = RunnerDeviceKind(rank.device());
  cell.device_uuid = rank.device().uuid;
  cell.device_ordinal = 0;  // the only one it sees
  cell.card = options_.card_name ? options_.card_name(rank.device()) : rank.device().raw_name;
  cell.seed = held.order.seed;
  cell.spawned_at_boot_ns = clock_.Now().time_since_epoch().count();
  return cell;
}

absl::StatusOr<ChildSpec> GangHost::ChildOf(const HeldGang& held, const HeldRank& rank,
                                            const CellFile& cell, const std::string& name) {
  ASSAY_ASSIGN_OR_RETURN(const std::string cell_path, files_.WriteCell(cell, name));
  ChildSpec spec;
  spec.program = held.stack.program;
  spec.arguments = {
      "--cell",
      cell_path,
      "--records",
      fmt::format("fd:{}", kRecordsFd),
      "--lifeline",
      fmt::format("fd:{},{:g}", kLifelineFd, std::chrono::duration<double>(lifeline_).count())};
  spec.environment = RunnerEnvironment(options_.environment, held.stack.environment, rank.device());
  spec.mark = fmt::format("{}/{}", held.order.attempt, rank.place().rank);
  spec.log_path = files_.LogPath(held.order.attempt, static_cast<int>(rank.place().rank), name);
  spec.lifeline_interval = lifeline_ / 4;
  spec.passed_fds = {-1, rank.lock->fd()};
  spec.cpus = PlaceRank(rank.device()).near;
  return spec;
}

absl::Status GangHost::SpawnRank(HeldGang& held, HeldRank& rank, const std::string& endpoint) {
  CellFile cell = CellOf(held, rank);
  cell.endpoint = cell.world_size > 1 ? endpoint : "";
  const std::string name =
      IsApart(held.order) ? fmt::format("apart{}", rank.place().rank) : std::string();
  ASSAY_ASSIGN_OR_RETURN(ChildSpec spec, ChildOf(held, rank, cell, name));
  if (rank.place().rank == 0 && held.endpoint.has_value()) {
    spec.passed_fds[0] = held.endpoint->socket.get();
  }
  rank.placement = PlaceRank(rank.device());
  rank.oom_kills_before = OomKillCount();
  ASSAY_ASSIGN_OR_RETURN(rank.child, ChildProcess::Spawn(loop_, reaper_, spec, rank));
  rank.placement.cpus = AffinityOf(rank.child->pid());
  return absl::OkStatus();
}

RankPlacement GangHost::PlaceRank(const Device& device) const {
  RankPlacement placement;
  placement.has_gpu = device.kind != "cpu" && !device.simulated;
  if (!placement.has_gpu) return placement;
  placement.numa_node = device.numa_node;
  if (options_.pin) {
    placement.near = CpusOfNode(options_.sys_root, device.numa_node, AffinityOf(0));
  }
  return placement;
}

void GangHost::Apply(const gang_action::StopRank& action) {
  const auto found = held_.find(action.attempt);
  if (found == held_.end()) return;
  for (const auto& rank : found->second->ranks) {
    if (rank->place().rank == action.rank && rank->child) rank->child->Stop(action.grace);
  }
}

void GangHost::Apply(const gang_action::WindowBegin& action) {
  const auto found = held_.find(action.attempt);
  if (found != held_.end() && found->second->telemetry) found->second->telemetry->WindowBegin();
}

void GangHost::Apply(const gang_action::WindowEnd& action) {
  const auto found = held_.find(action.attempt);
  if (found != held_.end() && found->second->telemetry) found->second->telemetry->WindowEnd();
}

void GangHost::Apply(const gang_action::Send& action) {
  std::visit([this](const auto& message) { outbox_.Send(message); }, action.message);
}

void GangHost::Apply(const gang_action::Warn& action) { spdlog::warn("{}", action.message); }

void GangHost::FinishTelemetry(HeldGang& held) {
  if (held.telemetry == nullptr) return;
  std::vector<ProcessUsage> usage;
  for (const auto& rank : held.ranks) {
    if (!rank->exit()) continue;
    usage.push_back({rank->exit()->peak_resident_bytes, rank->exit()->user_seconds,
                     rank->exit()->system_seconds});
  }
  held.measured = held.telemetry->Finish(usage);
  held.faults = held.telemetry->Faults();
  held.telemetry.reset();
}

void GangHost::Apply(const gang_action::Finish& action) {
  AttemptReport report = action.report;
  if (const auto found = held_.find(report.attempt); found != held_.end()) {
    HeldGang& held = *found->second;
    report.started_at = held.started_at;
    FinishTelemetry(held);
    // The machine's word on a window of several ranks stands over the sampler's.
    Record telemetry = std::move(held.measured);
    telemetry.Merge(report.telemetry);
    report.telemetry = std::move(telemetry);
    for (const DeviceFault& fault : held.faults) BlameDevice(fault, &report.ranks);
    if (const HeldRank& first = *held.ranks.front(); !first.device().simulated) {
      FillPlacement(first.placement, options_.sys_root, report.telemetry);
    }
    if (!held.stack.stack.digest.empty()) {
      report.telemetry.SetText(Field::kStackDigest, held.stack.stack.digest);
    }
    // Not now: this may run within a callback of one of its children.
    std::shared_ptr<HeldGang> dying(std::move(found->second));
    held_.erase(found);
    for (const auto& rank : dying->ranks) rank->lock.reset();
    loop_.Post([dying] {});
  }
  files_.ForgetPids(report.attempt);
  outbox_.Report(std::move(report));
}

}  // namespace assay
