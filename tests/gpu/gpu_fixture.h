// What every test on a GPU begins with: skipped where there is none, cells that are soon measured.
#ifndef ASSAY_TESTS_GPU_GPU_FIXTURE_H_
#define ASSAY_TESTS_GPU_GPU_FIXTURE_H_

#include <fcntl.h>
#include <gtest/gtest.h>

#include <string>

#include "runners/train/train_runner.h"

namespace assay::train {

class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    const CudaStack cuda = QueryCuda();
    if (!cuda.built) GTEST_SKIP() << "this build has no CUDA (ASSAY_CUDA)";
    if (cuda.devices == 0) {
      GTEST_SKIP() << "no GPU here: " << (cuda.problem.empty() ? "none seen" : cuda.problem);
    }
  }

  static CellFile Cell(const std::string& precision, int64_t batch) {
    CellFile cell;
    cell.spec.model = "resnet50";
    cell.spec.precision = precision;
    cell.spec.batch = batch;
    cell.spec.image = "64x64";
    cell.spec.stop = {.confidence = 0.01, .min_seconds = 0.5, .max_seconds = 2};
    cell.device_kind = "cuda";
    return cell;
  }

  static RunnerResult Run(const CellFile& cell) {
    RecordWriter records(open("/dev/null", O_WRONLY | O_CLOEXEC), true);
    TrainRunner runner;
    return runner.Run(cell, records);
  }
};

}  // namespace assay::train

#endif  // ASSAY_TESTS_GPU_GPU_FIXTURE_H_
