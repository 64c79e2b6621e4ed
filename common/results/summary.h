// The table of `assay run` and `assay results`: cells of one spec on one target with one stack of
// the same software (driver, libraries, build, method and unit), grouped over their repeats. Pure
// figures; who prints them chooses their look.
//
// A row's throughput is the mean of its process means and its interval is Student's over them
// (common/measure/interval.h): replication is a fresh process. What failed, is invalid or has no
// figure is missing, never a zero. Thread rule: pure, any thread.
#ifndef ASSAY_COMMON_RESULTS_SUMMARY_H_
#define ASSAY_COMMON_RESULTS_SUMMARY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/measure/interval.h"
#include "common/results/outcome.h"
#include "common/results/record.h"

namespace assay {

struct SummaryRow {
  // What the row is about, equal in all its records; "" or nullopt where not known.
  std::string key, target, card, stack, model, mode, precision, batch, lane, image, unit;
  std::optional<int64_t> index, accumulate, gpus, nodes;
  std::string apart;            // "driver_version 535.54": tells rows of one spec, target and
                                // stack apart; "" where there is no other
  std::vector<size_t> records;  // places in the input, by repeat

  std::optional<double> throughput;           // mean of process means
  std::optional<measure::Interval> interval;  // 95 %, of the same; absent with one process
  std::optional<double> interval_ratio;       // its half width over throughput
  int64_t processes = 0;                      // processes that count: ok and valid
  bool indicative = false;                    // one process: no interval, no ranking
  std::optional<double> step_p50_ms;          // median over the processes
  std::optional<int64_t> allocated_peak_bytes, reserved_peak_bytes, device_used_bytes;  // maxima
  std::optional<int64_t> device_total_bytes;

  // "ok"; "mem_limit"; "ok (2), fail (1)" where repeats differ; cells without an outcome are
  // "pending".
  std::string outcome;
  std::string message;             // of the first record that has one
  std::string reason;              // the same
  int64_t invalid = 0;             // ok but invalid by the rules
  std::vector<std::string> marks;  // united, in the order of the field's doc

  // Throughput over that of the base row: the first row with a throughput of the same unit and
  // method that is simulated, or not, as this one is; with a baseline the first such row of that
  // card with the same key and stack. 1, without an interval, for the base row itself.
  std::optional<measure::Ratio> ratio;
  bool is_base = false;
};

// Rows in the order in which their group first appears. Rules are applied to copies: verdict and
// marks of the input do not matter. `baseline`: the card that ratios are taken to; "": the first
// row. A row that the baseline has no counterpart of has no ratio: to another row it would be
// another figure under the same title.
std::vector<SummaryRow> Summarize(std::span<const Record> records, std::string_view baseline = "");

// Exit code of a run by the outcomes of its cells, `invalid` of which are ok but invalid by the
// rules, as docs/results.md lists them: 130 where one is cancelled, else 3 where none is ok and
// valid, else 1 where one failed or is invalid, else 0.
int RunExitCode(std::span<const Outcome> outcomes, size_t invalid);

// Cells by outcome, "12 ok, 3 mem_limit, 1 fail", in the order of enum Outcome; "no cells" for
// none.
std::string OutcomeCounts(std::span<const Outcome> outcomes);

}  // namespace assay

#endif  // ASSAY_COMMON_RESULTS_SUMMARY_H_
