// Short forms for tests of matrix texts.
#ifndef ASSAY_TESTS_UNIT_MATRIX_MATRIX_TEXT_H_
#define ASSAY_TESTS_UNIT_MATRIX_MATRIX_TEXT_H_

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "common/matrix/matrix.h"
#include "common/status/status.h"

namespace assay {

inline Matrix Parsed(std::string_view text, bool allow_many = false) {
  auto matrix = ParseMatrix(text, "m.yaml", {allow_many});
  EXPECT_TRUE(matrix.ok()) << Message(matrix.status());
  return matrix.ok() ? *std::move(matrix) : Matrix{};
}

// The diagnostics, or "" where the text is accepted.
inline std::string Refusal(std::string_view text) {
  const auto matrix = ParseMatrix(text, "m.yaml", {});
  return matrix.ok() ? "" : Message(matrix.status());
}

inline std::vector<int64_t> Batches(const Matrix& matrix) {
  std::vector<int64_t> batches;
  for (const Spec& spec : matrix.specs) batches.push_back(spec.batch);
  return batches;
}

inline size_t CountLines(std::string_view text) {
  size_t lines = text.empty() ? 0 : 1;
  for (const char c : text) lines += c == '\n' ? 1 : 0;
  return lines;
}

}  // namespace assay

#endif  // ASSAY_TESTS_UNIT_MATRIX_MATRIX_TEXT_H_
