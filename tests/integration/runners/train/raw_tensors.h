// Tensors as raw files, to and from a reference program: little-endian, C order.
#ifndef ASSAY_TESTS_INTEGRATION_RUNNERS_TRAIN_RAW_TENSORS_H_
#define ASSAY_TESTS_INTEGRATION_RUNNERS_TRAIN_RAW_TENSORS_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <fstream>
#include <stdexcept>
#include <string>

namespace assay::train {

inline void ReadInto(const std::string& path, at::Tensor target) {
  at::Tensor plain = at::empty(target.sizes(), target.options().requires_grad(false));
  std::ifstream file(path, std::ios::binary);
  file.read(static_cast<char*>(plain.data_ptr()), static_cast<std::streamsize>(plain.nbytes()));
  if (!file || file.peek() != EOF) throw std::runtime_error(path + " has another size");
  const at::NoGradGuard no_grad;
  target.copy_(plain);
}

inline void Write(const std::string& path, const at::Tensor& value) {
  const at::Tensor plain = value.detach().contiguous();
  std::ofstream file(path, std::ios::binary);
  file.write(static_cast<const char*>(plain.const_data_ptr()),
             static_cast<std::streamsize>(plain.nbytes()));
  if (!file) throw std::runtime_error(path + " cannot be written");
}

}  // namespace assay::train

#endif  // ASSAY_TESTS_INTEGRATION_RUNNERS_TRAIN_RAW_TENSORS_H_
