#include "common/text/text_table.h"

#include <algorithm>
#include <utility>

#include "common/text/utf8.h"

namespace assay {
namespace {

std::string OneLine(std::string_view cell) {
  std::string text = ScrubForTerminal(cell);
  for (char& c : text) {
    if (c == '\n' || c == '\t') c = ' ';
  }
  return text;
}

void AppendCell(std::string& line, std::string_view cell, Align align, size_t width) {
  const std::string spaces(width - std::min(DisplayWidth(cell), width), ' ');
  if (align == Align::kRight) line += spaces;
  line += cell;
  if (align == Align::kLeft) line += spaces;
}

}  // namespace

TextTable::TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {
  for (Column& column : columns_) column.title = OneLine(column.title);
}

void TextTable::AddRow(const std::vector<std::string>& cells) {
  std::vector<std::string> row(columns_.size());
  for (size_t i = 0; i < std::min(cells.size(), row.size()); ++i) {
    row[i] = OneLine(cells[i]);
    if (columns_[i].most_width > 0) row[i] = TruncateToWidth(row[i], columns_[i].most_width);
  }
  rows_.push_back(std::move(row));
}

std::string TextTable::Render() const {
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    size_t width = DisplayWidth(columns_[i].title);
    for (const auto& row : rows_) width = std::max(width, DisplayWidth(row[i]));
    widths.push_back(width);
  }
  std::string text;
  const auto append_line = [&](const auto& cell_of) {
    std::string line;
    bool first = true;
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (widths[i] == 0) continue;
      if (!first) line += "  ";
      first = false;
      AppendCell(line, cell_of(i), columns_[i].align, widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  };
  append_line([&](size_t i) -> const std::string& { return columns_[i].title; });
  for (const auto& row : rows_) {
    append_line([&](size_t i) -> const std::string& { return row[i]; });
  }
  return text;
}

}  // namespace assay
