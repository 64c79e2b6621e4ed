// Comparison: which card, stack, lane, precision, node or run is faster, by how much and how sure.
//
// Pure: from cells to figures; who prints them chooses their look. The rules stand in
// docs/compare.md, the statistics in common/measure/interval.h. Nothing is imputed: what failed,
// is invalid, or is of another fingerprint is left out with its reason. Thread rule: any thread.
#ifndef ASSAY_COMMON_RESULTS_COMPARE_COMPARE_H_
#define ASSAY_COMMON_RESULTS_COMPARE_COMPARE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/measure/interval.h"
#include "common/results/compare/cells.h"

namespace assay::compare {

enum class By { kCard, kStack, kLane, kPrecision, kNode, kRun };
enum class Score { kEqual, kBest, kLargest, kTuned };
enum class StackRule { kCommon, kNewestPerCard };
enum class Standing { kNone, kFaster, kSlower, kSame, kAmbiguous, kIndicative };

std::optional<By> ByFromName(std::string_view name);
std::string_view ByName(By by);
std::optional<Score> ScoreFromName(std::string_view name);
std::string_view ScoreName(Score score);
std::string_view StandingName(Standing standing);  // "" for kNone

// A difference of which the whole interval lies within this is none: more than that the sentinel of
// one GPU may move before a cell is marked (kMostDriftRatio).
inline constexpr double kSameRatio = 0.02;
// In robust deviations: beyond it a node is the odd one out (Iglewicz and Hoaglin).
inline constexpr double kOddDeviation = 3.5;
inline constexpr size_t kLeastNodes = 4;  // fewer have no median to be odd from

struct Options {
  By by = By::kCard;
  Score score = Score::kEqual;
  StackRule stack = StackRule::kCommon;
  std::string baseline;  // a side by its name; "": the first that was added
  // Field and value, all of which a cell must have. A field of the fingerprint, or card, node, run,
  // batch.
  std::vector<std::pair<std::string, std::string>> where;
  std::vector<std::string> across;       // fields of the fingerprint that may differ
  bool host_bound = false;               // take cells that are host_bound
  std::map<std::string, double> prices;  // by card
};

struct WorkloadRow {
  std::string workload;                                          // "resnet50 train"
  std::vector<std::pair<std::string, std::string>> fingerprint;  // known fields
  bool common = false;  // in the set that every ranked side completed
  double value = 0;     // samples a second, of `unit`
  std::string unit, batch, lane, layout, stack;
  int64_t processes = 0, gpus = 0;
  std::optional<double> spread_ratio;  // of several GPUs: their ScaledMad over the median
  // To the baseline's value, which is at `base_batch`; absent where it has none.
  std::optional<measure::Ratio> ratio;
  std::string base_batch;
  Standing verdict = Standing::kNone;
  std::optional<double> samples_per_joule;
  std::optional<double> per_watt;  // that over the baseline's
  // Best batch over the largest batch that the baseline completed, both on this card.
  std::optional<double> memory_bought;
  std::vector<std::string> marks;  // "driver 535.54 against 550.1", "across lane: ..."
};

struct SideRow {
  std::string side;
  bool is_baseline = false;
  std::vector<WorkloadRow> workloads;
  size_t completed = 0;
  std::map<std::string, size_t> missing;  // workloads by reason: "mem_limit", "fail: crash"
  // Over the common workloads; absent where the group is not ranked.
  std::optional<measure::Ratio> geomean;
  Standing verdict = Standing::kNone;
  // Over all workloads that this side and the baseline completed, how many those are.
  std::optional<measure::Ratio> pairwise;
  Standing pairwise_verdict = Standing::kNone;
  size_t pairs = 0;
  std::optional<double> per_watt, per_dollar, memory_bought;  // over the common workloads
  std::optional<double> deviation;                            // by node: in ScaledMad
  size_t lost = 0;  // by run: batches that the baseline completed and this side did not
  std::vector<std::string> marks;
};

// What is pooled: one precision and lane, and one size of gang; by another side than the card also
// one card.
struct Group {
  std::string card, precision, lane, gpus, nodes;  // "" where the sides differ in it
  std::string stack;                               // that all use; "" where they differ
  size_t asked = 0;                                // workloads that any side was asked for
  std::vector<std::string> common;                 // those that every ranked side completed
  bool ranked = false;                             // `common` is at least half of `asked`
  std::vector<SideRow> sides;                      // by falling geomean
};

struct LeftOut {
  std::string side, workload, reason;
  size_t cells = 1;
};

// One card on two stacks, beside a table in which cards have different ones.
struct Bridge {
  std::string card, stack, base_stack;
  measure::Ratio ratio;
  size_t workloads = 0;
};

struct Comparison {
  By by = By::kCard;
  Score score = Score::kEqual;
  StackRule stack = StackRule::kCommon;
  std::string baseline;
  std::vector<Group> groups;
  std::vector<LeftOut> left_out;
  std::vector<Bridge> bridges;
  std::vector<std::string> notes;

  // A side is slower than the baseline by more than kSameRatio, with its whole interval, in the
  // mean or in a workload, or lacks a workload or a batch that the baseline completed: what a gate
  // on regressions asks.
  bool AnySlower() const;
};

// InvalidArgument: an unknown field or baseline. FailedPrecondition: nothing is comparable; the
// message names the fields that differ and what to type.
absl::StatusOr<Comparison> Compare(const Cells& cells, const Options& options);

}  // namespace assay::compare

#endif  // ASSAY_COMMON_RESULTS_COMPARE_COMPARE_H_
