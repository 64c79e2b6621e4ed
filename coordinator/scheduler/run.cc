#include "coordinator/scheduler/run.h"

#include <algorithm>

#include "coordinator/cell/cell_record.h"

namespace assay {
namespace {

// splitmix64's finaliser (Steele, Lea and Flood 2014): equal on every machine, unlike std::hash.
uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

}  // namespace

uint64_t CellOrder(uint64_t seed, uint32_t repeat, uint32_t spec_index, std::string_view target) {
  uint64_t hash = Mix(seed ^ Mix((uint64_t{repeat} << 32) | spec_index));
  for (const char c : target) hash = Mix(hash ^ static_cast<unsigned char>(c));
  constexpr int kHashBits = 40;  // the rest, below the sign bit, is the repeat
  return (uint64_t{std::min(repeat, 0x7fffffU)} << kHashBits) | (hash >> (64 - kHashBits));
}

Run::Run(RunRow run_row, std::vector<Spec> run_specs, const CoordinatorDeps& deps)
    : row(std::move(run_row)), specs(std::move(run_specs)), finder(deps, row.select) {}

Cell* Run::FindCell(uint64_t number) {
  // Without gaps, as nearly always, a cell stands at its number.
  if (number - 1 < cells.size() && cells[number - 1].row.cell == number) return &cells[number - 1];
  const auto it =
      std::lower_bound(cells.begin(), cells.end(), number,
                       [](const Cell& cell, uint64_t wanted) { return cell.row.cell < wanted; });
  return it != cells.end() && it->row.cell == number ? &*it : nullptr;
}

void Run::AddTarget(const Target& target) {
  const auto index = static_cast<uint32_t>(targets.size());
  target_index_[target] = index;
  targets.push_back(target);
  for (uint32_t s = 0; s < specs.size(); ++s) {
    Group group;
    group.spec = s;
    group.target = index;
    const uint32_t repeats = row.slice.Has(s) ? row.repeat : 0;
    for (uint32_t repeat = 1; repeat <= repeats; ++repeat) {
      Cell cell;
      cell.row.run = row.id;
      cell.row.cell = row.slice.NextCell(cells.empty() ? 0 : cells.back().row.cell);
      cell.row.spec_index = s;
      cell.row.repeat = repeat;
      cell.row.target = target.name;
      cell.row.simulated = target.simulated;
      cell.row.order = CellOrder(row.seed, repeat, s, target.name);
      cell.group = static_cast<uint32_t>(groups.size());
      group.cells.push_back(cell.row.cell);
      cells.push_back(std::move(cell));
    }
    groups.push_back(std::move(group));
    groups.back().open = repeats;
    for (const uint64_t number : groups.back().cells) CountPending(CellAt(number), 1);
  }
  row.cells = cells.size();
}

bool Run::AdoptCell(CellRow stored) {
  const uint64_t last = cells.empty() ? 0 : cells.back().row.cell;
  if (stored.cell <= last || stored.spec_index >= specs.size()) return false;
  const Target target{stored.target, stored.simulated};
  if (!HasTarget(target)) {
    const auto index = static_cast<uint32_t>(targets.size());
    target_index_[target] = index;
    targets.push_back(target);
    for (uint32_t s = 0; s < specs.size(); ++s) {
      Group group;
      group.spec = s;
      group.target = index;
      groups.push_back(std::move(group));
    }
  }
  Cell cell;
  cell.group = target_index_[target] * static_cast<uint32_t>(specs.size()) + stored.spec_index;
  Group& group = groups[cell.group];
  group.cells.push_back(stored.cell);
  group.admitted = group.admitted || stored.admitted;
  cell.row = std::move(stored);
  cells.push_back(std::move(cell));
  Cell& added = cells.back();
  if (added.row.outcome.has_value()) {
    ++outcomes[std::string(OutcomeName(*added.row.outcome))];
  } else {
    ++groups[added.group].open;
    CountPending(added, 1);
  }
  row.cells = cells.size();
  return true;
}

void Run::FindPlaces(const Fleet& fleet, BootTime now) {
  queues.clear();
  places.clear();
  placeless.clear();
  std::unordered_map<std::string, uint32_t> place_index;
  for (uint32_t g = 0; g < groups.size(); ++g) {
    Group& group = groups[g];
    group.place.reset();
    if (group.open == 0) continue;
    Place place = finder.Find(fleet, specs[group.spec], targets[group.target]);
    group.absent = place.absent;
    group.reason = place.reason;
    group.message = place.message;
    if (place.CanRun()) {
      group.without_place_since.reset();
      group.admitted = true;
      const auto [it, fresh] =
          place_index.try_emplace(place.key, static_cast<uint32_t>(places.size()));
      if (fresh) places.push_back(std::move(place));
      group.place = it->second;
    } else {
      if (!group.without_place_since.has_value()) group.without_place_since = now;
      placeless.push_back(g);
    }
    for (const uint64_t number : group.cells) {
      Cell& cell = CellAt(number);
      cell.queued.reset();
      if (cell.Pending()) Enqueue(cell);
    }
  }
}

void Run::Enqueue(Cell& cell) {
  const Group& group = groups[cell.group];
  if (group.admitted) cell.row.admitted = true;
  if (!group.place.has_value()) return;
  const Place& place = places[*group.place];
  QueueKey key;
  key.place = *group.place;
  for (const Candidate& candidate : place.candidates) {
    if (std::find(cell.failed_on.begin(), cell.failed_on.end(), candidate.node) !=
        cell.failed_on.end()) {
      key.avoid.push_back(candidate.node);
    }
  }
  const auto others = static_cast<int64_t>(place.candidates.size() - key.avoid.size());
  if (others < place.nodes) key.avoid.clear();  // there is no elsewhere
  queues[key].emplace(cell.row.order, cell.row.cell);
  cell.queued = std::move(key);
}

void Run::NoteRunning(BootTime now) {
  if (limit.has_value() || !(row.select.run_limit_seconds > 0)) return;
  constexpr double kLongest = 365 * 24 * 3600.0;
  limit = now + std::chrono::milliseconds(
                    static_cast<int64_t>(std::min(row.select.run_limit_seconds, kLongest) * 1000));
}

void Run::Dequeue(Cell& cell) {
  if (!cell.queued.has_value()) return;
  const auto it = queues.find(*cell.queued);
  if (it != queues.end()) {
    it->second.erase({cell.row.order, cell.row.cell});
    if (it->second.empty()) queues.erase(it);
  }
  cell.queued.reset();
}

void Run::CountPending(Cell& cell, int by) {
  pending += by;
  groups[cell.group].pending += by;
  pending_bound_seconds += by * SpecOf(cell).stop.max_seconds;
}

void Run::TakePending(Cell& cell, const std::string& attempt) {
  Dequeue(cell);
  CountPending(cell, -1);
  cell.live_attempt = attempt;
}

void Run::GiveBack(Cell& cell) {
  cell.live_attempt.clear();
  CountPending(cell, 1);
  Enqueue(cell);
}

void Run::End(Cell& cell, Outcome outcome, std::string_view reason, std::string_view message,
              const AttemptRow* counted) {
  if (cell.Pending()) {
    Dequeue(cell);
    CountPending(cell, -1);
  }
  cell.live_attempt.clear();
  --groups[cell.group].open;
  cell.row.outcome = outcome;
  cell.row.reason = reason;
  cell.row.message = message;
  cell.row.counted_attempt = counted != nullptr ? counted->id : "";
  ++outcomes[std::string(OutcomeName(outcome))];
  EndedCell end;
  end.cell = cell.row.cell;
  end.label = CellLabel(SpecOf(cell), cell.row);
  end.outcome = outcome;
  end.reason = reason;
  end.message = message;
  if (counted != nullptr) {
    end.throughput = counted->record.Number(Field::kThroughput).value_or(0);
    end.unit = counted->record.Text(Field::kUnit);
  }
  ended.push_back(std::move(end));
}

void Run::Reopen(Cell& cell) {
  if (!cell.row.outcome.has_value()) return;
  const auto it = outcomes.find(std::string(OutcomeName(*cell.row.outcome)));
  if (it != outcomes.end() && --it->second == 0) outcomes.erase(it);
  cell.row.outcome.reset();
  cell.row.reason.clear();
  cell.row.message.clear();
  cell.row.counted_attempt.clear();
  cell.row.first_attempt = cell.row.attempts + 1;
  cell.tries.fill(0);
  cell.failed_on.clear();
  cell.refusals = 0;
  ++groups[cell.group].open;
  CountPending(cell, 1);
}

void Run::NoteAttempt(const AttemptRow& attempt) {
  KnownAttempt known{attempt.cell, attempt.number, {}};
  for (const MemberRow& member : attempt.members) known.nodes.insert(member.node);
  attempts[attempt.id] = std::move(known);
}

}  // namespace assay
