#include "runners/train/lanes/lane.h"

namespace assay::train {

const std::vector<std::string>& LaneNames() {
  static const std::vector<std::string> names = {"eager", "graph"};
  return names;
}

StepOutput EagerLane::Step() {
  const StepOutput output = trainer_.Step(data_.Next());
  device_.CountStep(output.loss, output.found_inf, output.input);
  return output;
}

GraphLane::GraphLane(Device& device, Trainer& trainer, DataSource& data)
    : device_(device),
      trainer_(trainer),
      data_(data),
      recorded_(static_cast<size_t>(data.places())) {}

StepOutput GraphLane::Run(const Batch& batch) {
  const StepOutput output = trainer_.Step(batch);
  device_.CountStep(output.loss, output.found_inf, output.input);
  return output;
}

StepOutput GraphLane::Step() {
  const Batch& batch = data_.Next();
  if (steps_ < kEagerSteps) {
    ++steps_;
    return Run(batch);
  }
  Recorded& recorded = recorded_[batch.place];
  if (!recorded.recording) {
    // Gradients of the last step that was not recorded would keep memory beside the pool.
    if (steps_ == kEagerSteps) trainer_.ReleaseGradients();
    recorded.recording = device_.Record([&] { recorded.output = Run(batch); });
  }
  ++steps_;
  recorded.recording->Replay();
  return recorded.output;
}

std::unique_ptr<Lane> MakeLane(const std::string& name, Device& device, Trainer& trainer,
                               DataSource& data) {
  if (name == "graph") return std::make_unique<GraphLane>(device, trainer, data);
  return std::make_unique<EagerLane>(device, trainer, data);
}

}  // namespace assay::train
