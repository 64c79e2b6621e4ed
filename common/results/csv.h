// Results as CSV by RFC 4180: CRLF line ends, a header line, quotes where a cell has a comma, a
// quote or a line end, quotes doubled inside. Not known is an empty cell; a list is joined by ';';
// numbers use '.' and no thousands separator, whatever the locale is, and read back equal.
//
// Thread rule: pure, any thread.
#ifndef ASSAY_COMMON_RESULTS_CSV_H_
#define ASSAY_COMMON_RESULTS_CSV_H_

#include <span>
#include <string>
#include <string_view>

#include "common/results/record.h"

namespace assay {

// One cell, quoted where it has to be. Bytes that are not UTF-8 become U+FFFD.
std::string CsvCell(std::string_view text);

// The header line and the line of one record, with `fields` as columns; each with its line end.
std::string CsvHeader(std::span<const Field> fields);
std::string CsvLine(const Record& record, std::span<const Field> fields);

// Header and one line a record, with `fields` as columns.
std::string WriteCsv(std::span<const Record> records, std::span<const Field> fields);

// The same with every field of AllFields().
std::string WriteResultsCsv(std::span<const Record> records);

}  // namespace assay

#endif  // ASSAY_COMMON_RESULTS_CSV_H_
