// Lane: how a step reaches the device; what the step does is the Trainer's.
//
// Owner: the runner, for one cell. Thread rule: one thread. Errors: LibTorch's exceptions, and
// CannotRecord.
#ifndef ASSAY_RUNNERS_TRAIN_LANES_LANE_H_
#define ASSAY_RUNNERS_TRAIN_LANES_LANE_H_

#include <memory>
#include <string>
#include <vector>

#include "runners/train/data/data_source.h"
#include "runners/train/device/device.h"
#include "runners/train/trainer.h"

namespace assay::train {

const std::vector<std::string>& LaneNames();

class Lane {
 public:
  virtual ~Lane() = default;
  // Queues the next step, with the device's count of it behind its work, and does not wait for it.
  // What it returns may be written again by a later step.
  virtual StepOutput Step() = 0;
  // So many steps at the start search for algorithms, compile or record.
  virtual int64_t PrimingSteps() const = 0;
};

// Every kernel is launched by the host in every step, as a user of LibTorch or PyTorch does.
class EagerLane final : public Lane {
 public:
  EagerLane(Device& device, Trainer& trainer, DataSource& data)
      : device_(device), trainer_(trainer), data_(data) {}
  StepOutput Step() override;
  int64_t PrimingSteps() const override { return 2; }

 private:
  Device& device_;
  Trainer& trainer_;
  DataSource& data_;
};

// The whole step is one recording that the host starts with one call: forward pass, loss, backward
// pass, loss scaling, optimizer and the device's step counter.
//
// One recording for each place of the data, since a recording reads from fixed addresses: a copy of
// the next batch into one place would take bandwidth from each step (at the 4.3 TB/s that an H200
// copies with, 72 us for 256 images of fp32, of some 10 ms of inference) and memory for one more
// batch.
// The recordings share one memory pool, so that all of them take the memory of one. That is sound
// in any order of replay: what outlives a step (weights, momenta, running statistics, loss scale,
// counts) lies outside of the pool.
class GraphLane final : public Lane {
 public:
  // Before the model is made, device.PrepareToRecord() must have been called.
  GraphLane(Device& device, Trainer& trainer, DataSource& data);
  StepOutput Step() override;
  int64_t PrimingSteps() const override { return kEagerSteps + data_.places(); }

  // Not recorded: cuDNN's search measures, libraries load kernels and make handles, and none of
  // that can be recorded.
  static constexpr int64_t kEagerSteps = 3;

 private:
  struct Recorded {
    std::unique_ptr<Recording> recording;
    StepOutput output;
  };
  StepOutput Run(const Batch& batch);

  Device& device_;
  Trainer& trainer_;
  DataSource& data_;
  int64_t steps_ = 0;
  std::vector<Recorded> recorded_;  // by place of the data
};

// `name` is one of LaneNames().
std::unique_ptr<Lane> MakeLane(const std::string& name, Device& device, Trainer& trainer,
                               DataSource& data);

}  // namespace assay::train

#endif  // ASSAY_RUNNERS_TRAIN_LANES_LANE_H_
