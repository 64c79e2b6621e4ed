// Offers: which cell gets the nodes that are free.
//
// Runs of one priority take turns: the one that waits longest is asked first and goes to the back
// once it was served, so none waits for more than one gang of each other run. What has a higher
// priority is asked before them and takes no notice of their reservations. Within a run the queue
// whose head comes first in the run's order goes first. A node carries one measured cell at a time;
// with colocate: all that cell has every GPU of its card there.
#include <algorithm>

#include "coordinator/scheduler/state_impl.h"

namespace assay {

void CoordinatorState::Impl::Schedule() {
  RenewReservation();
  for (bool placed = true; placed;) {
    placed = false;
    for (const auto turn : Turns()) {
      Run* run = FindRun(*turn);
      if (run == nullptr || !OfferFrom(*run)) continue;
      rotation_.splice(rotation_.end(), rotation_, turn);
      placed = true;
      break;
    }
  }
}

int64_t CoordinatorState::Impl::PriorityOf(std::string_view id) const {
  const Run* run = FindRun(id);
  return run == nullptr ? 0 : run->row.select.priority;
}

std::vector<std::list<std::string>::iterator> CoordinatorState::Impl::Turns() {
  std::vector<std::list<std::string>::iterator> turns;
  for (auto it = rotation_.begin(); it != rotation_.end(); ++it) turns.push_back(it);
  std::stable_sort(turns.begin(), turns.end(), [this](const auto& a, const auto& b) {
    return PriorityOf(*a) > PriorityOf(*b);
  });
  return turns;
}

bool CoordinatorState::Impl::MayTake(const Node& node) const {
  return node.Up() && !node.Draining() && node.gang.empty() && node.rest.until <= now_;
}

// The least used first, so that repeats spread over the cards of a node; in the node's order.
std::vector<size_t> CoordinatorState::Impl::FreeDevices(const Node& node,
                                                        const Candidate& candidate,
                                                        int64_t gpus) const {
  if (candidate.inventory_version != node.inventory_version) return {};  // found again soon
  std::vector<std::pair<uint64_t, size_t>> free;
  for (const size_t i : candidate.devices) {
    const Device& device = node.inventory.devices[i];
    if (!fleet_.Offers(node, device)) continue;
    if (const auto rest = node.device_rests.find(device.uuid);
        rest != node.device_rests.end() && rest->second.until > now_) {
      continue;
    }
    const auto uses = node.device_uses.find(device.uuid);
    free.emplace_back(uses == node.device_uses.end() ? 0 : uses->second, i);
  }
  if (static_cast<int64_t>(free.size()) < gpus) return {};
  std::sort(free.begin(), free.end());
  std::vector<size_t> picked;
  for (int64_t i = 0; i < gpus; ++i) picked.push_back(free[static_cast<size_t>(i)].second);
  std::sort(picked.begin(), picked.end());
  return picked;
}

bool CoordinatorState::Impl::Outranks(const Run& run) const {
  return reservation_.has_value() && run.row.select.priority > PriorityOf(reservation_->run);
}

bool CoordinatorState::Impl::Reserved(const Node& node, const Run& run, const QueueKey& key) const {
  return reservation_.has_value() && reservation_->nodes.contains(node.name) && !Outranks(run) &&
         (reservation_->run != run.row.id || reservation_->key != key);
}

std::vector<CoordinatorState::Impl::Share> CoordinatorState::Impl::PickNodes(const Run& run,
                                                                             const QueueKey& key) {
  const Place& place = run.places[key.place];
  std::vector<Share> shares;
  for (const Candidate& candidate : place.candidates) {
    if (std::binary_search(key.avoid.begin(), key.avoid.end(), candidate.node)) continue;
    Node* node = fleet_.Find(candidate.node);
    if (node == nullptr || !MayTake(*node) || Reserved(*node, run, key)) continue;
    std::vector<size_t> devices = FreeDevices(*node, candidate, place.DevicesOf(candidate));
    if (!devices.empty()) shares.push_back({node, &candidate, std::move(devices)});
  }
  const auto wanted = static_cast<size_t>(place.nodes);
  if (shares.size() < wanted) return {};
  // Who refused last, or did not answer, comes after all others until it has started something: it
  // would hold the cell for the time of an answer while one that works is idle.
  const auto order = [](const Share& share) {
    return std::pair(share.node->rest.refusals, share.node->gangs);
  };
  std::stable_sort(shares.begin(), shares.end(),
                   [&](const Share& a, const Share& b) { return order(a) < order(b); });
  shares.resize(wanted);
  std::sort(shares.begin(), shares.end(),
            [](const Share& a, const Share& b) { return a.node->name < b.node->name; });
  return shares;
}

// Nodes that it holds already before free ones, and those before the ones that run something.
void CoordinatorState::Impl::Reserve(const Run& run, const QueueKey& key) {
  const Place& place = run.places[key.place];
  const std::set<std::string> mine =
      reservation_.has_value() ? reservation_->nodes : std::set<std::string>();
  std::vector<std::pair<int, const Node*>> usable;
  for (const Candidate& candidate : place.candidates) {
    if (std::binary_search(key.avoid.begin(), key.avoid.end(), candidate.node)) continue;
    const Node* node = fleet_.Find(candidate.node);
    if (node == nullptr || !node->Up() || node->Draining() || node->rest.until > now_) continue;
    if (FreeDevices(*node, candidate, place.DevicesOf(candidate)).empty()) continue;
    usable.emplace_back(mine.contains(node->name) ? 0 : node->gang.empty() ? 1 : 2, node);
  }
  reservation_.reset();
  const auto wanted = static_cast<size_t>(place.nodes);
  if (usable.size() < wanted) return;
  std::stable_sort(usable.begin(), usable.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  reservation_ = Reservation{run.row.id, run.queues.at(key).begin()->second, key, {}};
  for (size_t i = 0; i < wanted; ++i) reservation_->nodes.insert(usable[i].second->name);
}

// Before anybody is offered anything: the queues may have been made anew, and a node may have gone.
void CoordinatorState::Impl::RenewReservation() {
  if (!reservation_.has_value()) return;
  Run* run = FindRun(reservation_->run);
  const Cell* cell = run == nullptr ? nullptr : run->FindCell(reservation_->cell);
  if (cell == nullptr || !cell->queued.has_value()) return reservation_.reset();
  const QueueKey key = *cell->queued;
  const Place& place = run->places[key.place];
  bool whole = key == reservation_->key;
  for (const std::string& name : reservation_->nodes) {
    const Node* node = fleet_.Find(name);
    whole = whole && node != nullptr && node->Up() && !node->Draining() &&
            node->rest.until <= now_ &&
            std::any_of(place.candidates.begin(), place.candidates.end(),
                        [&](const Candidate& candidate) { return candidate.node == name; });
  }
  if (!whole) Reserve(*run, key);
}

bool CoordinatorState::Impl::OfferFrom(Run& run) {
  if (run.row.state == RunState::kCancelling) return false;
  std::vector<std::pair<uint64_t, const QueueKey*>> heads;
  for (const auto& [key, queue] : run.queues) heads.emplace_back(queue.begin()->first, &key);
  std::sort(heads.begin(), heads.end());
  for (const auto& [order, head] : heads) {
    const QueueKey key = *head;
    std::vector<Share> shares = PickNodes(run, key);
    if (shares.empty()) {
      const bool first = !reservation_.has_value() || Outranks(run);
      if (run.places[key.place].nodes > 1 && first) Reserve(run, key);
      continue;
    }
    if (reservation_.has_value() && reservation_->run == run.row.id && reservation_->key == key) {
      reservation_.reset();
    }
    Cell& cell = run.CellAt(run.queues.at(key).begin()->second);
    Offer(run, cell, std::move(shares));
    return true;
  }
  return false;
}

void CoordinatorState::Impl::Offer(Run& run, Cell& cell, std::vector<Share> shares) {
  const std::string attempt = deps_.new_id(wall_);
  Gang gang;
  gang.run = run.row.id;
  gang.cell = cell.row.cell;
  gang.row.id = attempt;
  gang.row.run = run.row.id;
  gang.row.cell = cell.row.cell;
  gang.row.node = shares[0].node->name;
  gang.row.card = shares[0].node->cards[shares[0].devices[0]];
  gang.row.stack = shares[0].candidate->stack;
  gang.row.runner = shares[0].candidate->runner;
  gang.row.simulated = cell.row.simulated || shares[0].candidate->simulated;
  // One seed for all cells of a repeat: every card trains on the same data. Small enough for any
  // reader of JSON.
  gang.row.seed = 1 + (run.row.seed + cell.row.repeat) % 0x7fffffff;
  for (Share& share : shares) {
    GangPart part;
    part.node = share.node->name;
    for (uint32_t local = 0; local < share.devices.size(); ++local) {
      const Device& device = share.node->inventory.devices[share.devices[local]];
      part.ranks.push_back(static_cast<uint32_t>(gang.row.members.size()));
      gang.row.members.push_back({part.node, device.uuid, local});
      ++share.node->device_uses[device.uuid];
    }
    share.node->gang = attempt;
    ++share.node->gangs;
    gang.parts.push_back(std::move(part));
  }
  gang.begun = now_;
  gang.deadline = now_ + times_.ready;
  run.TakePending(cell, attempt);
  run.gangs.insert(attempt);
  Gang& added = gangs_[attempt] = std::move(gang);
  SendPrepare(added, added.parts[0]);
  Notify(run.row.id);
}

// A guess, and a cheap one: a reading too many behind a cell takes ten seconds.
bool CoordinatorState::Impl::IsClosing(const Run& of, const Gang& gang) const {
  if (gang.parts.size() != 1 || gang.row.simulated) return false;
  if (of.SpecOf(of.CellAt(gang.cell)).thermal != "settled") return false;
  // Queues that this node could serve, and how much waits in them.
  std::vector<const Place*> places;
  uint64_t pending = 0;
  for (const auto& [id, run] : runs_) {
    for (const auto& [key, queue] : run->queues) {
      const Place& place = run->places[key.place];
      const auto here =
          std::lower_bound(place.candidates.begin(), place.candidates.end(), gang.row.node,
                           [](const Candidate& candidate, const std::string& node) {
                             return candidate.node < node;
                           });
      if (here == place.candidates.end() || here->node != gang.row.node) continue;
      pending += queue.size();
      places.push_back(&place);
    }
  }
  if (pending == 0) return true;
  std::map<std::string_view, size_t> slots;  // gangs that a node could take at once, by its GPUs
  uint64_t others = 0;                       // their sum; its own GPUs are among them
  for (const Place* place : places) {
    for (const Candidate& candidate : place->candidates) {
      const size_t many =
          candidate.devices.size() / static_cast<size_t>(place->DevicesOf(candidate));
      size_t& most = slots[candidate.node];
      if (many <= most) continue;
      others += many - most;
      most = many;
      if (pending < others) return true;
    }
  }
  return false;
}

void CoordinatorState::Impl::SendPrepare(Gang& gang, GangPart& part) {
  const Run* run = FindRun(gang.run);
  if (run == nullptr) return;
  const Cell& cell = run->CellAt(gang.cell);
  message::Prepare prepare;
  prepare.attempt = gang.row.id;
  prepare.run = gang.run;
  prepare.cell = gang.cell;
  prepare.repeat = cell.row.repeat;
  prepare.spec = run->SpecOf(cell);
  prepare.stack = gang.row.stack;
  prepare.members = gang.row.members;
  prepare.endpoint = gang.endpoint;
  prepare.seed = gang.row.seed;
  prepare.closing = IsClosing(*run, gang);
  prepare.prepare_seconds = std::chrono::duration<double>(times_.prepare).count();
  part.asked = true;
  SendToNode(part.node, std::move(prepare));
}

}  // namespace assay
