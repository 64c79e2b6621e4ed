#include "cli/fitted_table.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "cli/printable.h"
#include "common/text/utf8.h"

namespace assay::cli {
namespace {

constexpr size_t kGap = 2;

struct Shape {
  size_t index = 0;  // of the column
  size_t width = 0;
};

std::string CellOf(const FittedRow& row, size_t index) {
  return index < row.cells.size() ? Printable(row.cells[index]) : std::string();
}

size_t Total(const std::vector<Shape>& shapes) {
  size_t total = shapes.empty() ? 0 : kGap * (shapes.size() - 1);
  for (const Shape& shape : shapes) total += shape.width;
  return total;
}

// The columns that stay, and the heading made of those that say the same everywhere.
std::vector<Shape> Choose(const std::vector<FittedColumn>& columns,
                          const std::vector<FittedRow>& rows, std::string& heading) {
  std::vector<Shape> shapes;
  for (size_t i = 0; i < columns.size(); ++i) {
    size_t widest = 0;
    bool constant = rows.size() > 1;
    for (const FittedRow& row : rows) {
      widest = std::max(widest, DisplayWidth(CellOf(row, i)));
      constant = constant && CellOf(row, i) == CellOf(rows.front(), i);
    }
    if (widest == 0 && !rows.empty()) continue;
    if (constant && !columns[i].heading_prefix.empty()) {
      const std::string prefix = columns[i].heading_prefix == " " ? "" : columns[i].heading_prefix;
      heading += (heading.empty() ? "" : ", ") + prefix + CellOf(rows.front(), i);
      continue;
    }
    shapes.push_back({i, std::max(widest, DisplayWidth(columns[i].title))});
  }
  return shapes;
}

// Cuts the widest column that may be cut by what is missing. False where none is left.
bool Shorten(const std::vector<FittedColumn>& columns, std::vector<Shape>& shapes, size_t excess) {
  Shape* widest = nullptr;
  for (Shape& shape : shapes) {
    const size_t least = columns[shape.index].least_width;
    if (least == 0 || shape.width <= std::max(least, DisplayWidth(columns[shape.index].title))) {
      continue;
    }
    if (widest == nullptr || shape.width > widest->width) widest = &shape;
  }
  if (widest == nullptr) return false;
  const size_t least =
      std::max(columns[widest->index].least_width, DisplayWidth(columns[widest->index].title));
  widest->width -= std::min(excess, widest->width - least);
  return true;
}

std::optional<size_t> NextToDrop(const std::vector<FittedColumn>& columns,
                                 const std::vector<Shape>& shapes) {
  std::optional<size_t> next;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const int order = columns[shapes[i].index].drop_order;
    if (order > 0 && (!next || order < columns[shapes[*next].index].drop_order)) next = i;
  }
  return next;
}

std::string Wrapped(const std::string& text, size_t width) {
  std::string out, line;
  size_t at = 0;
  while (at < text.size()) {
    const size_t comma = text.find(", ", at);
    const std::string part =
        text.substr(at, comma == std::string::npos ? std::string::npos : comma + 1 - at);
    if (!line.empty() && DisplayWidth(line) + 1 + DisplayWidth(part) > width) {
      out += line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + part;
    at = comma == std::string::npos ? text.size() : comma + 2;
  }
  return out + TruncateToWidth(line, width) + "\n";
}

}  // namespace

std::string RenderFitted(const std::vector<FittedColumn>& columns,
                         const std::vector<FittedRow>& rows, size_t width, bool color) {
  std::string heading, dropped;
  std::vector<Shape> wanted = Choose(columns, rows, heading);
  std::vector<Shape> shapes = wanted;
  while (Total(shapes) > width) {
    if (Shorten(columns, shapes, Total(shapes) - width)) continue;
    const auto next = NextToDrop(columns, wanted);
    if (!next) break;
    dropped += (dropped.empty() ? "" : ", ") + columns[wanted[*next].index].title;
    wanted.erase(wanted.begin() + static_cast<std::ptrdiff_t>(*next));
    // What was cut for the sake of the dropped column gets its room back.
    shapes = wanted;
  }
  std::vector<Column> kept;
  for (const Shape& shape : shapes) {
    const FittedColumn& column = columns[shape.index];
    kept.push_back({column.title, column.align, shape.width});
  }
  TextTable table(std::move(kept));
  for (const FittedRow& row : rows) {
    std::vector<std::string> cells;
    for (const Shape& shape : shapes) cells.push_back(CellOf(row, shape.index));
    table.AddRow(cells);
  }
  std::string out;
  if (!heading.empty()) out += Wrapped(heading, width);
  const std::string body = table.Render();
  size_t number = 0;  // of the line: the title, then one line a row
  for (size_t at = 0; at < body.size(); ++number) {
    const size_t end = std::min(body.find('\n', at), body.size());
    const Color tone = number == 0                ? Color::kBold
                       : number - 1 < rows.size() ? rows[number - 1].color
                                                  : Color::kNone;
    out += Colored(body.substr(at, end - at), tone, color) + "\n";
    at = end + 1;
  }
  if (!dropped.empty()) {
    out += TruncateToWidth(fmt::format("(no room for: {}; a file or a pipe has all)", dropped),
                           width) +
           "\n";
  }
  return out;
}

size_t TableWidth(int fd) {
  if (isatty(fd) == 0) return kNoLimit;
  return static_cast<size_t>(std::clamp(SizeOf(fd).columns, 60, 160));
}

}  // namespace assay::cli
