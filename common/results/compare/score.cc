#include "common/results/compare/score.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "common/results/compare/figure.h"

namespace assay::compare {
namespace {

// A side's answer to one workload: what was chosen and what it is worth.
struct Answer {
  Choice choice;
  Gpus gpus;
  bool again = true;  // the chosen one was measured again by a process that did not choose it
};

bool IsAnswer(const std::string& reason) {
  return reason == "mem_limit" || reason.starts_with("unsupported");
}

class GroupScorer {
 public:
  GroupScorer(const Cells& cells, const Grouped& grouped, const GroupCells& group,
              const Options& options, uint32_t baseline, Comparison& comparison)
      : cells_(cells),
        grouped_(grouped),
        group_(group),
        options_(options),
        baseline_(baseline),
        comparison_(comparison),
        out_(group.head) {}

  void Run() {
    ChooseStacks();
    out_.asked = group_.workloads.size();
    if (!stacks_.contains(baseline_)) {
      for (const uint32_t side : measured_) {
        LeaveOut(side, HeadText(),
                 fmt::format("the baseline {} has no figure for it", Name(baseline_)));
      }
      return;
    }
    for (const auto& [side, stack] : stacks_) {
      rows_[side].side = Name(side);
      rows_[side].is_baseline = side == baseline_;
    }
    for (const Workload& workload : group_.workloads) ScoreWorkload(workload);
    out_.ranked = !out_.common.empty() && 2 * out_.common.size() >= out_.asked;
    for (auto& [side, row] : rows_) Finish(side, row);
    std::stable_sort(out_.sides.begin(), out_.sides.end(),
                     [](const SideRow& a, const SideRow& b) { return Order(a) > Order(b); });
    if (options_.by == By::kCard && options_.stack == StackRule::kNewestPerCard) AddBridges();
    comparison_.groups.push_back(std::move(out_));
  }

 private:
  struct Pooled {
    std::vector<measure::LogSides> common, all;
    bool common_indicative = false, all_indicative = false;
    std::vector<double> per_watt, memory_bought;
  };

  const std::string& Name(uint32_t side) const { return grouped_.words.Text(side); }

  static double Order(const SideRow& row) {
    if (row.geomean) return row.geomean->value;
    return row.pairwise ? row.pairwise->value : -1;
  }

  std::string HeadText() const {
    std::string text = fmt::format("all of {} {}", out_.precision, out_.lane);
    while (text.ends_with(' ')) text.pop_back();
    return text;
  }

  void LeaveOut(uint32_t side, const std::string& workload, std::string reason) {
    comparison_.left_out.push_back({Name(side), workload, std::move(reason), 1});
  }

  // The stack of each side: the newest that all of them ran, or the newest of each.
  void ChooseStacks() {
    std::map<uint32_t, std::set<uint32_t>> ran;  // by side
    for (const Workload& workload : group_.workloads) {
      for (const auto& [side, side_cells] : workload.sides) {
        for (const auto& [stack, choices] : side_cells.measured) ran[side].insert(stack);
      }
    }
    for (const auto& [side, stacks] : ran) measured_.push_back(side);
    const auto newer = [&](uint32_t a, uint32_t b) {
      return NewerStack(grouped_.words.Text(a), grouped_.words.Text(b));
    };
    if (options_.stack == StackRule::kNewestPerCard) {
      for (const auto& [side, stacks] : ran) {
        stacks_[side] = *std::min_element(stacks.begin(), stacks.end(), newer);
      }
      return;
    }
    const auto of_baseline = ran.find(baseline_);
    if (of_baseline == ran.end()) return;
    // Of those that the baseline ran the one that most sides ran, then the newest.
    uint32_t best = 0;
    size_t most = 0;
    for (const uint32_t stack : of_baseline->second) {
      const auto sides = static_cast<size_t>(std::count_if(
          ran.begin(), ran.end(), [&](const auto& entry) { return entry.second.contains(stack); }));
      if (sides > most || (sides == most && newer(stack, best))) best = stack;
      most = std::max(most, sides);
    }
    out_.stack = StackName(grouped_.words.Text(best));
    for (const auto& [side, stacks] : ran) {
      if (stacks.contains(best)) {
        stacks_[side] = best;
        continue;
      }
      std::string names;
      for (const uint32_t stack : stacks) {
        names += (names.empty() ? "" : ", ") + StackName(grouped_.words.Text(stack));
      }
      LeaveOut(side, HeadText(),
               fmt::format("not measured on stack {} but on {} (--stack newest-per-card)",
                           out_.stack, names));
    }
  }

