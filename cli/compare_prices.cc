#include "cli/compare_prices.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <vector>

#include "cli/printable.h"
#include "common/catalog/card_catalog.h"
#include "common/results/csv_reader.h"
#include "common/results/timestamp.h"
#include "common/status/status.h"
#include "common/yaml/yaml_tree.h"

namespace assay::cli {
namespace {

constexpr size_t kMostBytes = size_t{16} << 20;

std::optional<double> PositiveNumber(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end || !std::isfinite(value) || value <= 0) {
    return std::nullopt;
  }
  return value;
}

std::optional<size_t> ColumnOf(const CsvTable& table, std::string_view name) {
  const auto at = std::find(table.columns.begin(), table.columns.end(), name);
  if (at == table.columns.end()) return std::nullopt;
  return static_cast<size_t>(at - table.columns.begin());
}

}  // namespace

absl::StatusOr<Prices> ParsePrices(std::string_view csv, std::string_view file_name,
                                   const std::set<std::string>& cards) {
  const auto refuse = [&](const CsvRow* row, std::string what) {
    return absl::InvalidArgumentError(
        row == nullptr ? fmt::format("{}: {}", file_name, what)
                       : fmt::format("{}: line {}: {}", file_name, row->line, what));
  };
  const absl::StatusOr<CsvTable> table = ReadCsv(csv);
  if (!table.ok()) return refuse(nullptr, Message(table.status()));
  constexpr std::array<std::string_view, 4> kColumns = {"card", "price_usd", "kind", "date"};
  std::array<size_t, 4> places{};
  for (size_t i = 0; i < kColumns.size(); ++i) {
    const auto place = ColumnOf(*table, kColumns[i]);
    if (!place) {
      return refuse(nullptr, fmt::format("there is no column '{}'; a price file has {}",
                                         kColumns[i], fmt::join(kColumns, ", ")));
    }
    places[i] = *place;
  }
  Prices prices;
  std::set<std::string> seen;
  std::string kind, first_day, last_day;
  for (const CsvRow& row : table->rows) {
    const std::string& card = row.cells[places[0]];
    const auto price = PositiveNumber(row.cells[places[1]]);
    const std::string& of_line = row.cells[places[2]];
    const std::string& day = row.cells[places[3]];
    if (!price) {
      return refuse(&row, fmt::format("'{}' is no price above zero in US dollars",
                                      Printable(row.cells[places[1]])));
    }
    if (of_line != "purchase" && of_line != "hourly") {
      return refuse(&row, fmt::format("kind is purchase or hourly, not '{}'", Printable(of_line)));
    }
    if (!kind.empty() && of_line != kind) {
      return refuse(&row, "purchase and hourly prices in one file cannot be held against another");
    }
    kind = of_line;
    if (!ParseTimestamp(day + "T00:00:00Z")) {
      return refuse(&row, fmt::format("date is a day as 2026-11-30, not '{}'", Printable(day)));
    }
    if (!seen.insert(FoldCardName(card)).second) {
      return refuse(&row, fmt::format("'{}' has a price already", Printable(card)));
    }
    first_day = first_day.empty() ? day : std::min(first_day, day);
    last_day = std::max(last_day, day);
    for (const std::string& measured : cards) {
      if (FoldCardName(measured) == FoldCardName(card)) prices.by_card[measured] = *price;
    }
  }
  prices.note = fmt::format("per dollar: {} prices of {}, {}{}", kind, file_name, first_day,
                            last_day == first_day ? "" : " to " + last_day);
  return prices;
}

absl::StatusOr<Prices> ReadPrices(const std::string& path, const std::set<std::string>& cards) {
  const absl::StatusOr<std::string> text = ReadTextFile(path, kMostBytes);
  if (!text.ok()) return text.status();
  return ParsePrices(*text, path, cards);
}

void AddLaunchPrices(const std::set<std::string>& cards, Prices& prices) {
  std::string names;
  for (const std::string& card : cards) {
    const CardMatch match = BuiltinCards().Identify(card, 0, 0);
    if (prices.by_card.contains(card) || match.facts == nullptr || !match.facts->msrp_usd) continue;
    prices.by_card[card] = *match.facts->msrp_usd;
    names += fmt::format("{}{} {} USD", names.empty() ? "" : ", ", card, *match.facts->msrp_usd);
  }
  if (names.empty()) return;
  prices.note += fmt::format("{}per dollar: prices at launch, not of today: {}",
                             prices.note.empty() ? "" : "; ", names);
}

}  // namespace assay::cli
