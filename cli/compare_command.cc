// compare: which card is worth what, from stored results.
#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "cli/commands.h"
#include "cli/compare_prices.h"
#include "cli/compare_table.h"
#include "cli/exit_codes.h"
#include "cli/fitted_table.h"
#include "cli/printable.h"
#include "common/catalog/card_catalog.h"
#include "common/results/compare/compare_json.h"
#include "common/results/compare/published.h"
#include "common/status/status.h"
#include "common/yaml/yaml_tree.h"

namespace assay::cli {
namespace {

struct Loaded {
  compare::Cells cells;
  std::string baseline;           // card of the matrix; of the first run that names one
  std::vector<std::string> runs;  // full ids, in the order in which they were named
  std::set<std::string> cards;
};

// The full id of what was typed, or what was typed, which the coordinator then refuses.
std::string FullId(const std::vector<RunSummary>& runs, const std::string& word) {
  if (word == "last" && !runs.empty()) return runs.front().id;
  for (const RunSummary& run : runs) {
    if (run.id.starts_with(word)) return run.id;
  }
  return word;
}

absl::StatusOr<Loaded> Load(Control& control, const std::vector<std::string>& words) {
  Loaded loaded;
  const auto runs = control.ListRuns();
  if (!runs.ok()) return runs.status();
  for (const std::string& word : words) {
    const auto same = std::count_if(runs->begin(), runs->end(), [&](const RunSummary& run) {
      return run.id.starts_with(word);
    });
    // Several that begin so: the coordinator says which.
    const std::string id = same > 1 ? word : FullId(*runs, word);
    if (std::find(loaded.runs.begin(), loaded.runs.end(), id) != loaded.runs.end()) continue;
    loaded.runs.push_back(id);
    const auto baseline = control.EachResult(id, [&](const Record& record) {
      loaded.cells.Add(record, id);
      if (record.Has(Field::kCard)) loaded.cards.insert(record.Text(Field::kCard));
    });
    if (!baseline.ok()) return baseline.status();
    if (loaded.baseline.empty()) loaded.baseline = *baseline;
  }
  return loaded;
}

absl::Status AddFile(const std::string& path, Loaded& loaded) {
  constexpr size_t kMostBytes = size_t{64} << 20;
  const absl::StatusOr<std::string> text = ReadTextFile(path, kMostBytes);
  if (!text.ok()) return text.status();
  return compare::AddPublished(
      *text, path,
      [&](const std::string& card) {
        std::string name = BuiltinCards().Identify(card, 0, 0).name;
        loaded.cards.insert(name);
        return name;
      },
      loaded.cells);
}

// Runs and published figures; no coordinator is asked where only the latter were named.
absl::StatusOr<Loaded> LoadAll(CommandContext& context) {
  const CompareArguments& args = context.args.compare;
  Loaded loaded;
  if (args.published.empty() || !args.runs.empty()) {
    Session session = MakeSession(context);
    if (absl::Status status = session.Open(); !status.ok()) return status;
    const std::vector<std::string> words =
        args.runs.empty() ? std::vector<std::string>{"last"} : args.runs;
    auto of_runs = session.Call([&](Control& control) { return Load(control, words); });
    if (!of_runs.ok()) return of_runs.status();
    loaded = *std::move(of_runs);
  }
  for (const std::string& path : args.published) {
    if (absl::Status status = AddFile(path, loaded); !status.ok()) return status;
  }
  return loaded;
}

// As typed, else as the catalogue writes it.
std::string CardName(const Loaded& loaded, const std::string& typed) {
  for (const std::string& card : loaded.cards) {
    if (FoldCardName(card) == FoldCardName(typed)) return card;
  }
  return typed;
}

// Baseline and prices, which take the results to be known.
absl::Status FillOptions(const CompareArguments& args, const Loaded& loaded,
                         compare::Options& options, std::vector<std::string>& notes) {
  if (options.by == compare::By::kCard) {
    if (!options.baseline.empty()) {
      options.baseline = CardName(loaded, options.baseline);
    } else if (loaded.cards.contains(loaded.baseline)) {
      options.baseline = loaded.baseline;
    } else if (!loaded.baseline.empty()) {
      notes.push_back(fmt::format("the matrix's baseline {} has no result here", loaded.baseline));
    }
  } else if (options.by == compare::By::kRun && !options.baseline.empty()) {
    for (const std::string& run : loaded.runs) {
      if (run.starts_with(options.baseline)) options.baseline = run;
    }
  }
  for (auto& [name, value] : options.where) {
    if (name == "card") value = CardName(loaded, value);
  }
  Prices prices;
  if (!args.prices.empty()) {
    auto read = ReadPrices(args.prices, loaded.cards);
    if (!read.ok()) return read.status();
    prices = *std::move(read);
  }
  if (args.launch_prices) AddLaunchPrices(loaded.cards, prices);
  if (!prices.note.empty()) notes.push_back(prices.note);
  options.prices = std::move(prices.by_card);
  return absl::OkStatus();
}

void Print(CommandContext& context, const compare::Comparison& comparison) {
  Output& output = context.output;
  switch (context.args.format) {
    case Format::kJson:
      return output.Out(compare::WriteComparisonJson(comparison));
    case Format::kCsv:
      return output.Out(compare::WriteComparisonCsv(comparison));
    case Format::kMarkdown:
      return output.Out(ComparisonMarkdown(comparison));
    case Format::kTable:
      return output.Out(
          ComparisonTable(comparison, TableWidth(output.out_fd()), output.out_color()));
  }
}

}  // namespace

int CompareCommand(CommandContext& context) {
  const CompareArguments& args = context.args.compare;
  absl::StatusOr<Loaded> loaded = LoadAll(context);
  if (!loaded.ok()) return FailCommand(context, loaded.status());
  compare::Options options = args.options;
  std::vector<std::string> notes;
  if (absl::Status status = FillOptions(args, *loaded, options, notes); !status.ok()) {
    return FailCommand(context, status);
  }
  absl::StatusOr<compare::Comparison> comparison = compare::Compare(loaded->cells, options);
  if (!comparison.ok()) {
    FailCommand(context, comparison.status());
    return absl::IsFailedPrecondition(comparison.status()) ? kExitNothingRun : kExitBadInput;
  }
  comparison->notes.insert(comparison->notes.end(), notes.begin(), notes.end());
  Print(context, *comparison);
  if (options.by != compare::By::kRun || !comparison->AnySlower()) return kExitOk;
  context.output.Error(fmt::format("a run is slower than {}, or lacks a workload that it completed",
                                   comparison->baseline));
  return kExitSlower;
}

}  // namespace assay::cli
