// Reads CSV as people and spreadsheets write it (RFC 4180): a header line, cells in quotes where
// they have to be, CR LF or LF, an optional byte order mark. A line that begins with '#' outside of
// quotes is a remark.
//
// Thread rule: pure, any thread.
#ifndef ASSAY_COMMON_RESULTS_CSV_READER_H_
#define ASSAY_COMMON_RESULTS_CSV_READER_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace assay {

struct CsvRow {
  size_t line = 0;  // in the text, from 1
  std::vector<std::string> cells;
};

struct CsvTable {
  std::vector<std::string> columns;
  std::vector<CsvRow> rows;  // each with as many cells as there are columns
};

// InvalidArgument with the line: not UTF-8, a quote that is not closed, text behind a closing
// quote, a row of another length, a column twice, no header.
absl::StatusOr<CsvTable> ReadCsv(std::string_view text);

}  // namespace assay

#endif  // ASSAY_COMMON_RESULTS_CSV_READER_H_
