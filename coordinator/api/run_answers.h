// What the API answers, made from rows and views: pure, without gRPC.
#ifndef ASSAY_COORDINATOR_API_RUN_ANSWERS_H_
#define ASSAY_COORDINATOR_API_RUN_ANSWERS_H_

#include <cstdint>
#include <set>
#include <vector>

#include "assay/v1/control_service.pb.h"
#include "common/results/drift.h"
#include "common/results/peaks.h"
#include "coordinator/cell/rows.h"
#include "coordinator/scheduler/coordinator_state.h"
#include "coordinator/store/result_store.h"

namespace assay {

// Of a list of runs.
void FillSummary(const RunOverview& overview, v1::RunSummary* out);

// The newest run of that matrix and slice that is unfinished, or has cells that failed, were
// cancelled or have no outcome; nullptr where there is none. `runs`: the newest first.
const RunOverview* FindResumable(const std::vector<RunOverview>& runs, const std::string& digest,
                                 const Slice& slice);

// What a run's records are held against when they are read.
struct Comparands {
  SentinelReadings readings;  // of the run's counted attempts: what a cell's drift is told from
  Peaks peaks;                // of all runs in the store
  // Cells that are the only valid process of their row (common/results/summary.h).
  std::set<uint64_t> indicative;
  std::set<uint64_t> invalid;  // cells that ended as ok and whose figure is not believed
};
// `one`: of this cell alone, for which only its repeats are read; then there are no readings, which
// are in every record of the run. Null: of all cells.
absl::StatusOr<Comparands> ComparandsOf(ResultReader& reader, const RunRow& run,
                                        const std::vector<Spec>& specs, const CellRow* one);

// The record of a cell with drift, utilisation, verdict and marks, which are computed on reading.
Record JudgedRecord(const RunRow& run, const Spec& spec, const CellRow& cell,
                    const AttemptRow* attempt, const Comparands& comparands);

void FillCell(const RunRow& run, const Spec& spec, const CellResult& result,
              const std::vector<AttemptRow>& attempts, const Comparands& comparands,
              v1::CellDetail* out);

// One view as messages: cells that ended are spread over several where they are many, so that none
// comes near the message limit. Only the last one can be final.
std::vector<v1::RunUpdate> UpdatesOf(const RunView& view);

// The one, final message of a run that ended and is not in memory any more.
v1::RunUpdate FinalUpdate(const RunOverview& overview);

// One page. `agents` by node name, as CoordinatorState gives them; `budget`: bytes of a page.
void FillAgents(const std::vector<AgentView>& agents, const v1::ListAgentsRequest& request,
                size_t budget, v1::ListAgentsReply* out);
void FillDrain(const DrainReply& drained, v1::DrainReply* out);

}  // namespace assay

#endif  // ASSAY_COORDINATOR_API_RUN_ANSWERS_H_
