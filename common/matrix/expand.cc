#include "common/matrix/expand.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "common/matrix/axis_list.h"
#include "common/text/number_format.h"

namespace assay {
namespace {

// Conditions checked, over all points: some seconds of work.
constexpr uint64_t kMaxChecks = 50'000'000;

// Why a point is not a spec although nobody excluded it; empty where it is one.
std::string_view Impossible(const Spec& spec) {
  if (spec.batch == kBatchMax) return "";
  int64_t batch = spec.batch;
  if (spec.scaling == "strong") {
    if (batch % spec.WorldSize() != 0) return "batch is not a multiple of gpus times nodes";
    batch /= spec.WorldSize();
  }
  if (batch % spec.accumulate != 0) return "batch is not a multiple of accumulate";
  return "";
}

uint64_t ChecksPerPoint(const Block& block) {
  uint64_t checks = 0;
  const auto count = [&](const Rule& rule) {
    for (const Condition& condition : rule.conditions) checks += 1 + condition.any_of.size();
  };
  for (const auto& rule : block.base.exclude) count(*rule);
  if (block.include) std::for_each(block.include->begin(), block.include->end(), count);
  return checks;
}

class Expansion {
 public:
  Expansion(const MatrixOptions& options, Diagnostics* diagnostics, Matrix* matrix)
      : options_(options), diagnostics_(diagnostics), matrix_(matrix) {}

  void AddBlock(const Block& block) {
    std::vector<bool> used(block.base.exclude.size(), false);
    std::vector<size_t> at(block.dimensions.size(), 0);
    for (bool more = *block.GridPoints(kMaxGridPoints) > 0; more && specs_ <= kMaxSpecs;
         more = Advance(block, &at)) {
      AddPoint(block, PointAt(block, at), &used);
    }
    for (size_t i = 0; i < used.size(); ++i) {
      const Rule& rule = *block.base.exclude[i];
      // Exclusions of the file are for all blocks: in one of several they may meet nothing.
      if (!used[i] && rule.path.starts_with(block.path)) {
        Warn(rule.path, "excludes nothing");
      }
    }
  }

  void Finish(const Block& first) {
    for (const auto& [reason, count] : impossible_) {
      Warn("axes", fmt::format("{} left out: {}", Counted(count, "point"), reason));
    }
    if (duplicates_ > 0) {
      Warn("axes", duplicates_ == 1 ? "1 spec is given twice; it is measured once"
                                    : fmt::format("{} specs are given twice; each is measured once",
                                                  duplicates_));
    }
    if (specs_ == 0) {
      diagnostics_->Add(first.at, JoinPath(first.path, "axes"),
                        impossible_.empty()
                            ? first.include ? "exclude and include leave no point to measure"
                                            : "every point is excluded; nothing is left to measure"
                            : fmt::format("no point is left: {}", impossible_.begin()->first));
      return;
    }
    const uint64_t repeat = static_cast<uint64_t>(matrix_->repeat);
    if (specs_ > kMaxSpecs) {
      diagnostics_->Add(first.at, JoinPath(first.path, "axes"),
                        fmt::format("more than {} specs; split the matrix", kMaxSpecs));
    } else if (specs_ * repeat > kMaxCellsUnasked && !options_.allow_many) {
      diagnostics_->Add(first.at, JoinPath(first.path, "axes"),
                        fmt::format("{} cells ({} specs, each {} times), more than {}; shorten the "
                                    "axes or agree with --yes",
                                    specs_ * repeat, specs_, repeat, kMaxCellsUnasked));
    }
  }

 private:
  struct Seen {
    StopRule stop;
    Limits limits;
  };

  static bool Advance(const Block& block, std::vector<size_t>* at) {
    for (size_t i = at->size(); i-- > 0;) {
      if (++(*at)[i] < block.dimensions[i].points.size()) return true;
      (*at)[i] = 0;
    }
    return false;
  }

  static Spec PointAt(const Block& block, const std::vector<size_t>& at) {
    Spec spec = block.base.spec;
    for (size_t i = 0; i < at.size(); ++i) {
      const Dimension& dimension = block.dimensions[i];
      for (size_t j = 0; j < dimension.axes.size(); ++j) {
        SetAxis(&spec, dimension.axes[j], dimension.points[at[i]][j]);
      }
    }
    FillModelDefaults(&spec);
    return spec;
  }

