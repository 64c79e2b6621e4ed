// Agents: hello, heartbeats, leases, draining and the end of sessions.
#include <fmt/format.h>

#include <algorithm>

#include "common/text/did_you_mean.h"
#include "common/version.h"
#include "coordinator/scheduler/state_impl.h"

namespace assay {
namespace {

bool SharesGpu(const NodeInventory& a, const NodeInventory& b) {
  for (const Device& x : a.devices) {
    for (const Device& y : b.devices) {
      if (x.uuid == y.uuid) return true;
    }
  }
  return false;
}

bool Contains(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

}  // namespace

// A node is one machine: the same machine id, and GPUs in common, since cloned machines share the
// former. A newer session of the same agent replaces the older one; another agent of that name is
// refused while the first is alive, or could be.
std::optional<message::Refuse> CoordinatorState::Impl::RefusalOf(const event::AgentHello& e) const {
  if (e.protocol > kFleetProtocol || e.protocol + 1 < kFleetProtocol || e.protocol == 0) {
    return message::Refuse{
        "protocol",
        fmt::format("agent {} of {} speaks fleet protocol {}, coordinator {} speaks {}; install "
                    "matching versions",
                    e.inventory.agent_version, e.address, e.protocol, kVersion, kFleetProtocol),
        false};
  }
  constexpr size_t kLongestName = 253;  // of a DNS name
  if (e.inventory.node.empty() || e.inventory.node.size() > kLongestName) {
    return message::Refuse{
        "not_admitted",
        fmt::format("the agent of {} gives no usable node name; set one with --node", e.address),
        false};
  }
  const Node* node = fleet_.Find(e.inventory.node);
  if (node == nullptr || !node->seen || node->instance == e.instance) return std::nullopt;
  const bool same_machine = node->machine_id == e.inventory.machine_id &&
                            (SharesGpu(node->inventory, e.inventory) ||
                             node->inventory.devices.empty() || e.inventory.devices.empty());
  const bool lease_runs = now_ < node->last_heartbeat + times_.lease;
  if (node->Up() && lease_runs) {
    return message::Refuse{
        "duplicate_node",
        fmt::format("node name {} is in use by the agent at {}; the agent at {} must take another "
                    "with --node, or wait until the first has left",
                    e.inventory.node, node->address, e.address),
        same_machine};
  }
  if (!same_machine && lease_runs && !node->lost) {
    return message::Refuse{
        "duplicate_node",
        fmt::format("node name {} belongs to the agent last seen at {}, which may come back for "
                    "{:.0f} s; the agent at {} must take another name with --node or wait",
                    e.inventory.node, node->address,
                    Seconds(node->last_heartbeat + times_.lease - now_), e.address),
        true};
  }
  return std::nullopt;
}

void CoordinatorState::Impl::SetInventory(Node& node, NodeInventory inventory) {
  // One GPU twice in one list would be two cells at once on it.
  std::set<std::string> seen;
  for (Device& device : inventory.devices) {
    if (!seen.insert(device.uuid).second) {
      device.usable = false;
      device.warnings.push_back(fmt::format("listed twice: {}", device.uuid));
    }
  }
  std::vector<std::string> cards;
  for (const Device& device : inventory.devices) cards.push_back(deps_.card_of(device));
  inventory.node = node.name;
  if (fleet_.SetInventory(node, std::move(inventory), std::move(cards))) places_dirty_ = true;
}

// Gangs that the agent knows nothing of any more are settled; returns what it holds and must kill.
// `vouched`: what a former instance ran is over. Else its runners have until their lifeline.
std::vector<std::string> CoordinatorState::Impl::ReconcileHello(Node& node,
                                                                const event::AgentHello& e,
                                                                bool same_instance, bool vouched) {
  std::vector<std::string> unknown;
  for (const std::string& attempt : e.held_attempts) {
    const auto it = gangs_.find(attempt);
    if (it == gangs_.end() || !it->second.Started() || it->second.PartOf(node.name) == nullptr) {
      unknown.push_back(attempt);
    }
  }
  std::vector<std::string> mine;
  for (auto& [attempt, gang] : gangs_) {
    if (gang.PartOf(node.name) != nullptr) mine.push_back(attempt);
  }
  for (const std::string& attempt : mine) {
    const auto it = gangs_.find(attempt);
    if (it == gangs_.end()) continue;
    Gang& gang = it->second;
    GangPart& part = *gang.PartOf(node.name);
    if (!gang.Started()) {
      ReleaseGang(attempt);  // its Prepare went to a session that is no more
      continue;
    }
    part.absent = 0;
    part.spooled = Contains(e.spooled_attempts, attempt);
    gang.last_sign = now_;
    if (Contains(e.held_attempts, attempt)) {
      part.gone_at.reset();
      if (gang.phase == GangPhase::kEnding) AbortGang(gang, std::nullopt);
    } else if (!part.spooled && !part.Settled()) {
      // A wait goes on through a later session: it is for runners of an instance before this one.
      if (vouched || (same_instance && !part.gone_at.has_value())) {
        GonePart(gang, part,
                 same_instance ? "its agent holds it no longer" : "its agent was started anew");
        FinishIfSettled(attempt);
      } else if (!part.gone_at.has_value()) {
        part.gone_at = now_ + times_.lifeline + times_.kill_grace;
      }
    }
  }
  return unknown;
}

void CoordinatorState::Impl::On(const event::AgentHello& e) {
  if (const Node* named = fleet_.OfSession(e.session);
      named != nullptr && named->name != e.inventory.node) {
    return;  // a session has one name for life
  }
  if (const Node* known = fleet_.Find(e.inventory.node);
      known != nullptr && known->instance == e.instance && e.ordinal != 0 &&
      e.ordinal <= known->hello_ordinal) {
    return CloseNow(e.session);  // overtaken by a later one: what it says is not so any more
  }
  sessions_.insert(e.session);
  if (auto refuse = RefusalOf(e); refuse.has_value()) {
    actions_.sends.push_back({e.session, *refuse, 0});
    return CloseNow(e.session);
  }
  Node& node = fleet_.Get(e.inventory.node);
  const bool same_instance = node.instance == e.instance;
  // Only for the machine and the boot on which the former instance ran its gangs.
  const bool vouched = e.former_gangs_ended && !e.inventory.boot_id.empty() &&
                       node.machine_id == e.inventory.machine_id &&
                       node.boot_id == e.inventory.boot_id;
  if (node.Up() && node.session != e.session) CloseNow(node.session);
  fleet_.Attach(node, e.session);
  node.seen = true;
  node.epoch += 1;
  node.machine_id = e.inventory.machine_id;
  node.boot_id = e.inventory.boot_id;
  node.instance = e.instance;
  node.hello_ordinal = e.ordinal;
  node.address = e.address;
  node.last_heartbeat = now_;
  node.last_seen_unix_ms = WallMs();
  node.clock_ahead_ms = 0;
  node.agent_draining = false;
  node.answers_doctor = e.answers_doctor;
  if (!same_instance) {
    node.rest = Rest();
    node.device_rests.clear();
  }
  SetInventory(node, e.inventory);
  places_dirty_ = true;
  PersistNode(node);
  message::Welcome welcome;
  welcome.session_epoch = node.epoch;
  welcome.protocol = e.protocol;
  welcome.heartbeat_seconds = Seconds(times_.heartbeat);
  welcome.lease_seconds = Seconds(times_.lease);
  welcome.lifeline_seconds = Seconds(times_.lifeline);
  welcome.kill_grace_seconds = Seconds(times_.kill_grace);
  // The Welcome goes before any Abort that the reconciling sends.
  const size_t place = fresh_.size();
  welcome.unknown_attempts = ReconcileHello(node, e, same_instance, vouched);
  fresh_.insert(fresh_.begin() + static_cast<std::ptrdiff_t>(place),
                Held{0, SendToAgent{e.session, std::move(welcome), 0}});
  // What an agent says of draining is what a coordinator told it, which may be an earlier one.
  if (node.user_draining != e.draining) Send(e.session, message::Drain{node.user_draining});
  FindAllPlaces();
  schedule_ = true;
}

void CoordinatorState::Impl::LoseSession(Node& node) {
  fleet_.Detach(node);
  places_dirty_ = true;
  if (!node.gang.empty()) {
    const auto it = gangs_.find(node.gang);
    if (it != gangs_.end() && !it->second.Started()) {
      const std::string run_id = it->second.run;
      ReleaseGang(node.gang);
      if (Run* run = FindRun(run_id); run != nullptr) ReviewRun(*run);
    }
  }
  schedule_ = true;
}

void CoordinatorState::Impl::On(const event::AgentGone& e) {
  sessions_.erase(e.session);
  if (Node* node = fleet_.OfSession(e.session); node != nullptr) {
    LoseSession(*node);
    FindAllPlaces();
  }
  ReviewDoctorQuestions();
}

void CoordinatorState::Impl::On(const event::Leave& e) {
  // The stream's end follows; nothing is offered in between.
  if (Node* node = fleet_.OfSession(e.session); node != nullptr) node->agent_draining = true;
}

void CoordinatorState::Impl::On(const event::Heartbeat& e) {
  Node* node = fleet_.OfSession(e.session);
  if (node == nullptr) return;
  node->last_heartbeat = now_;
  node->last_seen_unix_ms = WallMs();
  node->clock_ahead_ms = e.wall_unix_ms == 0 ? 0 : e.wall_unix_ms - WallMs();
  node->agent_draining = false;
  if (node->user_draining != e.draining) Send(e.session, message::Drain{node->user_draining});
  // Says nothing about stored rows, so it need not wait for a slow disk: leases would run out.
  actions_.sends.push_back({e.session, message::HeartbeatAck{e.number}, 0});
  for (const std::string& attempt : e.held_attempts) {
    const auto it = gangs_.find(attempt);
    if (it != gangs_.end() && it->second.PartOf(node->name) != nullptr) continue;
    Send(e.session, message::Abort{attempt, Outcome::kLost, std::string(reason::kAgentLost)});
  }
  const auto it = gangs_.find(node->gang);
  if (it == gangs_.end() || !it->second.Started()) return;
  Gang& gang = it->second;
  GangPart* part = gang.PartOf(node->name);
  if (part == nullptr || part->Settled()) return;
  if (Contains(e.held_attempts, gang.row.id)) {
    part->absent = 0;
    return;
  }
  // Known already not to be held, and waited for: a report that follows, or runners that die.
  if (part->gone_at.has_value() || (part->spooled && gang.phase == GangPhase::kStarted)) return;
  // The Start may still be on its way, or the report behind this heartbeat: three in a row are
  // none.
  constexpr int kAbsentHeartbeats = 3;
  if (++part->absent < kAbsentHeartbeats) return;
  const std::string attempt = gang.row.id;
  GonePart(gang, *part, "its agent holds it no longer and sent no report");
  FinishIfSettled(attempt);
}

void CoordinatorState::Impl::On(const event::InventoryChanged& e) {
  Node* node = fleet_.OfSession(e.session);
  if (node == nullptr) return;
  SetInventory(*node, e.inventory);
  if (places_dirty_) FindAllPlaces();
}

void CoordinatorState::Impl::PersistNode(const Node& node) {
  batch_.nodes.push_back({node.name, node.epoch, node.machine_id, node.boot_id, node.instance,
                          node.address, node.last_seen_unix_ms, node.user_draining});
}

absl::Status CoordinatorState::Impl::NoSuchNode(const std::string& name) const {
  std::vector<std::string> known;
  for (const auto& [each, node] : fleet_.nodes()) known.push_back(each);
  return absl::NotFoundError(fmt::format("there is no node {}{}; `assay agents` lists them", name,
                                         DidYouMean(name, known)));
}

// Of a node that is not connected too: it takes no cell when it comes back.
void CoordinatorState::Impl::On(const event::DrainNode& e) {
  Node* node = fleet_.Find(e.node);
  if (node == nullptr) {
    return Answer(e.token, NoSuchNode(e.node));
  }
  if (node->user_draining != e.on) {
    node->user_draining = e.on;
    PersistNode(*node);
  }
  if (!e.on) node->agent_draining = false;
  if (node->Up()) Send(node->session, message::Drain{e.on});
  // Of a gang that has not started none of its ranks runs: it goes back to the queue at once.
  if (const auto it = gangs_.find(node->gang); e.on && it != gangs_.end()) {
    if (!it->second.Started()) ReleaseGang(node->gang);
  }
  schedule_ = true;
  Answer(e.token, absl::OkStatus(), DrainReply{node->name, StateOf(*node), HeldBy(*node)});
}

// Deadlines of one node. An attempt is lost only when its agent must have killed it (lease, kill
// grace) and its runners must have left by themselves (lifeline).
void CoordinatorState::Impl::CheckNode(Node& node) {
  if (node.Up() && now_ >= node.last_heartbeat + times_.lease) {
    CloseNow(node.session);
    LoseSession(node);
  }
  const bool silent = !node.Up() && now_ >= node.last_heartbeat + times_.lease + times_.kill_grace +
                                                times_.lifeline;
  if (silent) node.lost = true;
  const auto it = gangs_.find(node.gang);
  if (it == gangs_.end() || !it->second.Started()) return;
  Gang& gang = it->second;
  GangPart* part = gang.PartOf(node.name);
  if (part == nullptr || part->Settled()) return;
  const bool replaced = part->gone_at.has_value() && now_ >= *part->gone_at;
  if (!silent && !replaced) return;
  const std::string attempt = gang.row.id;
  GonePart(gang, *part,
           replaced ? "its agent was started anew" : "its agent was not heard of in time");
  FinishIfSettled(attempt);
}

// Doubles from the first step up to the rest; from refusals_to_rest on the next offer is a probe.
void CoordinatorState::Impl::RestAfterRefusal(Rest& rest, std::string why) {
  ++rest.refusals;
  rest.why = std::move(why);
  auto wait = times_.rest;
  if (rest.refusals < times_.refusals_to_rest) {
    wait = std::min(times_.rest, times_.refusal_backoff * (1 << std::min(rest.refusals - 1, 20)));
  }
  rest.until = now_ + wait;
}

}  // namespace assay
