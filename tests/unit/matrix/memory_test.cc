// Case 49: small memory whatever the text holds, measured in a child of its own.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>

#include "common/matrix/matrix.h"

namespace assay {
namespace {

constexpr long kMostGrowthKib = 64 * 1024;

constexpr bool kSanitized = ASSAY_SANITIZED;

long PeakKib() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

// KiB by which the peak of a child grew over the work, or -1 where the text was accepted although
// it should not be, or the child crashed.
long GrowthOf(const std::string& text, bool allow_many) {
  int ends[2];
  if (pipe(ends) != 0) return -1;
  const pid_t child = fork();
  if (child == 0) {
    (void)ParseMatrix("axes: {model: resnet50}", "warm.yaml", {});
    const long before = PeakKib();
    const bool refused = !ParseMatrix(text, "m.yaml", {allow_many}).ok();
    const long growth = refused ? PeakKib() - before : -1;
    const bool sent = write(ends[1], &growth, sizeof(growth)) == sizeof(growth);
    _exit(sent ? 0 : 1);
  }
  close(ends[1]);
  long growth = -1;
  if (read(ends[0], &growth, sizeof(growth)) != sizeof(growth)) growth = -1;
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? growth : -1;
}

void ExpectSmall(const std::string& text, bool allow_many = false) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer's own memory is counted too";
  const long growth = GrowthOf(text, allow_many);
  EXPECT_GE(growth, 0);
  EXPECT_LT(growth, kMostGrowthKib);
}

std::string Repeated(std::string_view part, size_t times) {
  std::string text;
  for (size_t i = 0; i < times; ++i) text += part;
  return text;
}

TEST(MatrixMemory, Case49AliasBomb) {
  std::string text = "a0: &a0 [" + Repeated("x,", 99) + "x]\n";
  for (char level = '1'; level <= '9'; ++level) {
    const std::string alias = std::string("*a") + static_cast<char>(level - 1);
    text +=
        std::string("a") + level + ": &a" + level + " [" + Repeated(alias + ",", 9) + alias + "]\n";
  }
  ExpectSmall(text);
}

TEST(MatrixMemory, Case49DeepNesting) {
  ExpectSmall(std::string(100'000, '['));
  ExpectSmall(Repeated("[\n", 100'000));
  ExpectSmall(Repeated("- ", 100'000));
  ExpectSmall(Repeated("{a: ", 100'000));
}

TEST(MatrixMemory, AListOfTenMegabytes) {
  ExpectSmall("a: [" + Repeated("1,\n", 3'500'000) + "1]");
}

TEST(MatrixMemory, AsManyValuesAsOneMebibyteHolds) {
  ExpectSmall("a: [" + Repeated("1,", 15'000) + "\n" + Repeated("1,\n", 300'000) + "1]");
  ExpectSmall(Repeated("- 1\n", 250'000));
}

TEST(MatrixMemory, ManyBlocksOfLongRanges) {
  std::string text = "matrices:\n";
  for (int i = 0; i < 900; ++i) {
    text += "  b" + std::to_string(i) +
            ": {axes: {model: resnet50, batch: {from: 1, to: 10000, step: 1}}}\n";
  }
  ExpectSmall(text, true);
}

TEST(MatrixMemory, ManyBlocksThatShareManyExclusions) {
  std::string text = "exclude:\n" + Repeated("  - {batch: [1, 2, 3]}\n", 1000) + "matrices:\n";
  for (int i = 0; i < 900; ++i) {
    text += "  b" + std::to_string(i) + ": {axes: {model: resnet50, batch: [1, 2, 3]}}\n";
  }
  ExpectSmall(text, true);
}

TEST(MatrixMemory, AGridOfAMillionPoints) {
  ExpectSmall(
      "axes: {model: resnet50, batch: {from: 1, to: 10000, step: 1}, gpus: {from: 1, to: 100, "
      "step: "
      "1}}");
}

}  // namespace
}  // namespace assay
