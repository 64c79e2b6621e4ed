#include "common/results/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "common/text/number_format.h"
#include "common/text/utf8.h"

namespace assay {
namespace {

constexpr std::string_view kLineEnd = "\r\n";

std::string Cell(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return CsvCell(*text);
  if (const auto* integer = std::get_if<int64_t>(&value)) return fmt::format("{}", *integer);
  if (const auto* number = std::get_if<double>(&value)) return ShortestNumber(*number);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  return "";
}

}  // namespace

std::string CsvCell(std::string_view text) {
  std::string clean = ScrubUtf8(text);
  if (clean.find_first_of(",\"\r\n") == std::string::npos) return clean;
  std::string cell = "\"";
  for (const char c : clean) {
    if (c == '"') cell += '"';
    cell += c;
  }
  return cell + '"';
}

std::string CsvHeader(std::span<const Field> fields) {
  std::string line;
  for (size_t i = 0; i < fields.size(); ++i) {
    if (i > 0) line += ',';
    line += InfoOf(fields[i]).name;
  }
  line += kLineEnd;
  return line;
}

std::string CsvLine(const Record& record, std::span<const Field> fields) {
  std::string line;
  for (size_t i = 0; i < fields.size(); ++i) {
    if (i > 0) line += ',';
    line += Cell(record.Get(fields[i]));
  }
  line += kLineEnd;
  return line;
}

std::string WriteCsv(std::span<const Record> records, std::span<const Field> fields) {
  std::string csv = CsvHeader(fields);
  for (const Record& record : records) csv += CsvLine(record, fields);
  return csv;
}

std::string WriteResultsCsv(std::span<const Record> records) {
  std::vector<Field> fields;
  for (const FieldInfo& info : AllFields()) fields.push_back(info.field);
  return WriteCsv(records, fields);
}

}  // namespace assay