  // What a side measured of a workload on its stack; nullptr for nothing.
  const std::map<Choice, Gpus>* Measured(const Workload& workload, uint32_t side) const {
    const auto cells = workload.sides.find(side);
    const auto stack = stacks_.find(side);
    if (cells == workload.sides.end() || stack == stacks_.end()) return nullptr;
    const auto measured = cells->second.measured.find(stack->second);
    return measured == cells->second.measured.end() ? nullptr : &measured->second;
  }

  // Batches that every one of `sides` has: with a figure, or, where an answer is enough, also
  // without memory for it.
  std::set<int64_t> Grid(const Workload& workload, const std::vector<uint32_t>& sides,
                         bool answered) const {
    std::set<int64_t> grid;
    for (size_t i = 0; i < sides.size(); ++i) {
      std::set<int64_t> of_side;
      if (const auto* measured = Measured(workload, sides[i])) {
        for (const auto& [choice, gpus] : *measured) of_side.insert(choice.batch);
      }
      const auto cells = workload.sides.find(sides[i]);
      if (answered && cells != workload.sides.end()) {
        for (const auto& [choice, why] : cells->second.failed) {
          if (IsAnswer(grouped_.words.Text(why))) of_side.insert(choice.batch);
        }
      }
      of_side.erase(kBatchMax);
      if (i == 0) grid = of_side;
      std::erase_if(grid, [&](int64_t batch) { return !of_side.contains(batch); });
    }
    return grid;
  }

  // The fastest of `measured` for which `allowed` holds, by first processes; its value is by later
  // ones.
  template <class Allowed>
  static std::optional<Answer> Fastest(const std::map<Choice, Gpus>& measured, Allowed allowed) {
    const Choice* best = nullptr;
    double most = 0;
    size_t candidates = 0;
    for (const auto& [choice, gpus] : measured) {
      if (!allowed(choice)) continue;
      ++candidates;
      const double middle = Middle(Take(gpus, Use::kFirst));
      if (middle > most) best = &choice;
      most = std::max(most, middle);
    }
    if (best == nullptr) return std::nullopt;
    const Gpus& won = measured.at(*best);
    if (candidates == 1) return Answer{*best, won, true};
    const bool again =
        std::all_of(won.begin(), won.end(), [](const auto& gpu) { return gpu.second.size() > 1; });
    return Answer{*best, Take(won, Use::kAfterFirst), again};
  }

  std::optional<Answer> AnswerOf(const Workload& workload, uint32_t side,
                                 const std::set<int64_t>& grid) const {
    const auto* measured = Measured(workload, side);
    if (measured == nullptr) return std::nullopt;
    switch (options_.score) {
      case Score::kEqual: {
        if (grid.empty()) return std::nullopt;
        const auto at = measured->find(Choice{*grid.rbegin(), 0, 0});
        if (at == measured->end()) return std::nullopt;
        return Answer{at->first, at->second, true};
      }
      case Score::kLargest: {
        const auto at = measured->find(Choice{kBatchMax, 0, 0});
        if (at == measured->end()) return std::nullopt;
        return Answer{at->first, at->second, true};
      }
      case Score::kBest:
        return Fastest(*measured,
                       [&](const Choice& choice) { return grid.contains(choice.batch); });
      case Score::kTuned:
        return Fastest(*measured, [](const Choice&) { return true; });
    }
    return std::nullopt;
  }

