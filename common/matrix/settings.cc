#include "common/matrix/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "common/catalog/card_catalog.h"
#include "common/matrix/axis_list.h"
#include "common/status/status.h"
#include "common/yaml/scalars.h"

namespace assay {
namespace {

// Keys of a block come first, in one table, so that file and block cannot differ in them.
constexpr std::array<KeyInfo, 18> kKeys = {{
    {"defaults", "Values of axes that `axes` and `zip` leave out."},
    {"exclude", "Points of the grid to leave out: a point that meets all conditions of an entry."},
    {"stop", "When a cell has been measured long enough."},
    {"limits", "When a cell is given up."},
    {"thermal", "settled (default) or cold."},
    {"colocate", "none (default) or all."},
    {"data", "synthetic (default) or host."},
    {"axes", "Values of each axis; their product, in the order written, is the grid."},
    {"zip", "Groups of axes that advance together, after `axes`."},
    {"include", "If given, only points that meet all conditions of at least one entry stay."},
    {"name", "Name of the run; default: the file's name."},
    {"baseline", "Card that ratios are taken to; default: the first row."},
    {"select", "What is measured, and until when targets are waited for."},
    {"repeat", "Fresh processes for each cell (default 3)."},
    {"seed", "Seed of the order of the cells; default: drawn and recorded."},
    {"matrices", "Several named blocks, each with axes of its own."},
    {"run_limit", "How long the run may take from its first cell on; what is not done then ends."},
    {"priority", "Runs with a higher one are asked first (default 0)."},
}};
constexpr size_t kSharedKeys = 7;
constexpr size_t kBlockKeys = 10;

constexpr std::array<KeyInfo, 4> kSelectKeys = {{
    {"cards", "all (default), or a list of cards by name."},
    {"placement", "per-card (default): any GPU of the card; per-node: each node; per-gpu: each."},
    {"wait", "How long targets are waited for (default 60s)."},
    {"late", "Targets that appear after `wait`: ignore (default) or include."},
}};

constexpr double kDay = 86'400;
constexpr std::array<NumberInfo, 3> kStop = {{
    {"confidence", 1e-6, 1, 0.01, "Relative half width of the 95 % interval to stop at."},
    {"min_seconds", 0, kDay, 5, "Least length of the measured window."},
    {"max_seconds", 0.1, kDay, 60, "Most; a cell stopped by it is marked unconverged."},
}};
constexpr std::array<NumberInfo, 2> kLimits = {{
    {"cell_seconds", 1, 7 * kDay, 900, "From start to last report; then the cell ends as timeout."},
    {"no_step_seconds", 1, 7 * kDay, 120,
     "Without a finished step or other sign of life, then hung; must exceed a step."},
}};

constexpr std::array<std::string_view, 3> kPlacements = {"per-card", "per-node", "per-gpu"};
constexpr std::array<std::string_view, 2> kLate = {"include", "ignore"};
constexpr double kMostWaitSeconds = 7 * kDay;

// Without an exponent, which the file does not take either.
std::string Plain(double value) {
  std::string text = fmt::format("{:.6f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

// Sets `values` in the order of `table` from the map; others stay.
void ReadNumbers(const YamlNode& node, const std::string& path, std::span<const NumberInfo> table,
                 Diagnostics* diagnostics, std::span<double* const> values) {
  std::vector<std::string_view> known;
  for (const NumberInfo& info : table) known.push_back(info.name);
  if (!CheckKeys(node, path, known, diagnostics)) return;
  for (size_t i = 0; i < table.size(); ++i) {
    const YamlEntry* entry = node.Find(table[i].name);
    if (entry == nullptr) continue;
    const std::string at = JoinPath(path, table[i].name);
    const auto value = NumberOf(*entry->value);
    if (!value.ok()) {
      diagnostics->Add(entry->value->at, at, Message(value.status()));
    } else if (*value < table[i].least || *value > table[i].most) {
      diagnostics->Add(entry->value->at, at,
                       fmt::format("{} is outside {} to {}", Printable(entry->value->text, 40),
                                   Plain(table[i].least), Plain(table[i].most)));
    } else {
      *values[i] = *value;
    }
  }
}

struct DurationBounds {
  double least, most;  // seconds
  std::string_view text;
};

void ReadDuration(const YamlNode& node, const std::string& path, const DurationBounds& bounds,
                  Diagnostics* diagnostics, double* out) {
  const auto seconds = DurationOf(node);
  if (!seconds.ok()) return diagnostics->Add(node.at, path, Message(seconds.status()));
  if (*seconds >= bounds.least && *seconds <= bounds.most) {
    *out = *seconds;
    return;
  }
  diagnostics->Add(node.at, path,
                   fmt::format("{} is outside {}", Printable(node.text, 40), bounds.text));
}

// Index of the word, or none where it is not one of `words`, which is noted.
std::optional<size_t> ReadWord(const YamlNode& node, const std::string& path,
                               std::span<const std::string_view> words, Diagnostics* diagnostics) {
  const auto text = WordOf(node, words);
  if (!text.ok()) {
    diagnostics->Add(node.at, path, Message(text.status()));
    return std::nullopt;
  }
  const auto found = std::find(words.begin(), words.end(), *text);
  if (found != words.end()) return static_cast<size_t>(found - words.begin());
  diagnostics->Add(
      node.at, path,
      fmt::format("unknown value '{}'{}", Printable(*text, 60), Suggestion(*text, words)));
  return std::nullopt;
}

std::string CardWarning(const std::string& path, const std::string& name) {
  const std::string nearest = BuiltinCards().NearestName(name);
  if (nearest.empty()) return "";
  return fmt::format("{}: the catalogue has no card '{}'; did you mean '{}'?", path,
                     Printable(name, 60), nearest);
}

void ReadCards(const YamlNode& node, const std::string& path, Diagnostics* diagnostics,
               Selection* out, std::vector<std::string>* warnings) {
  if (node.IsScalar() && node.text == "all") {
    out->all_cards = true;
    return;
  }
  if (!node.IsList()) {
    diagnostics->Add(
        node.at, path,
        fmt::format(
            "{} where all or a list of cards is wanted{}", Describe(node),
            node.IsScalar() ? fmt::format("; write all or [{}]", Printable(node.text, 60)) : ""));
    return;
  }
  if (node.items.empty())
    diagnostics->Add(node.at, path, "an empty list; name a card or write all");
  out->all_cards = false;
  for (size_t i = 0; i < node.items.size() && !diagnostics->full(); ++i) {
    const std::string at = fmt::format("{}[{}]", path, i);
    const std::string name = ReadShortText(*node.items[i], at, diagnostics);
    if (name == "all") {
      diagnostics->Add(node.items[i]->at, at, "'all' stands alone; write `cards: all`");
    }
    const auto found = BuiltinCards().FindByName(name);
    if (found.empty() && !name.empty()) {
      out->cards.push_back(name);
      if (const std::string warning = CardWarning(at, name); !warning.empty()) {
        warnings->push_back(warning);
      }
    }
    for (const CardFacts* card : found) out->cards.push_back(card->name);
  }
}

}  // namespace

std::span<const KeyInfo> TopKeys() { return kKeys; }
std::span<const KeyInfo> BlockKeys() { return std::span(kKeys).first(kBlockKeys); }
std::span<const KeyInfo> SharedKeys() { return std::span(kKeys).first(kSharedKeys); }
std::span<const KeyInfo> SelectKeys() { return kSelectKeys; }
std::span<const NumberInfo> StopNumbers() { return kStop; }
std::span<const NumberInfo> LimitNumbers() { return kLimits; }
std::span<const std::string_view> PlacementWords() { return kPlacements; }
std::span<const std::string_view> LateWords() { return kLate; }

std::vector<std::string_view> NamesOf(std::span<const KeyInfo> keys) {
  std::vector<std::string_view> names;
  for (const KeyInfo& key : keys) names.push_back(key.name);
  return names;
}

std::string_view PlacementName(Placement placement) {
  return kPlacements[static_cast<size_t>(placement)];
}

bool Selection::Selects(std::string_view card) const {
  if (all_cards) return true;
  const std::string folded = FoldCardName(card);
  return std::any_of(cards.begin(), cards.end(),
                     [&](const std::string& wanted) { return FoldCardName(wanted) == folded; });
}

void ReadStop(const YamlNode& node, const std::string& path, Diagnostics* diagnostics,
              StopRule* out) {
  const std::array<double*, 3> values = {&out->confidence, &out->min_seconds, &out->max_seconds};
  ReadNumbers(node, path, kStop, diagnostics, values);
  if (out->max_seconds < out->min_seconds) {
    diagnostics->Add(node.at, path,
                     fmt::format("max_seconds {} is below min_seconds {}; raise it",
                                 out->max_seconds, out->min_seconds));
  }
}

void ReadLimits(const YamlNode& node, const std::string& path, Diagnostics* diagnostics,
                Limits* out) {
  const std::array<double*, 2> values = {&out->cell_seconds, &out->no_step_seconds};
  ReadNumbers(node, path, kLimits, diagnostics, values);
}

void ReadSelect(const YamlNode& node, const std::string& path, Diagnostics* diagnostics,
                Selection* out, std::vector<std::string>* warnings) {
  if (!CheckKeys(node, path, NamesOf(kSelectKeys), diagnostics)) return;
  if (const YamlEntry* entry = node.Find("cards")) {
    ReadCards(*entry->value, JoinPath(path, "cards"), diagnostics, out, warnings);
  }
  if (const YamlEntry* entry = node.Find("placement")) {
    const auto word =
        ReadWord(*entry->value, JoinPath(path, "placement"), kPlacements, diagnostics);
    if (word) out->placement = static_cast<Placement>(*word);
  }
  if (const YamlEntry* entry = node.Find("late")) {
    const auto word = ReadWord(*entry->value, JoinPath(path, "late"), kLate, diagnostics);
    if (word) out->include_late = *word == 0;
  }
  if (const YamlEntry* entry = node.Find("wait")) {
    const DurationBounds bounds{0, kMostWaitSeconds, "0s to 168h"};
    ReadDuration(*entry->value, JoinPath(path, "wait"), bounds, diagnostics, &out->wait_seconds);
  }
}

void ReadRunLimit(const YamlNode& node, const std::string& path, Diagnostics* diagnostics,
                  Selection* out) {
  ReadDuration(node, path, {1, 30 * kDay, "1s to 720h"}, diagnostics, &out->run_limit_seconds);
}

std::string ReadShortText(const YamlNode& node, const std::string& path, Diagnostics* diagnostics) {
  const auto text = TextOf(node);
  if (!text.ok()) {
    diagnostics->Add(node.at, path, Message(text.status()));
    return "";
  }
  const bool blank = text->find_first_not_of(' ') == std::string::npos;
  const bool control = std::any_of(text->begin(), text->end(),
                                   [](char c) { return static_cast<unsigned char>(c) < 0x20; });
  if (blank || control || text->size() > kMaxTextBytes) {
    diagnostics->Add(node.at, path,
                     fmt::format("'{}' is no name; use 1 to {} bytes on one line",
                                 Printable(*text, 40), kMaxTextBytes));
    return "";
  }
  return *text;
}

int64_t ReadInteger(const YamlNode& node, const std::string& path, int64_t least, int64_t most,
                    int64_t otherwise, Diagnostics* diagnostics) {
  const auto value = IntegerOf(node);
  if (!value.ok()) {
    diagnostics->Add(node.at, path, Message(value.status()));
    return otherwise;
  }
  if (*value >= least && *value <= most) return *value;
  diagnostics->Add(node.at, path, fmt::format("{} is outside {} to {}", *value, least, most));
  return otherwise;
}

std::string ReadCard(const YamlNode& node, const std::string& path, Diagnostics* diagnostics,
                     std::vector<std::string>* warnings) {
  std::string name = ReadShortText(node, path, diagnostics);
  const auto found = BuiltinCards().FindByName(name);
  if (found.size() == 1) return found[0]->name;
  if (found.empty()) {
    const std::string warning = name.empty() ? "" : CardWarning(path, name);
    if (!warning.empty()) warnings->push_back(warning);
    return name;
  }
  diagnostics->Add(node.at, path,
                   fmt::format("'{}' is {} products; write '{}' or '{}'", Printable(name, 60),
                               found.size(), found[0]->name, found[1]->name));
  return "";
}

}  // namespace assay
