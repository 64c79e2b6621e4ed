// CudaDriver and CudaBlas: the two libraries as tables of functions, loaded when they are asked
// for, so that the program starts where neither is.
//
// Owner: the runner; a library stays loaded until the process ends. Thread rule: any thread.
#ifndef ASSAY_RUNNERS_PEAKS_CUDA_LIBRARY_H_
#define ASSAY_RUNNERS_PEAKS_CUDA_LIBRARY_H_

#include <stdexcept>
#include <string>
#include <vector>

#include "runners/peaks/cuda_api.h"

namespace assay::peaks {

// What a call of the driver or of cuBLAS came back with; what() names the call and says why.
class CudaError : public std::runtime_error {
 public:
  CudaError(const std::string& text, bool out_of_memory, bool ecc)
      : std::runtime_error(text), out_of_memory_(out_of_memory), ecc_(ecc) {}
  bool out_of_memory() const { return out_of_memory_; }
  bool ecc() const { return ecc_; }

 private:
  bool out_of_memory_, ecc_;
};

// There is no NVIDIA driver on this machine, or none that works; what() says which.
struct NoDriver : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// cuBLAS was found nowhere, or what was found does not load.
struct NoBlas : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class CudaDriver {
 public:
  // Loads libcuda.so.1 and initialises it. Throws NoDriver.
  CudaDriver();
  // Throws CudaError unless `result` is success; `call` is for its text.
  void Check(cuda_api::Result result, const char* call) const;
  const cuda_api::Driver* operator->() const { return &functions_; }

 private:
  cuda_api::Driver functions_{};
};

class CudaBlas {
 public:
  // Loads the first library of BlasCandidates that is there. Throws NoBlas.
  CudaBlas();
  void Check(cuda_api::BlasStatus status, const char* call) const;
  const cuda_api::Blas* operator->() const { return &functions_; }
  // "13.0": of the CUDA runtime that this cuBLAS was built with.
  std::string CudaVersion() const;

 private:
  cuda_api::Blas functions_{};
};

// Where cuBLAS is looked for, best first, majors 13 to 11 in each place: `given` (a folder, the
// environment's ASSAY_CUBLAS), and nowhere else where there is one; else beside `libtorch`
// (ASSAY_LIBTORCH, a folder with lib/, as wheels lay it out), in the folders of the build, and by
// the loader's own rules (a name without a folder). An empty text is none.
std::vector<std::string> BlasCandidates(const std::string& given, const std::string& libtorch,
                                        const std::vector<std::string>& built_in);

}  // namespace assay::peaks

#endif  // ASSAY_RUNNERS_PEAKS_CUDA_LIBRARY_H_
