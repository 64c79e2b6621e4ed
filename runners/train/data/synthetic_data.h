// SyntheticData: fixed random batches, made once on the device and taken in turn, so that no step
// sees the batch of the one before and nothing is copied while measuring.
#ifndef ASSAY_RUNNERS_TRAIN_DATA_SYNTHETIC_DATA_H_
#define ASSAY_RUNNERS_TRAIN_DATA_SYNTHETIC_DATA_H_

#include <vector>

#include "runners/train/data/data_source.h"

namespace assay::train {

class SyntheticData final : public DataSource {
 public:
  SyntheticData(Device& device, const BatchShape& shape);

  const Batch& Next() override;
  int64_t batches() const override { return static_cast<int64_t>(batches_.size()); }
  int64_t places() const override { return batches(); }
  void BringAhead(bool) override {}  // all are there

 private:
  std::vector<Batch> batches_;
  size_t next_ = 0;
};

}  // namespace assay::train

#endif  // ASSAY_RUNNERS_TRAIN_DATA_SYNTHETIC_DATA_H_
