// A sound record that a test of the rules changes in one place.
#ifndef ASSAY_TESTS_UNIT_RESULTS_SOUND_RECORD_H_
#define ASSAY_TESTS_UNIT_RESULTS_SOUND_RECORD_H_

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "common/results/rules.h"

namespace assay {

using Change = std::pair<Field, Value>;

// A sound measurement of one cold GPU.
inline Record Sound(const std::vector<Change>& changes = {}) {
  Record record;
  const auto set = [&](Field field, Value value) {
    ASSERT_TRUE(record.Set(field, std::move(value)).ok());
  };
  set(Field::kOutcome, std::string("ok"));
  set(Field::kThermal, std::string("cold"));
  set(Field::kThroughput, 640.0);
  set(Field::kSteps, int64_t{1000});
  set(Field::kDeviceSteps, int64_t{1000});
  set(Field::kBatch, std::string("64"));
  set(Field::kSamples, int64_t{64000});
  set(Field::kSeconds, 100.0);
  set(Field::kHostSeconds, 100.5);
  set(Field::kSkippedSteps, int64_t{0});
  set(Field::kStopReason, std::string("confidence"));
  set(Field::kGpus, int64_t{1});
  set(Field::kNodes, int64_t{1});
  set(Field::kWorldSize, int64_t{1});
  set(Field::kGpuUuids, std::string("GPU-1"));
  set(Field::kSimulated, false);
  for (const auto& [field, value] : changes) set(field, value);
  return record;
}

inline std::vector<std::string> FaultsOf(const std::vector<Change>& changes) {
  return Judge(Sound(changes)).faults;
}

inline std::vector<std::string> MarksOf(const std::vector<Change>& changes) {
  return Judge(Sound(changes)).marks;
}

}  // namespace assay

#endif  // ASSAY_TESTS_UNIT_RESULTS_SOUND_RECORD_H_
