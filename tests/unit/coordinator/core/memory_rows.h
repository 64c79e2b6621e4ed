// A store in memory for tests: applies batches as coordinator/cell/rows.h says and gives them back.
#ifndef ASSAY_TESTS_UNIT_COORDINATOR_CORE_MEMORY_ROWS_H_
#define ASSAY_TESTS_UNIT_COORDINATOR_CORE_MEMORY_ROWS_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/cell/rows.h"

namespace assay {

struct MemoryRows {
  std::map<std::string, RunRow> runs;
  std::map<std::string, std::vector<Spec>> specs;
  std::map<std::pair<std::string, uint64_t>, CellRow> cells;
  std::map<std::string, AttemptRow> attempts;
  std::map<std::string, NodeRow> nodes;

  void Apply(const Batch& batch) {
    for (const RunRow& row : batch.runs) runs[row.id] = row;
    for (const SpecRow& row : batch.specs) specs[row.run].push_back(row.spec);
    for (const CellRow& row : batch.cells) cells[{row.run, row.cell}] = row;
    for (const std::string& id : batch.uncounted_attempts) attempts[id].counted = false;
    for (const AttemptRow& row : batch.attempts) attempts[row.id] = row;
    for (const NodeRow& row : batch.nodes) nodes[row.node] = row;
    for (const AttemptRow& row : batch.late_attempts) {
      const auto [it, fresh] = attempts.try_emplace(row.id, row);
      if (fresh || it->second.late || it->second.reported) continue;
      if (it->second.counted) {
        it->second.reported = true;
        continue;
      }
      it->second.late = true;
      it->second.outcome = row.outcome;
      it->second.reason = row.reason;
      it->second.message = row.message;
      it->second.record = row.record;
    }
    if (!batch.import.has_value()) return;
    for (const RunRow& row : batch.import->runs) runs.try_emplace(row.id, row);
    for (const CellRow& row : batch.import->cells) cells.try_emplace({row.run, row.cell}, row);
    for (const AttemptRow& row : batch.import->attempts) attempts.try_emplace(row.id, row);
  }

  RunSnapshot Run(const std::string& id) const {
    RunSnapshot snapshot;
    snapshot.run = runs.at(id);
    snapshot.specs = specs.at(id);
    for (const auto& [key, row] : cells) {
      if (key.first == id) snapshot.cells.push_back(row);
    }
    for (const auto& [key, row] : attempts) {
      if (row.run == id) snapshot.attempts.push_back(row);
    }
    return snapshot;
  }

  StateSnapshot Snapshot() const {
    StateSnapshot snapshot;
    for (const auto& [id, row] : runs) {
      if (IsEnded(row.state)) {
        snapshot.ended.push_back({id, row.request_id, row.digest, row.state, row.cells, row.specs,
                                  row.generation, row.rerun_request_id});
      } else {
        snapshot.unfinished.push_back(Run(id));
      }
    }
    for (const auto& [name, row] : nodes) snapshot.nodes.push_back(row);
    return snapshot;
  }
};

}  // namespace assay

#endif  // ASSAY_TESTS_UNIT_COORDINATOR_CORE_MEMORY_ROWS_H_
