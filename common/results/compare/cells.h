// Cells: stored results as a comparison needs them: a row of small numbers each, texts once.
//
// A record is some kilobytes, a cell here some 250 bytes, so that a million of them can be compared
// in one process; records are given one by one and not kept. Thread rule: one owner.
#ifndef ASSAY_COMMON_RESULTS_COMPARE_CELLS_H_
#define ASSAY_COMMON_RESULTS_COMPARE_CELLS_H_

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/results/compare/fingerprint.h"
#include "common/results/outcome.h"
#include "common/results/record.h"

namespace assay::compare {

// Texts by number; 0 is "".
class Words {
 public:
  Words() { Number(""); }
  // A copy's views would be of the texts of the original.
  Words(const Words&) = delete;
  Words& operator=(const Words&) = delete;
  Words(Words&&) = default;
  Words& operator=(Words&&) = default;
  uint32_t Number(std::string_view text);
  // Valid as long as this.
  const std::string& Text(uint32_t number) const { return texts_[number]; }
  size_t size() const { return texts_.size(); }

 private:
  std::deque<std::string> texts_;  // views of them stay valid
  std::unordered_map<std::string_view, uint32_t> numbers_;
};

enum CellMark : uint16_t {
  kHostBound = 1,
  kSuspect = 2,
  kMixed = 4,
  kSimulated = 8,
  kThrottled = 16,
  kPowerLimited = 32,
  kUnconverged = 64,
  kPublished = 128,
  kOtherMetric = 256,  // no throughput, and so no workload
};

inline constexpr int64_t kBatchMax = -1;

struct Cell {
  std::array<uint32_t, kFingerprintSize> fingerprint{};
  uint32_t card = 0, node = 0, run = 0, gpu = 0, driver = 0;
  // Why it has no figure; "" where it has one: "mem_limit", "fail: crash", "invalid: ...".
  uint32_t reason = 0;
  int64_t batch = 0;          // kBatchMax; 0 where not known
  int64_t largest_batch = 0;  // of kBatchMax what was measured
  double throughput = 0;      // valid and above zero, else 0
  double watts = 0;           // 0 where not known
  int32_t repeat = 0;
  int32_t world_size = 1;
  std::optional<Outcome> outcome;
  uint16_t marks = 0;  // CellMark

  bool Has(CellMark mark) const { return (marks & mark) != 0; }
};

// A figure that others published; "", 0 where not known.
struct PublishedFigure {
  std::string card, stack, model, mode, precision, lane, unit, metric;
  int64_t gpus = 1, nodes = 1, batch = 0;
  Outcome outcome = Outcome::kOk;
  double value = 0, watts = 0, price_usd = 0;
};

class Cells {
 public:
  // `run`: the id it was read from. Rules are applied here; verdict and marks of the record do not
  // matter. Ceilings of cards (mode `peak`) are no workload and are passed over.
  void Add(const Record& record, std::string_view run);
  // As one process on a GPU that nothing is known of.
  void Add(const PublishedFigure& figure);

  const std::vector<Cell>& cells() const { return cells_; }
  const std::string& Text(uint32_t word) const { return words_.Text(word); }
  const std::string& Text(const Cell& cell, size_t place) const {
    return words_.Text(cell.fingerprint[place]);
  }

 private:
  Words words_;
  std::vector<Cell> cells_;
};

}  // namespace assay::compare

#endif  // ASSAY_COMMON_RESULTS_COMPARE_CELLS_H_
