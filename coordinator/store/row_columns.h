// The columns of each table, once: which there are, in which order, and what they hold. What is
// written, read and asked for follows from these lists. Private to this folder.
//
// `f` is called with each column's name and the member of the row. Thread rule: pure functions.
#ifndef ASSAY_COORDINATOR_STORE_ROW_COLUMNS_H_
#define ASSAY_COORDINATOR_STORE_ROW_COLUMNS_H_

#include <concepts>
#include <type_traits>

#include "coordinator/cell/rows.h"

namespace assay {

template <class T, class Row>
concept RowOf = std::same_as<std::remove_const_t<T>, Row>;

template <class T>
struct Blob {  // any bytes, where text is UTF-8
  T& bytes;
};

template <RowOf<RunRow> Row, class F>
void EachColumn(Row& run, F&& f) {
  f("id", run.id);
  f("request_id", run.request_id);
  f("name", run.name);
  f("digest", run.digest);
  f("file_name", run.file_name);
  f("baseline", run.baseline);
  f("selection", run.select);
  f("repeat", run.repeat);
  f("specs", run.specs);
  f("seed", run.seed);
  f("state", run.state);
  f("message", run.message);
  f("binding_closed", run.binding_closed);
  f("cells", run.cells);
  f("generation", run.generation);
  f("rerun_request_id", run.rerun_request_id);
  f("submitted_at", run.submitted_at_unix_ms);
  f("started_at", run.started_at_unix_ms);
  f("ended_at", run.ended_at_unix_ms);
  f("submitted_by", run.submitted_by);
  f("labels", run.labels);
  f("slice", run.slice.index);
  f("slices", run.slice.count);
  f("slice_id", run.slice.id);
  f("yaml", Blob{run.yaml});
}

template <RowOf<CellRow> Row, class F>
void EachColumn(Row& cell, F&& f) {
  f("run", cell.run);
  f("cell", cell.cell);
  f("spec_index", cell.spec_index);
  f("repeat", cell.repeat);
  f("target", cell.target);
  f("simulated", cell.simulated);
  f("run_order", cell.order);
  f("admitted", cell.admitted);
  f("attempts", cell.attempts);
  f("first_attempt", cell.first_attempt);
  f("outcome", cell.outcome);
  f("reason", cell.reason);
  f("message", cell.message);
  f("counted_attempt", cell.counted_attempt);
}

template <RowOf<AttemptRow> Row, class F>
void EachColumn(Row& attempt, F&& f) {
  f("id", attempt.id);
  f("run", attempt.run);
  f("cell", attempt.cell);
  f("number", attempt.number);
  f("state", attempt.state);
  f("node", attempt.node);
  f("card", attempt.card);
  f("stack", attempt.stack);
  f("runner", attempt.runner);
  f("members", attempt.members);
  f("simulated", attempt.simulated);
  f("seed", attempt.seed);
  f("started_at", attempt.started_at_unix_ms);
  f("seconds", attempt.seconds);
  f("outcome", attempt.outcome);
  f("reason", attempt.reason);
  f("message", attempt.message);
  f("counted", attempt.counted);
  f("late", attempt.late);
  f("reported", attempt.reported);
  f("log_tail", attempt.log_tail);
  f("cell_file", attempt.cell_file);
}
inline constexpr int kAttemptTexts = 2;  // the last columns: megabytes that not everybody reads

template <RowOf<NodeRow> Row, class F>
void EachColumn(Row& node, F&& f) {
  f("node", node.node);
  f("session_epoch", node.session_epoch);
  f("machine_id", node.machine_id);
  f("boot_id", node.boot_id);
  f("instance", node.instance);
  f("address", node.address);
  f("last_hello", node.last_hello_unix_ms);
  f("draining", node.draining);
}

}  // namespace assay

#endif  // ASSAY_COORDINATOR_STORE_ROW_COLUMNS_H_
