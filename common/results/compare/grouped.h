// Grouped: cells in the order that a comparison walks: group, workload, side, stack, choice, GPU.
//
// Internal to this folder. Thread rule: pure, any thread.
#ifndef ASSAY_COMMON_RESULTS_COMPARE_GROUPED_H_
#define ASSAY_COMMON_RESULTS_COMPARE_GROUPED_H_

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/results/compare/cells.h"
#include "common/results/compare/compare.h"

namespace assay::compare {

struct Process {
  int32_t repeat = 0;
  double throughput = 0, watts = 0;
  uint32_t driver = 0;
  uint16_t marks = 0;
};
using Gpus = std::map<uint32_t, std::vector<Process>>;  // each by repeat

// What a score chooses among. Lane and layout only where the score is kTuned, else 0.
struct Choice {
  int64_t batch = 0;
  uint32_t lane = 0, layout = 0;
  friend auto operator<=>(const Choice&, const Choice&) = default;
};

struct SideCells {
  std::map<uint32_t, std::map<Choice, Gpus>> measured;  // by stack
  std::map<Choice, uint32_t> failed;                    // why, of any stack
  std::map<uint32_t, uint32_t> across;                  // place of the field: value
};

struct Workload {
  std::string label;
  std::array<uint32_t, kFingerprintSize> fingerprint{};  // 0 where not part of the key
  std::map<uint32_t, SideCells> sides;
};

struct GroupCells {
  Group head;  // its texts alone
  std::vector<Workload> workloads;
};

struct Grouped {
  Words words;  // of sides and stacks; all other words are those of the cells
  std::vector<GroupCells> groups;
  std::vector<uint32_t> sides;  // in the order in which they were added
  std::vector<LeftOut> left_out;
};

absl::StatusOr<Grouped> GroupCellsOf(const Cells& cells, const Options& options);

// A stack's versions before its name, so that of two the newer is greater: 2.11 after 2.7.
bool NewerStack(const std::string& a, const std::string& b);
// How people call a stack of Grouped::words.
std::string StackName(const std::string& stack);

}  // namespace assay::compare

#endif  // ASSAY_COMMON_RESULTS_COMPARE_GROUPED_H_
