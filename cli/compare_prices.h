// Prices of cards, for what a dollar buys.
//
// Thread rule: pure but for reading the file; any thread.
#ifndef ASSAY_CLI_COMPARE_PRICES_H_
#define ASSAY_CLI_COMPARE_PRICES_H_

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace assay::cli {

struct Prices {
  std::map<std::string, double> by_card;  // in US dollars; cards as the results name them
  std::string note;                       // where they come from and of which days
};

// Of `cards` those that the CSV names (columns card, price_usd, kind, date; names as the catalogue
// compares them). kind is purchase or hourly, for all lines the same, date an ISO 8601 day.
// InvalidArgument with the line.
absl::StatusOr<Prices> ParsePrices(std::string_view csv, std::string_view file_name,
                                   const std::set<std::string>& cards);
// Reads FILE.
absl::StatusOr<Prices> ReadPrices(const std::string& path, const std::set<std::string>& cards);

// Adds the catalogue's price at launch for cards that have none.
void AddLaunchPrices(const std::set<std::string>& cards, Prices& prices);

}  // namespace assay::cli

#endif  // ASSAY_CLI_COMPARE_PRICES_H_