  void ScoreWorkload(const Workload& workload) {
    std::vector<uint32_t> ranked;
    for (const auto& [side, stack] : stacks_) ranked.push_back(side);
    const bool answered = options_.score == Score::kBest;
    const std::set<int64_t> grid = Grid(workload, ranked, answered);
    std::map<uint32_t, Answer> answers;
    for (const uint32_t side : ranked) {
      if (auto answer = AnswerOf(workload, side, grid)) answers.emplace(side, *std::move(answer));
    }
    const bool common = answers.size() == ranked.size();
    if (common) out_.common.push_back(workload.label);
    for (const uint32_t side : ranked) {
      std::optional<Answer> base, own;
      if (common) {
        own = answers.at(side);
        base = answers.at(baseline_);
      } else {
        // What these two have in common, whatever the others lack.
        const std::set<int64_t> of_two = Grid(workload, {side, baseline_}, answered);
        base = AnswerOf(workload, baseline_, of_two);
        own = AnswerOf(workload, side, base ? of_two : Grid(workload, {side}, false));
      }
      AddRow(workload, side, own, base, common);
      if (options_.by == By::kRun && side != baseline_) CountLost(workload, side);
    }
    for (const auto& [side, side_cells] : workload.sides) {
      if (!stacks_.contains(side)) continue;
      if (!rows_[side].workloads.empty() &&
          rows_[side].workloads.back().workload == workload.label) {
        continue;
      }
      const std::string why = side_cells.failed.empty()
                                  ? "no figure for this score"
                                  : grouped_.words.Text(side_cells.failed.begin()->second);
      ++rows_[side].missing[why];
    }
  }

  // A fall of memory hides behind the batches that still fit.
  void CountLost(const Workload& workload, uint32_t side) {
    const auto* base = Measured(workload, baseline_);
    const auto* own = Measured(workload, side);
    if (base == nullptr) return;
    for (const auto& [choice, gpus] : *base) {
      if (own != nullptr && own->contains(choice)) continue;
      ++rows_[side].lost;
      rows_[side].marks.push_back(
          fmt::format("{} lacks batch {}", workload.label, BatchText(choice)));
    }
  }

  void AddRow(const Workload& workload, uint32_t side, const std::optional<Answer>& own,
              const std::optional<Answer>& base, bool common) {
    if (!own) return;
    SideRow& to = rows_[side];
    ++to.completed;
    const Figure value = FigureOf(own->gpus);
    WorkloadRow row;
    row.workload = workload.label;
    row.common = common;
    for (size_t place = 0; place < kFingerprintSize; ++place) {
      if (workload.fingerprint[place] == 0) continue;
      row.fingerprint.emplace_back(kFingerprint[place].name,
                                   cells_.Text(workload.fingerprint[place]));
    }
    row.value = value.middle;
    row.unit = cells_.Text(workload.fingerprint[PlaceOf("unit")]);
    row.batch = BatchText(own->choice);
    row.lane = own->choice.lane != 0 ? cells_.Text(own->choice.lane)
                                     : cells_.Text(workload.fingerprint[PlaceOf("lane")]);
    row.layout = own->choice.layout != 0 ? cells_.Text(own->choice.layout)
                                         : cells_.Text(workload.fingerprint[PlaceOf("layout")]);
    row.stack = options_.by == By::kStack ? to.side : StackName(grouped_.words.Text(stacks_[side]));
    row.processes = value.processes;
    row.gpus = value.gpus;
    row.spread_ratio = value.spread_ratio;
    row.samples_per_joule = value.samples_per_joule;
    if (base) Hold(workload, side, *own, *base, value, row);
    to.workloads.push_back(std::move(row));
  }

