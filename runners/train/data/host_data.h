// HostData: fixed random batches in pinned memory of the host, copied to the device for each step,
// so that the cost of feeding shows beside the same cell with data that lies on the device.
//
// Two places on the device: while a step computes on one, the batch of the next is copied to the
// other, on a queue of its own. A copy waits until the step that read its place before is done, a
// step until its batch is there; the host waits for neither.
#ifndef ASSAY_RUNNERS_TRAIN_DATA_HOST_DATA_H_
#define ASSAY_RUNNERS_TRAIN_DATA_HOST_DATA_H_

#include <array>
#include <memory>
#include <vector>

#include "runners/train/data/data_source.h"

namespace assay::train {

class HostData final : public DataSource {
 public:
  HostData(Device& device, const BatchShape& shape);

  const Batch& Next() override;
  int64_t batches() const override { return static_cast<int64_t>(host_.size()); }
  int64_t places() const override { return static_cast<int64_t>(places_.size()); }
  void BringAhead(bool ahead) override { ahead_ = ahead; }

 private:
  // Queues the copy of the batch of step `step` to its place.
  void Bring(size_t step);

  std::vector<Batch> host_;
  std::array<Batch, 2> places_;
  std::unique_ptr<CopyQueue> queue_;
  bool ahead_ = true;
  size_t next_ = 0;     // step
  size_t brought_ = 0;  // steps whose batches have been queued
};

}  // namespace assay::train

#endif  // ASSAY_RUNNERS_TRAIN_DATA_HOST_DATA_H_
