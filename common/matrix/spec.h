// Spec: one fully resolved point of a matrix. Knows no node; its key is the same on every machine.
#ifndef ASSAY_COMMON_MATRIX_SPEC_H_
#define ASSAY_COMMON_MATRIX_SPEC_H_

#include <cstdint>
#include <string>

namespace assay {

// Batch value of `batch: max`.
inline constexpr int64_t kBatchMax = 0;

struct StopRule {
  double confidence = 0.01;  // relative half width of the 95 % interval at which measuring stops
  double min_seconds = 5;
  double max_seconds = 60;
};

struct Limits {
  double cell_seconds = 900;     // Start to last report, then `timeout`
  double no_step_seconds = 120;  // without a record from a runner, then `hung`
};

struct Spec {
  std::string key;     // 16 hex digits (docs/matrix.md says of what)
  uint32_t index = 0;  // place in the expansion of its matrix, from 0
  std::string stack;   // empty: the newest stack of the node that can run it
  std::string model;
  std::string mode = "train";
  std::string precision = "fp32";
  int64_t batch = 1;  // samples per GPU per optimizer step, or kBatchMax
  std::string lane = "eager";
  std::string layout = "channels-last";
  int64_t accumulate = 1;  // divides batch
  std::string scaling = "weak";
  std::string image;  // HEIGHTxWIDTH; empty for models without images
  int64_t gpus = 1;   // ranks on each node
  int64_t nodes = 1;
  std::string thermal = "settled";
  std::string colocate = "none";
  std::string data = "synthetic";
  StopRule stop;
  Limits limits;

  int64_t WorldSize() const { return gpus * nodes; }
};

}  // namespace assay

#endif  // ASSAY_COMMON_MATRIX_SPEC_H_
