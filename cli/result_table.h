// The tables of results: grouped rows for `run` and `results`, one record in full for `show`.
// Pure; text of peers is made printable.
#ifndef ASSAY_CLI_RESULT_TABLE_H_
#define ASSAY_CLI_RESULT_TABLE_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "common/results/record.h"

namespace assay::cli {

// "1.83"; two decimals would make 0.00 of a small one, and hundreds of digits of an absurd one.
std::string RatioText(double ratio);

// One row for each spec and target, grouped over repeats (common/results/summary.h). What failed is
// a word, never a number. Ends in a line feed; says so where there are no rows. `baseline`: the
// card that ratios are taken to, which a line below then says; "" for the first row.
std::string ResultTable(std::span<const Record> records, size_t width, bool color,
                        std::string_view baseline = "");

// "resnet50 train amp-fp16 b64 eager RTX 3090 repeat 2": a cell in a sentence.
std::string CellLabel(const Record& record);

// Every known field in groups, one a line, with its unit.
std::string RecordText(const Record& record);

// The value of `field` as a person reads it: "9.31 GiB", "1.2 %", "1,410 MHz"; "" where not known.
std::string FieldText(const Record& record, const FieldInfo& field);

}  // namespace assay::cli

#endif  // ASSAY_CLI_RESULT_TABLE_H_
