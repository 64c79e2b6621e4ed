// The CUDA device of a build without CUDA.
#include <stdexcept>

#include "runners/train/device/device.h"

namespace assay::train {

CudaStack QueryCuda() { return {}; }

std::unique_ptr<Device> MakeCudaDevice(const std::string&, int) {
  throw std::runtime_error(
      "this assay-train was built without CUDA: build it on a machine with a CUDA toolkit and a "
      "LibTorch that has libtorch_cuda.so");
}

}  // namespace assay::train