  void AddPoint(const Block& block, Spec spec, std::vector<bool>* used) {
    bool excluded = false;
    for (size_t i = 0; i < block.base.exclude.size(); ++i) {
      if (!block.base.exclude[i]->Holds(spec)) continue;
      (*used)[i] = true;
      excluded = true;
    }
    const auto holds = [&](const Rule& rule) { return rule.Holds(spec); };
    if (excluded ||
        (block.include && std::none_of(block.include->begin(), block.include->end(), holds))) {
      return;
    }
    if (const std::string_view why = Impossible(spec); !why.empty()) {
      Count(why);
      return;
    }
    spec.key = SpecKey(spec);
    const auto [seen, fresh] = seen_.try_emplace(spec.key, Seen{spec.stop, spec.limits});
    if (!fresh) {
      AddDuplicate(block, spec, seen->second);
      return;
    }
    spec.index = static_cast<uint32_t>(specs_++);
    const uint64_t cells = specs_ * static_cast<uint64_t>(matrix_->repeat);
    if (options_.allow_many || cells <= kMaxCellsUnasked) matrix_->specs.push_back(std::move(spec));
  }

  void AddDuplicate(const Block& block, const Spec& spec, const Seen& first) {
    ++duplicates_;
    const bool same = first.stop.confidence == spec.stop.confidence &&
                      first.stop.min_seconds == spec.stop.min_seconds &&
                      first.stop.max_seconds == spec.stop.max_seconds &&
                      first.limits.cell_seconds == spec.limits.cell_seconds &&
                      first.limits.no_step_seconds == spec.limits.no_step_seconds;
    if (same) return;
    diagnostics_->Add(block.at, JoinPath(block.path, "axes"),
                      fmt::format("an earlier block has {} {} batch {} too, with another stop or "
                                  "limits; exclude it in one of them",
                                  spec.model, spec.precision,
                                  spec.batch == kBatchMax ? "max" : fmt::format("{}", spec.batch)));
  }

  void Count(std::string_view why) {
    for (auto& [reason, count] : impossible_) {
      if (reason != why) continue;
      ++count;
      return;
    }
    impossible_.emplace_back(why, 1);
  }

  void Warn(const std::string& path, std::string_view what) {
    if (matrix_->warnings.size() < Diagnostics::kMost)
      matrix_->warnings.push_back(fmt::format("{}: {}", path, what));
  }

  const MatrixOptions& options_;
  Diagnostics* const diagnostics_;
  Matrix* const matrix_;
  uint64_t specs_ = 0;
  uint64_t duplicates_ = 0;
  std::vector<std::pair<std::string_view, uint64_t>> impossible_;
  std::unordered_map<std::string, Seen> seen_;
};

// False, and noted, where the grids are too large to be walked.
bool CheckSize(const std::vector<Block>& blocks, Diagnostics* diagnostics) {
  uint64_t points = 0;
  uint64_t checks = 0;
  for (const Block& block : blocks) {
    const auto grid = block.GridPoints(kMaxGridPoints);
    if (!grid || points + *grid > kMaxGridPoints) {
      diagnostics->Add(block.at, JoinPath(block.path, "axes"),
                       fmt::format("the grid has more than {} points before exclusion; shorten the "
                                   "axes",
                                   kMaxGridPoints));
      return false;
    }
    points += *grid;
    checks += *grid * ChecksPerPoint(block);
    if (checks > kMaxChecks) {
      diagnostics->Add(block.at, JoinPath(block.path, "exclude"),
                       fmt::format("more than {} conditions to check ({} points); shorten the axes "
                                   "instead",
                                   kMaxChecks, points));
      return false;
    }
  }
  return true;
}

}  // namespace

void Expand(const std::vector<Block>& blocks, const MatrixOptions& options,
            Diagnostics* diagnostics, Matrix* matrix) {
  if (blocks.empty() || !CheckSize(blocks, diagnostics)) return;
  Expansion expansion(options, diagnostics, matrix);
  for (const Block& block : blocks) expansion.AddBlock(block);
  expansion.Finish(blocks.front());
}

}  // namespace assay
