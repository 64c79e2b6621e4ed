#include "common/results/compare/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "common/results/compare/figure.h"
#include "common/results/compare/grouped.h"
#include "common/results/compare/nodes.h"
#include "common/results/compare/score.h"
#include "common/text/did_you_mean.h"

namespace assay::compare {
namespace {

constexpr std::array<std::string_view, 6> kByNames = {"card",      "stack", "lane",
                                                      "precision", "node",  "run"};
constexpr std::array<std::string_view, 4> kScoreNames = {"equal", "best", "largest", "tuned"};

template <class E, size_t N>
std::optional<E> FromName(const std::array<std::string_view, N>& names, std::string_view name) {
  const auto at = std::find(names.begin(), names.end(), name);
  if (at == names.end()) return std::nullopt;
  return static_cast<E>(at - names.begin());
}

// The side that is called so, without regard to case and spaces and by its whole name.
absl::StatusOr<uint32_t> FindBaseline(const Grouped& grouped, const Options& options) {
  if (options.baseline.empty()) return grouped.sides.front();
  const auto fold = [](std::string_view text) {
    std::string folded;
    for (const char c : text) {
      if (c != ' ') folded += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
    return folded;
  };
  std::vector<std::string> known;
  for (const uint32_t side : grouped.sides) {
    known.push_back(grouped.words.Text(side));
    if (fold(known.back()) == fold(options.baseline)) return side;
  }
  return absl::InvalidArgumentError(fmt::format(
      "--baseline: there is no {} '{}' among these results{}; there is {}", ByName(options.by),
      options.baseline, DidYouMean(options.baseline, std::span<const std::string>(known)),
      fmt::join(known, ", ")));
}

// Fields in which no measured cell of one side has a value of the other: why they share no
// fingerprint.
std::string Differences(const Cells& cells, const Options& options, const std::string& a,
                        const std::string& b) {
  std::string text;
  for (size_t place = 0; place < kFingerprintSize; ++place) {
    const std::string_view name = kFingerprint[place].name;
    const bool across =
        std::find(options.across.begin(), options.across.end(), name) != options.across.end();
    if (across || name == ByName(options.by)) continue;
    std::set<std::string> of_a, of_b;
    for (const Cell& cell : cells.cells()) {
      const std::string& value = cells.Text(cell, place);
      if (cell.throughput == 0 || value.empty()) continue;
      const std::string& side = options.by == By::kNode  ? cells.Text(cell.node)
                                : options.by == By::kRun ? cells.Text(cell.run)
                                : options.by == By::kCard
                                    ? cells.Text(cell.card)
                                    : cells.Text(cell, *FingerprintPlace(ByName(options.by)));
      if (side == a) of_a.insert(value);
      if (side == b) of_b.insert(value);
    }
    const bool any = std::any_of(of_a.begin(), of_a.end(),
                                 [&](const std::string& value) { return of_b.contains(value); });
    if (any || of_a.empty() || of_b.empty()) continue;
    text += fmt::format("{}{} ({} against {})", text.empty() ? "" : ", ", name,
                        fmt::join(of_a, ", "), fmt::join(of_b, ", "));
  }
  return text;
}

absl::Status NothingComparable(const Cells& cells, const Options& options, const Grouped& grouped,
                               uint32_t baseline) {
  const std::string base = grouped.words.Text(baseline);
  if (grouped.sides.size() < 2) {
    return absl::FailedPreconditionError(fmt::format(
        "nothing to compare: {} is the only {} with results here; name more runs, or another --by",
        base, ByName(options.by)));
  }
  const char* hint =
      options.score == Score::kLargest ? "; --score largest takes results of `batch: max`"
      : options.score == Score::kTuned ? ""
                                       : " at one batch; --score tuned takes each one's own";
  std::string why;
  for (const uint32_t side : grouped.sides) {
    if (side == baseline) continue;
    const std::string other = grouped.words.Text(side);
    const std::string fields = Differences(cells, options, base, other);
    why += fmt::format("\n  {} and {}: {}", base, other,
                       fields.empty() ? std::string("no workload that both completed") + hint
                                      : fields + "; --across FIELD compares them all the same");
  }
  return absl::FailedPreconditionError(
      fmt::format("nothing is comparable with the baseline {}:{}", base, why));
}

}  // namespace

std::optional<By> ByFromName(std::string_view name) { return FromName<By>(kByNames, name); }
std::string_view ByName(By by) { return kByNames[static_cast<size_t>(by)]; }
std::optional<Score> ScoreFromName(std::string_view name) {
  return FromName<Score>(kScoreNames, name);
}
std::string_view ScoreName(Score score) { return kScoreNames[static_cast<size_t>(score)]; }

std::string_view StandingName(Standing standing) {
  constexpr std::array<std::string_view, 6> kNames = {"",     "faster",    "slower",
                                                      "same", "ambiguous", "indicative"};
  return kNames[static_cast<size_t>(standing)];
}

bool Comparison::AnySlower() const {
  // Of many workloads that did not change some have an interval just below 1 by chance.
  const auto slower = [](const std::optional<measure::Ratio>& ratio) {
    return ratio && ratio->interval && ratio->interval->high < 1 / (1 + kSameRatio);
  };
  for (const Group& group : groups) {
    const auto base = std::find_if(group.sides.begin(), group.sides.end(),
                                   [](const SideRow& side) { return side.is_baseline; });
    for (const SideRow& side : group.sides) {
      if (side.is_baseline) continue;
      if (slower(side.geomean) || slower(side.pairwise) || side.lost > 0) return true;
      if (base != group.sides.end() && side.pairs < base->completed) return true;
      for (const WorkloadRow& row : side.workloads) {
        if (slower(row.ratio)) return true;
      }
    }
  }
  return false;
}

absl::StatusOr<Comparison> Compare(const Cells& cells, const Options& options) {
  absl::StatusOr<Grouped> grouped = GroupCellsOf(cells, options);
  if (!grouped.ok()) return grouped.status();
  if (grouped->sides.empty()) {
    return absl::FailedPreconditionError(
        options.where.empty() ? "nothing to compare: there are no results"
                              : "nothing to compare: no result has what --where asks for");
  }
  Comparison comparison;
  comparison.by = options.by;
  comparison.score = options.score;
  comparison.stack = options.stack;
  comparison.left_out = std::move(grouped->left_out);
  if (options.by == By::kNode) {
    CompareNodes(cells, *grouped, comparison);
    if (!comparison.groups.empty()) return comparison;
    return absl::FailedPreconditionError(
        "nothing to compare: no card was measured on two nodes with the same workload");
  }
  const absl::StatusOr<uint32_t> baseline = FindBaseline(*grouped, options);
  if (!baseline.ok()) return baseline.status();
  comparison.baseline = grouped->words.Text(*baseline);
  for (const GroupCells& group : grouped->groups) {
    ScoreGroup(cells, *grouped, group, options, *baseline, comparison);
  }
  const bool any =
      std::any_of(comparison.groups.begin(), comparison.groups.end(), [](const Group& group) {
        return std::any_of(group.sides.begin(), group.sides.end(),
                           [](const SideRow& side) { return !side.is_baseline && side.pairs > 0; });
      });
  if (!any) return NothingComparable(cells, options, *grouped, *baseline);
  return comparison;
}

}  // namespace assay::compare
