// A comparison for people: tables for a terminal, or the same as Markdown.
//
// Pure. Thread rule: any thread.
#ifndef ASSAY_CLI_COMPARE_TABLE_H_
#define ASSAY_CLI_COMPARE_TABLE_H_

#include <cstddef>
#include <string>

#include "common/results/compare/compare.h"

namespace assay::cli {

// For each group a table of its sides and one of their workloads, then what was left out and why.
std::string ComparisonTable(const compare::Comparison& comparison, size_t width, bool color);
std::string ComparisonMarkdown(const compare::Comparison& comparison);

}  // namespace assay::cli

#endif  // ASSAY_CLI_COMPARE_TABLE_H_
