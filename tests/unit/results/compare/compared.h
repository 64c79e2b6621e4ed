// Made-up cells of a small fleet, added to Cells as stored records would be.
#ifndef ASSAY_TESTS_UNIT_RESULTS_COMPARE_COMPARED_H_
#define ASSAY_TESTS_UNIT_RESULTS_COMPARE_COMPARED_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "common/results/compare/compare.h"
#include "tests/unit/results/sound_record.h"

namespace assay::compare {

// What one cell of the fleet is; the rest is as every other cell's.
struct Made {
  std::string card = "RTX 3090";
  std::string model = "resnet50";
  int64_t batch = 64;  // kBatchMax: `max`
  std::string gpu = "GPU-1";
  std::string lane = "eager";
  std::string precision = "fp32";
  std::string stack = "torch-2.11.0-cu130";
  std::string node = "n1";
};

inline const Made kOld{.card = "RTX 2080 Ti", .gpu = "GPU-old"};
inline const Made kNew{.card = "RTX 3090", .gpu = "GPU-new"};

inline Record RecordOf(const Made& made, int64_t repeat, double throughput,
                       const std::vector<Change>& changes = {}) {
  const double seconds = 100;
  Record record = Sound({{Field::kModel, made.model},
                         {Field::kMode, std::string("train")},
                         {Field::kCard, made.card},
                         {Field::kLane, made.lane},
                         {Field::kPrecision, made.precision},
                         {Field::kStack, made.stack},
                         {Field::kNode, made.node},
                         {Field::kGpuUuids, made.gpu},
                         {Field::kUnit, std::string("img/s")},
                         {Field::kMethodVersion, int64_t{1}},
                         {Field::kRepeat, repeat},
                         {Field::kThroughput, throughput},
                         {Field::kHostSeconds, seconds}});
  record.Clear(Field::kSamples);  // no figure that would have to agree with the throughput
  record.Set(Field::kBatch, made.batch == kBatchMax ? Value(std::string("max")) : Value(made.batch))
      .IgnoreError();
  for (const auto& [field, value] : changes) EXPECT_TRUE(record.Set(field, value).ok());
  return record;
}

class Fleet {
 public:
  // One process for each throughput.
  Fleet& Add(const Made& made, std::initializer_list<double> throughputs,
             const std::vector<Change>& changes = {}, const std::string& run = "r1") {
    int64_t repeat = 0;
    for (const double throughput : throughputs) {
      cells_->Add(RecordOf(made, ++repeat, throughput, changes), run);
    }
    return *this;
  }
  // The same on two GPUs, so that a verdict is more than indicative.
  Fleet& AddTwo(Made made, std::initializer_list<double> throughputs,
                const std::vector<Change>& changes = {}, const std::string& run = "r1") {
    for (const char* gpu : {"-a", "-b"}) {
      Made one = made;
      one.gpu = "GPU-" + made.card + gpu;
      Add(one, throughputs, changes, run);
    }
    return *this;
  }
  // A cell without a figure.
  Fleet& Fail(const Made& made, const std::string& outcome, const std::string& reason = "") {
    Record record = RecordOf(made, 1, 1);
    for (const Field field : {Field::kThroughput, Field::kUnit, Field::kMethodVersion}) {
      record.Clear(field);
    }
    record.SetText(Field::kOutcome, outcome);
    if (!reason.empty()) record.SetText(Field::kReason, reason);
    cells_->Add(record, "r1");
    return *this;
  }
  Cells& cells() const { return *cells_; }
  Comparison Compare(const Options& options = {}) const {
    absl::StatusOr<Comparison> comparison = compare::Compare(*cells_, options);
    EXPECT_TRUE(comparison.ok()) << comparison.status();
    return comparison.ok() ? *std::move(comparison) : Comparison{};
  }
  std::string Refusal(const Options& options = {}) const {
    const absl::StatusOr<Comparison> comparison = compare::Compare(*cells_, options);
    EXPECT_FALSE(comparison.ok());
    return std::string(comparison.status().message());
  }

 private:
  // Shared by copies, which Add() and its like invite to: cells have none.
  std::shared_ptr<Cells> cells_ = std::make_shared<Cells>();
};

// Of the first group; an empty row where there is none of that name.
inline SideRow SideOf(const Comparison& comparison, const std::string& name, size_t group = 0) {
  if (group < comparison.groups.size()) {
    for (const SideRow& side : comparison.groups[group].sides) {
      if (side.side == name) return side;
    }
  }
  ADD_FAILURE() << "no side " << name;
  return {};
}

inline std::vector<std::string> ReasonsOf(const Comparison& comparison, const std::string& side) {
  std::vector<std::string> reasons;
  for (const LeftOut& left : comparison.left_out) {
    if (left.side == side) reasons.push_back(left.workload + ": " + left.reason);
  }
  return reasons;
}

}  // namespace assay::compare

#endif  // ASSAY_TESTS_UNIT_RESULTS_COMPARE_COMPARED_H_
