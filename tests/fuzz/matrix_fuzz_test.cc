// Fuzz target of the matrix checker, with libFuzzer's entry. Linked with GoogleTest it runs a
// bounded corpus of seeded mutations; with -fsanitize=fuzzer and ASSAY_LIBFUZZER it runs for ever.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "common/matrix/matrix.h"
#include "common/status/status.h"

namespace {

// Nullptr where all that must hold for any text does, else what does not.
const char* Fault(std::string_view text) {
  const auto matrix = assay::ParseMatrix(text, "f.yaml", {});
  if (matrix.ok()) {
    if (matrix->specs.empty()) return "accepted without a spec";
    if (matrix->CellsPerTarget() > assay::kMaxCellsUnasked) return "too many cells";
    for (size_t i = 0; i < matrix->specs.size(); ++i) {
      const assay::Spec& spec = matrix->specs[i];
      if (spec.index != i || spec.key != assay::SpecKey(spec)) return "wrong index or key";
      if (spec.model.empty() || spec.accumulate < 1 || spec.gpus < 1) return "wrong spec";
    }
    return nullptr;
  }
  const std::string message = assay::Message(matrix.status());
  if (message.empty() || message.size() > 20 * 1000) return "message of a wrong size";
  size_t lines = 0;
  for (size_t at = 0; at < message.size(); ++lines) {
    if (message.compare(at, 7, "f.yaml:") != 0) return "a line without a place";
    const size_t end = message.find('\n', at);
    at = end == std::string::npos ? message.size() : end + 1;
  }
  return lines > 20 ? "more than 20 lines" : nullptr;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (Fault(std::string_view(reinterpret_cast<const char*>(data), size)) != nullptr) std::abort();
  return 0;
}

#ifndef ASSAY_LIBFUZZER

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <vector>

namespace {

constexpr int kMutations = 4000;
constexpr auto kMostTime = std::chrono::seconds(20);

std::vector<std::string> Corpus() {
  std::vector<std::string> corpus = {
      "axes: {model: resnet50}",
      "axes:\n  model: &m [resnet50, swin_l]\n  batch: [1, {from: 2, to: 64, times: 2}, max]\n"
      "zip:\n  - {image: [224, 800x1333], gpus: [1, 2]}\nexclude:\n  - {batch: {above: 8}}\n",
      "matrices:\n  a: {axes: {model: resnet50}, include: [{batch: 1}]}\n  b: {zip: []}\n",
      "&x [*x]",
      "a: !!str 'x'\n---\n...\n%YAML 1.2\n",
  };
  for (const char* name : {"quickstart", "cards-cnn", "memory-limits", "h200-resnet50"}) {
    const auto text =
        assay::ReadMatrixFile(std::string(ASSAY_SOURCE_DIR "/examples/") + name + ".yaml");
    if (text.ok()) corpus.push_back(*text);
  }
  return corpus;
}

// What a mutation puts in: YAML's own marks, and scalars that it reads in more than one way.
constexpr std::string_view kPieces[] = {
    // clang-format off
    "[", "]", "{", "}", ":", ": ", "- ", "\n", "\n  ", "&a ", "*a", "!", "|\n", ">", "'", "\"", "#",
    "\t", "? ", ",", "064", "no", "1e3", "max", "~", "<<: ", "---\n", "...\n", "%", "@", "`", "\\",
    "\xEF\xBB\xBF", "\xFF", std::string_view("\0", 1), "\x04", "99999999999999999999", "-1"
    // clang-format on
};

std::string Mutated(std::string text, const std::vector<std::string>& corpus,
                    std::mt19937& random) {
  const auto below = [&](size_t most) {
    return std::uniform_int_distribution<size_t>(0, most)(random);
  };
  for (size_t i = 0, times = 1 + below(5); i < times; ++i) {
    const size_t at = below(text.size());
    switch (below(5)) {
      case 0:
        text.insert(at, kPieces[below(std::size(kPieces) - 1)]);
        break;
      case 1:
        text.erase(at, below(12));
        break;
      case 2:
        text.insert(at, text.substr(below(text.size()), below(40)));
        break;
      case 3:
        text.insert(at, std::string(below(200), "[{-? "[below(4)]));
        break;
      case 4: {
        const std::string& other = corpus[below(corpus.size() - 1)];
        text.insert(at, other.substr(below(other.size()), below(60)));
        break;
      }
      default:
        if (at < text.size()) text[at] = static_cast<char>(below(255));
    }
  }
  return text;
}

TEST(MatrixFuzz, SeededMutationsGiveASpecOrADiagnosticAndNothingElse) {
  const std::vector<std::string> corpus = Corpus();
  ASSERT_EQ(corpus.size(), 9u);
  std::mt19937 random(20240611);
  const auto start = std::chrono::steady_clock::now();
  int tried = 0;
  for (; tried < kMutations && std::chrono::steady_clock::now() - start < kMostTime; ++tried) {
    const std::string text =
        Mutated(corpus[static_cast<size_t>(tried) % corpus.size()], corpus, random);
    const char* fault = Fault(text);
    ASSERT_EQ(fault, nullptr) << fault << " for:\n" << text;
  }
  EXPECT_GT(tried, 100);
}

}  // namespace

#endif  // ASSAY_LIBFUZZER
