// TrainRunner: assay-train's answers and its one cell, behind the frame of runners/common.
//
// Lives in the shared library that is linked with LibTorch; main.cc loads it only when it is
// needed, so that loading has a time of its own and a missing library gives a sentence.
#ifndef ASSAY_RUNNERS_TRAIN_TRAIN_RUNNER_H_
#define ASSAY_RUNNERS_TRAIN_TRAIN_RUNNER_H_

#include <string>
#include <vector>

#include "runners/common/runner_main.h"
#include "runners/train/device/device.h"
#include "runners/train/measurement.h"
#include "runners/train/models/registry.h"

namespace assay::train {

inline constexpr char kProgram[] = "assay-train";
inline constexpr int kMethodVersion = 1;  // docs/method.md

class TrainRunner final : public Runner {
 public:
  std::string Name() const override { return kProgram; }
  std::string Version() const override;
  nlohmann::json StackInfo() override;
  std::vector<std::string> Models() const override;
  nlohmann::json Describe(const std::string& model) override;
  RunnerResult Run(const CellFile& cell, RecordWriter& records) override;
};

// Everything after the checks of the cell file alone: refuses a precision that `device` lacks, else
// builds `entry`'s model on `device`, measures, and writes what is
// known into `fields` as soon as it is, so that a cell that fails later keeps it. Returns the
// outcome without fields. Throws what LibTorch throws.
RunnerResult RunCell(const CellFile& cell, const ModelEntry& entry, Device& device,
                     nlohmann::json& fields, RecordWriter& records);

// Whether the figures of a finished window are those of a training that works: not where losses or
// outputs stay non-finite or the loss scale has fallen to nothing. An early overflow or two is only
// a note (skipped_steps). `last_loss_finite`: the loss, or in inference the output, of the last
// step.
RunnerResult JudgeLosses(const Measurement& measured, bool last_loss_finite);

}  // namespace assay::train

// Entry of the shared library for main.cc. Owned by the library.
extern "C" assay::Runner* AssayTrainRunner();

#endif  // ASSAY_RUNNERS_TRAIN_TRAIN_RUNNER_H_