  // `own` against the baseline's answer.
  void Hold(const Workload& workload, uint32_t side, const Answer& own, const Answer& base,
            const Figure& value, WorkloadRow& row) {
    Pooled& pooled = pooled_[side];
    row.base_batch = BatchText(base.choice);
    const Figure base_value = FigureOf(base.gpus);
    if (side == baseline_) {
      row.ratio = measure::Ratio{1, std::nullopt};
    } else {
      const Pair pair = PairOf(own.gpus, base.gpus, options_.by != By::kCard);
      row.ratio = measure::GeometricMeanOfRatios({&pair.sides, 1});
      row.verdict = StandingOf(row.ratio, pair.indicative);
      pooled.all.push_back(pair.sides);
      pooled.all_indicative = pooled.all_indicative || pair.indicative;
      if (row.common) pooled.common.push_back(pair.sides);
      pooled.common_indicative = pooled.common_indicative || (row.common && pair.indicative);
      AddMarks(workload, side, own, base, row);
    }
    if (!own.again) row.marks.emplace_back("winner not measured again");
    if (value.samples_per_joule && base_value.samples_per_joule) {
      row.per_watt = *value.samples_per_joule / *base_value.samples_per_joule;
      if (row.common) pooled.per_watt.push_back(*row.per_watt);
    }
    row.memory_bought = MemoryBought(workload, side, own);
    if (row.common && row.memory_bought) pooled.memory_bought.push_back(*row.memory_bought);
  }

  void AddMarks(const Workload& workload, uint32_t side, const Answer& own, const Answer& base,
                WorkloadRow& row) const {
    std::set<uint32_t> drivers, base_drivers;
    uint16_t marks = 0;
    const auto look = [&](const Gpus& gpus, std::set<uint32_t>& of) {
      for (const auto& [gpu, processes] : gpus) {
        for (const Process& process : processes) {
          if (process.driver != 0) of.insert(process.driver);
          marks |= process.marks;
        }
      }
    };
    look(own.gpus, drivers);
    look(base.gpus, base_drivers);
    constexpr std::array<std::pair<CellMark, const char*>, 6> kNames = {
        {{kPublished, "published"},
         {kHostBound, "host_bound"},
         {kThrottled, "throttled"},
         {kPowerLimited, "power_limited"},
         {kUnconverged, "unconverged"},
         {kSimulated, "simulated"}}};
    for (const auto& [mark, name] : kNames) {
      if ((marks & mark) != 0) row.marks.emplace_back(name);
    }
    if (!drivers.empty() && !base_drivers.empty() && drivers != base_drivers) {
      row.marks.push_back(
          fmt::format("driver {} against {}", WordsText(drivers), WordsText(base_drivers)));
    }
    if (stacks_.at(side) != stacks_.at(baseline_)) {
      row.marks.push_back(fmt::format("stack {} against {}",
                                      StackName(grouped_.words.Text(stacks_.at(side))),
                                      StackName(grouped_.words.Text(stacks_.at(baseline_)))));
    }
    const auto& own_across = workload.sides.at(side).across;
    const auto& base_across = workload.sides.at(baseline_).across;
    for (const auto& [place, value] : own_across) {
      const auto other = base_across.find(place);
      if (other == base_across.end() || other->second == value) continue;
      const auto text = [&](uint32_t word) {
        return word == 0 ? std::string("not known") : cells_.Text(word);
      };
      row.marks.push_back(fmt::format("across {}: {} against {}", kFingerprint[place].name,
                                      text(value), text(other->second)));
    }
  }

  std::string WordsText(const std::set<uint32_t>& words) const {
    std::string text;
    for (const uint32_t word : words) text += (text.empty() ? "" : ", ") + cells_.Text(word);
    return text;
  }

  static std::string BatchText(const Choice& choice) {
    if (choice.batch == 0) return "";  // published without one
    return choice.batch == kBatchMax ? "max" : fmt::format("{}", choice.batch);
  }

  // What memory that the baseline has not got is worth to this side: its best batch over the
  // largest that the baseline completed, with one lane and layout.
  std::optional<double> MemoryBought(const Workload& workload, uint32_t side,
                                     const Answer& own) const {
    if (options_.by != By::kCard || side == baseline_) return std::nullopt;
    const auto alike = [&](const Choice& choice) {
      return choice.batch > 0 && choice.lane == own.choice.lane &&
             choice.layout == own.choice.layout;
    };
    int64_t held = 0;
    for (const auto& [choice, gpus] : *Measured(workload, baseline_)) {
      if (alike(choice)) held = std::max(held, choice.batch);
    }
    const auto& measured = *Measured(workload, side);
    const auto at = measured.find(Choice{held, own.choice.lane, own.choice.layout});
    const auto best = Fastest(measured, alike);
    if (at == measured.end() || !best) return std::nullopt;
    if (best->choice.batch <= held) return 1.0;
    return Middle(best->gpus) / Middle(at->second);
  }

