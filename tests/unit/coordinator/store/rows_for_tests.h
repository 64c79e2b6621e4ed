// Rows with every field set, for tests of the store and of files.
#ifndef ASSAY_TESTS_UNIT_COORDINATOR_STORE_ROWS_FOR_TESTS_H_
#define ASSAY_TESTS_UNIT_COORDINATOR_STORE_ROWS_FOR_TESTS_H_

#include <fmt/format.h>

#include <string>

#include "common/matrix/matrix.h"
#include "coordinator/cell/rows.h"

namespace assay {

inline const std::string kRunA = "01J00000000000000000000001";
inline const std::string kRunB = "01J00000000000000000000002";

inline RunRow MakeRun(const std::string& id, RunState state = RunState::kRunning) {
  RunRow run;
  run.id = id;
  run.request_id = "request-" + id;
  run.name = "cards-cnn";
  run.digest = std::string(64, 'a');
  run.yaml = std::string("name: cards\n# \0 zero", 20);
  run.file_name = "m.yaml";
  run.baseline = "RTX 2080 Ti";
  run.select.all_cards = false;
  run.select.cards = {"RTX 3090", "RTX \"2080\" Ti"};
  run.select.placement = Placement::kPerGpu;
  run.select.wait_seconds = 1.25;
  run.select.include_late = true;
  run.select.run_limit_seconds = 3600.5;
  run.select.priority = -7;
  run.repeat = 2;
  run.specs = 2;
  run.seed = (uint64_t{1} << 62) + 3;
  run.state = state;
  run.message = "why";
  run.binding_closed = true;
  run.cells = 2;
  run.generation = 3;
  run.rerun_request_id = "again";
  run.submitted_by = "ada";
  run.labels = {{"team", "cnn"}, {"why", "a \"quoted\" word"}};
  run.submitted_at_unix_ms = 1'767'225'600'000;
  run.started_at_unix_ms = 1'767'225'600'001;
  run.ended_at_unix_ms = IsEnded(state) ? 1'767'225'600'002 : 0;
  return run;
}

inline Spec MakeSpec(uint32_t index) {
  Spec spec;
  spec.index = index;
  spec.model = "resnet50";
  spec.precision = "amp-fp16";
  spec.batch = 64 * (index + 1);
  spec.stop.confidence = 0.025;
  spec.limits.cell_seconds = 77;
  spec.key = SpecKey(spec);
  return spec;
}

inline CellRow MakeCell(const std::string& run, uint64_t cell, uint32_t spec_index = 0) {
  CellRow row;
  row.run = run;
  row.cell = cell;
  row.spec_index = spec_index;
  row.repeat = 2;
  row.target = "RTX 3090";
  row.simulated = true;
  row.order = cell * 10;
  row.admitted = true;
  row.attempts = 1;
  row.first_attempt = 2;
  return row;
}

inline CellRow EndedCell(CellRow cell, Outcome outcome, const std::string& attempt) {
  cell.outcome = outcome;
  cell.reason = outcome == Outcome::kOk ? "" : "crash";
  cell.message = outcome == Outcome::kOk ? "" : "it broke";
  cell.counted_attempt = attempt;
  return cell;
}

inline AttemptRow MakeAttempt(const std::string& run, uint64_t cell, const std::string& id) {
  AttemptRow attempt;
  attempt.id = id;
  attempt.run = run;
  attempt.cell = cell;
  attempt.number = 1;
  attempt.state = AttemptState::kEnded;
  attempt.node = "node-1";
  attempt.card = "RTX 3090";
  attempt.stack = "simulated-1";
  attempt.runner = "assay-simulate";
  attempt.members = {{"node-1", "GPU-1", 0}, {"node-1", "GPU-2", 1}};
  attempt.simulated = true;
  attempt.seed = 42;
  attempt.started_at_unix_ms = 1'767'225'600'123;
  attempt.seconds = 12.5;
  attempt.outcome = Outcome::kOk;
  attempt.counted = true;
  attempt.reported = true;
  attempt.log_tail = "last \"line\"\n";
  attempt.cell_file = "{\"protocol\":1}";
  (void)attempt.record.Set(Field::kThroughput, 812.5);
  (void)attempt.record.Set(Field::kUnit, std::string("img/s"));
  (void)attempt.record.Set(Field::kSteps, int64_t{400});
  (void)attempt.record.Set(Field::kCudnnBenchmark, true);
  (void)attempt.record.Set(Field::kGpuUuids, std::string("GPU-1;GPU-2"));
  return attempt;
}

// A run of two specs and two cells: the first ended ok, the second open.
inline Batch MakeBatch(const std::string& run, RunState state = RunState::kRunning) {
  Batch batch;
  batch.runs = {MakeRun(run, state)};
  batch.specs = {{run, MakeSpec(0)}, {run, MakeSpec(1)}};
  batch.cells = {EndedCell(MakeCell(run, 1, 0), Outcome::kOk, run + "-a1"), MakeCell(run, 2, 1)};
  batch.attempts = {MakeAttempt(run, 1, run + "-a1")};
  return batch;
}

}  // namespace assay

#endif  // ASSAY_TESTS_UNIT_COORDINATOR_STORE_ROWS_FOR_TESTS_H_
