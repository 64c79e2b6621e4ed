// FittedTable: a table that fits a width.
//
// Columns without any filled cell go; a column that says the same in every row becomes a part of
// the heading line; what is still too wide is shortened, then dropped in the stated order, and the
// table says what was dropped. Pure; text of peers is made printable.
#ifndef ASSAY_CLI_FITTED_TABLE_H_
#define ASSAY_CLI_FITTED_TABLE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "cli/output.h"
#include "common/text/text_table.h"

namespace assay::cli {

struct FittedColumn {
  std::string title;
  Align align = Align::kLeft;
  // May be cut to this many columns; 0: never cut.
  size_t least_width = 0;
  // The column with the lowest number above 0 is dropped first; 0: never dropped.
  int drop_order = 0;
  // Where every row says the same: "" keeps the column, else the heading says
  // prefix + value ("batch 64"; " " as prefix stands for the value alone).
  std::string heading_prefix;
};

struct FittedRow {
  std::vector<std::string> cells;
  Color color = Color::kNone;
};

// Ends in a line feed. No line is wider than `width` unless columns that may not be dropped are.
std::string RenderFitted(const std::vector<FittedColumn>& columns,
                         const std::vector<FittedRow>& rows, size_t width, bool color);

// Wider than any table. Not the largest number: widths are added to.
inline constexpr size_t kNoLimit = size_t{1} << 30;

// How wide a table on `fd` may be: the terminal (60 to 160). A file or a pipe has room for all:
// what was left out there could be found nowhere else, since neither csv nor json has ratios.
size_t TableWidth(int fd);

}  // namespace assay::cli

#endif  // ASSAY_CLI_FITTED_TABLE_H_