  static std::optional<double> GeometricMean(const std::vector<double>& values) {
    const auto mean = measure::LogMean(values);
    return mean ? std::optional(std::exp(mean->mean)) : std::nullopt;
  }

  void Finish(uint32_t side, SideRow& row) {
    const Pooled& pooled = pooled_[side];
    row.pairs = pooled.all.size();
    if (side == baseline_) {
      if (out_.ranked) row.geomean = measure::Ratio{1, std::nullopt};
    } else {
      row.pairwise = measure::GeometricMeanOfRatios(pooled.all);
      row.pairwise_verdict = StandingOf(row.pairwise, pooled.all_indicative);
      if (out_.ranked) row.geomean = measure::GeometricMeanOfRatios(pooled.common);
      row.verdict = StandingOf(row.geomean, pooled.common_indicative);
    }
    const size_t common = out_.common.size();
    if (out_.ranked && pooled.per_watt.size() == common)
      row.per_watt = GeometricMean(pooled.per_watt);
    if (out_.ranked && pooled.memory_bought.size() == common) {
      row.memory_bought = GeometricMean(pooled.memory_bought);
    }
    const auto price = options_.prices.find(row.side);
    const auto base_price = options_.prices.find(Name(baseline_));
    if (row.geomean && price != options_.prices.end() && base_price != options_.prices.end()) {
      row.per_dollar = row.geomean->value * base_price->second / price->second;
    }
    std::set<std::string> marks(row.marks.begin(), row.marks.end());
    for (const WorkloadRow& workload : row.workloads) {
      marks.insert(workload.marks.begin(), workload.marks.end());
    }
    row.marks.assign(marks.begin(), marks.end());
    out_.sides.push_back(std::move(row));
  }

  // A card that ran both of two stacks that the table sets against each other.
  void AddBridges() {
    std::set<uint32_t> others;
    const uint32_t base_stack = stacks_.at(baseline_);
    for (const auto& [side, stack] : stacks_) {
      if (stack != base_stack) others.insert(stack);
    }
    for (const uint32_t stack : others) {
      for (const uint32_t side : measured_) {
        std::vector<measure::LogSides> pairs;
        for (const Workload& workload : group_.workloads) {
          const auto cells = workload.sides.find(side);
          if (cells == workload.sides.end()) continue;
          const auto& measured = cells->second.measured;
          const auto top = measured.find(stack), bottom = measured.find(base_stack);
          if (top == measured.end() || bottom == measured.end()) continue;
          for (auto at = top->second.rbegin(); at != top->second.rend(); ++at) {
            const auto same = bottom->second.find(at->first);
            if (same == bottom->second.end()) continue;
            pairs.push_back(PairOf(at->second, same->second, true).sides);
            break;
          }
        }
        const auto ratio = measure::GeometricMeanOfRatios(pairs);
        if (!ratio) continue;
        comparison_.bridges.push_back({Name(side), StackName(grouped_.words.Text(stack)),
                                       StackName(grouped_.words.Text(base_stack)), *ratio,
                                       pairs.size()});
      }
    }
  }

  const Cells& cells_;
  const Grouped& grouped_;
  const GroupCells& group_;
  const Options& options_;
  const uint32_t baseline_;
  Comparison& comparison_;
  Group out_;
  std::vector<uint32_t> measured_;       // sides with any figure in this group
  std::map<uint32_t, uint32_t> stacks_;  // of ranked sides
  std::map<uint32_t, SideRow> rows_;
  std::map<uint32_t, Pooled> pooled_;
};

}  // namespace

void ScoreGroup(const Cells& cells, const Grouped& grouped, const GroupCells& group,
                const Options& options, uint32_t baseline, Comparison& comparison) {
  GroupScorer(cells, grouped, group, options, baseline, comparison).Run();
}

}  // namespace assay::compare
