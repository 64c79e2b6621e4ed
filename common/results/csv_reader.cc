#include "common/results/csv_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "common/text/utf8.h"

namespace assay {
namespace {

absl::Status AtLine(size_t line, std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("line {}: {}", line, what));
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool Done() const { return at_ >= text_.size(); }

  // Past remarks and empty lines.
  void SkipRemarks() {
    while (!Done()) {
      const size_t end = std::min(text_.find('\n', at_), text_.size());
      const std::string_view line = text_.substr(at_, end - at_);
      if (!line.empty() && line != "\r" && line[0] != '#') return;
      at_ = end + 1;
      ++line_;
    }
  }

  absl::StatusOr<CsvRow> Row() {
    CsvRow row;
    row.line = line_;
    while (true) {
      std::string cell;
      if (!Done() && text_[at_] == '"') {
        if (absl::Status status = Quoted(cell); !status.ok()) return status;
      } else {
        const size_t end = std::min(text_.find_first_of(",\r\n", at_), text_.size());
        cell = text_.substr(at_, end - at_);
        at_ = end;
      }
      row.cells.push_back(std::move(cell));
      if (!Done() && text_[at_] == ',') {
        ++at_;
        continue;
      }
      if (!Done() && text_[at_] == '\r') ++at_;
      if (!Done() && text_[at_] != '\n') return AtLine(line_, "text behind a closing quote or CR");
      ++at_;
      ++line_;
      return row;
    }
  }

 private:
  absl::Status Quoted(std::string& cell) {
    const size_t begin_line = line_;
    for (++at_; !Done(); ++at_) {
      if (text_[at_] == '\n') ++line_;
      if (text_[at_] != '"') {
        cell += text_[at_];
      } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
        cell += '"';
        ++at_;
      } else {
        ++at_;
        return absl::OkStatus();
      }
    }
    return AtLine(begin_line, "a quote is not closed");
  }

  std::string_view text_;
  size_t at_ = 0;
  size_t line_ = 1;
};

}  // namespace

absl::StatusOr<CsvTable> ReadCsv(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  if (!IsUtf8(text)) return absl::InvalidArgumentError("it is not UTF-8");
  Reader reader(text);
  CsvTable table;
  reader.SkipRemarks();
  if (reader.Done()) return absl::InvalidArgumentError("it has no header line");
  absl::StatusOr<CsvRow> header = reader.Row();
  if (!header.ok()) return header.status();
  table.columns = std::move(header->cells);
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const auto first = std::find(table.columns.begin(), table.columns.end(), table.columns[i]);
    if (first != table.columns.begin() + static_cast<std::ptrdiff_t>(i)) {
      return AtLine(header->line, fmt::format("column '{}' stands there twice", table.columns[i]));
    }
  }
  for (reader.SkipRemarks(); !reader.Done(); reader.SkipRemarks()) {
    absl::StatusOr<CsvRow> row = reader.Row();
    if (!row.ok()) return row.status();
    if (row->cells.size() != table.columns.size()) {
      return AtLine(row->line, fmt::format("{} cells under {} columns", row->cells.size(),
                                           table.columns.size()));
    }
    table.rows.push_back(*std::move(row));
  }
  return table;
}

}  // namespace assay
