// BadInput: something the caller of a runner got wrong. RunnerMain prints what() as one sentence on
// standard error and exits 2.
#ifndef ASSAY_RUNNERS_COMMON_BAD_INPUT_H_
#define ASSAY_RUNNERS_COMMON_BAD_INPUT_H_

#include <stdexcept>

namespace assay {

class BadInput : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace assay

#endif  // ASSAY_RUNNERS_COMMON_BAD_INPUT_H_
