// TextTable: a plain table for a terminal or a log, aligned by display width (an em dash is one
// column, a CJK character two).
//
//   card      batch   img/s   95 %   outcome
//   RTX 3090     64   812.5  ±1.2 %  ok
//
// Thread rule: one owner.
#ifndef ASSAY_COMMON_TEXT_TEXT_TABLE_H_
#define ASSAY_COMMON_TEXT_TEXT_TABLE_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

enum class Align { kLeft, kRight };

struct Column {
  std::string title;
  Align align = Align::kLeft;
  size_t most_width = 60;  // longer cells are cut with "…"; 0: never
};

class TextTable {
 public:
  explicit TextTable(std::vector<Column> columns);

  // Cells beyond the columns are dropped, missing ones are empty. Line ends and tabs in a cell
  // become a space, other control characters and bytes that are not UTF-8 U+FFFD.
  void AddRow(const std::vector<std::string>& cells);

  size_t rows() const { return rows_.size(); }

  // Title line and rows, two spaces between columns, no spaces at line ends, a line feed after each
  // line. A column without a title and without a filled cell is left out. No rows: titles alone.
  std::string Render() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace assay

#endif  // ASSAY_COMMON_TEXT_TEXT_TABLE_H_
