#include "cli/compare_arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/printable.h"
#include "common/text/utf8.h"

namespace assay::cli {

const char kCompareFooter[] =
    R"(Only what has the same fingerprint is compared: workload, precision, lane, layout, batch by the
score, math settings, ECC, method and more (docs/compare.md). What is left out is listed with its
reason. Without a RUN it is the last one; cells of several runs are repeats of one another.

Exit codes: 0 compared; 2 bad input; 3 nothing is comparable, with the fields that differ; with
--by run also 1: a run is slower than the baseline run, or lacks a workload that it completed.

Examples:
  assay compare --baseline "RTX 2080 Ti"
  assay compare --by lane --where card="RTX 3090"    what the other lane bought
  assay compare 01JA 01JB --by run                   has anything become slower since 01JA?
  assay compare --by node                            which node is off its fleet's median?
  assay compare --score best --format md > table.md)";

void AddCompareOptions(CLI::App& app, CompareArguments& to) {
  app.add_option("RUN", to.runs, "Runs: ids, unique starts of ids, or `last`")->type_name("");
  app.add_option("--baseline", to.options.baseline,
                 "Card (or stack, lane, precision, run) that ratios are taken to\n"
                 "(default: that of the matrix, else the first one)")
      ->type_name("NAME");
  app.add_option("--by", to.by, "What is held against one another")
      ->type_name("card|stack|lane|precision|node|run");
  app.add_option("--score", to.score,
                 "equal: the largest batch that all completed; best: each one's best batch of the\n"
                 "same grid; largest: `batch: max`; tuned: each one's best batch, layout and lane")
      ->type_name("equal|best|largest|tuned");
  app.add_option("--stack", to.stack,
                 "common: the newest stack that all ran; newest-per-card: marked, with a bridge")
      ->type_name("common|newest-per-card");
  app.add_option("--where", to.where, "Only cells with FIELD=VALUE; several by commas, all of them")
      ->type_name("FIELD=VALUE")
      ->allow_extra_args(false);
  app.add_option("--across", to.across,
                 "Let this field of the fingerprint differ, and mark the rows where it does")
      ->type_name("FIELD")
      ->allow_extra_args(false);
  app.add_flag("--host-bound", to.options.host_bound,
               "Take cells too in which the GPU waited for the host");
  app.add_option("--published", to.published,
                 "CSV of figures that others published; alone, or beside runs with\n"
                 "--across published; may be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false);
  app.add_option("--prices", to.prices,
                 "CSV with card,price_usd,kind,date (purchase or hourly): adds what a dollar buys")
      ->type_name("FILE");
  app.add_flag("--launch-prices", to.launch_prices,
               "The catalogue's prices at launch for cards that have no other");
}

std::string TakeCompare(CompareArguments& to) {
  const auto by = compare::ByFromName(to.by);
  if (!by) {
    return fmt::format("--by takes card, stack, lane, precision, node or run, not '{}'",
                       Printable(to.by));
  }
  const auto score = compare::ScoreFromName(to.score);
  if (!score) {
    return fmt::format("--score takes equal, best, largest or tuned, not '{}'",
                       Printable(to.score));
  }
  if (to.stack != "common" && to.stack != "newest-per-card") {
    return fmt::format("--stack takes common or newest-per-card, not '{}'", Printable(to.stack));
  }
  to.options.by = *by;
  to.options.score = *score;
  if (to.stack != "common") to.options.stack = compare::StackRule::kNewestPerCard;
  if (to.options.by == compare::By::kNode && !to.options.baseline.empty()) {
    return "--baseline has no meaning with --by node: a node is held against its fleet's median";
  }
  if (to.options.score == compare::Score::kTuned && to.options.by == compare::By::kLane) {
    return "--score tuned chooses the lane, so that --by lane has nothing to compare with it";
  }
  for (const std::string& words : to.where) {
    for (size_t at = 0; at <= words.size();) {
      const size_t comma = std::min(words.find(',', at), words.size());
      const std::string word = words.substr(at, comma - at);
      const size_t equals = word.find('=');
      if (equals == std::string::npos || equals == 0) {
        return fmt::format("--where takes FIELD=VALUE, not '{}'", Printable(word));
      }
      to.options.where.emplace_back(word.substr(0, equals), word.substr(equals + 1));
      at = comma + 1;
    }
  }
  to.options.across = to.across;
  for (const std::string& run : to.runs) {
    if (!IsUtf8(run)) return "there is no run of that name: RUN is not UTF-8";
  }
  return "";
}

}  // namespace assay::cli
