// Runs ResNet-50 on tensors that a reference program left in a folder, and writes back what came
// of it, for tests/integration/runners/train/reference_test.py to compare.
//
//   reference_steps DIR STEPS BATCH SIZE
//
// DIR has in/<name> for images, labels and each parameter and buffer: raw little-endian fp32
// (labels int64), C order. Writes out/logits, out/grad.<parameter> of the first step, and after
// STEPS of SGD out/after.<parameter>, out/after.<buffer> and out/losses, one fp32 a step.
#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>

#include "runners/train/models/resnet50.h"
#include "runners/train/trainer.h"

namespace assay::train {
namespace {

void ReadInto(const std::string& path, at::Tensor target) {
  at::Tensor plain = at::empty(target.sizes(), target.options().requires_grad(false));
  std::ifstream file(path, std::ios::binary);
  file.read(static_cast<char*>(plain.data_ptr()), static_cast<std::streamsize>(plain.nbytes()));
  if (!file || file.peek() != EOF) throw std::runtime_error(path + " has another size");
  const at::NoGradGuard no_grad;
  target.copy_(plain);
}

void Write(const std::string& path, const at::Tensor& value) {
  const at::Tensor plain = value.detach().contiguous();
  std::ofstream file(path, std::ios::binary);
  file.write(static_cast<const char*>(plain.const_data_ptr()),
             static_cast<std::streamsize>(plain.nbytes()));
  if (!file) throw std::runtime_error(path + " cannot be written");
}

void Run(const std::string& dir, int steps, int64_t n, int64_t size) {
  SetMath(Precision::kFp32);
  const std::unique_ptr<Model> model = MakeResNet50({});
  ParameterSet& tensors = model->tensors();
  for (NamedTensor& t : tensors.parameters()) ReadInto(dir + "/in/" + t.name, t.tensor);
  for (NamedTensor& t : tensors.buffers()) ReadInto(dir + "/in/" + t.name, t.tensor);
  Batch batch{at::empty({n, 3, size, size}, at::kFloat, c10::MemoryFormat::ChannelsLast),
              at::empty({n}, at::kLong)};
  ReadInto(dir + "/in/images", batch.images);
  ReadInto(dir + "/in/labels", batch.labels);

  std::printf("%lld\n", static_cast<long long>(model->ParameterCount()));
  {
    // Running statistics move in a pass of training: kept for the step itself.
    std::vector<at::Tensor> kept;
    for (NamedTensor& t : tensors.buffers()) kept.push_back(t.tensor.clone());
    const at::NoGradGuard no_grad;
    Write(dir + "/out/logits", model->Forward(batch.images));
    for (size_t i = 0; i < kept.size(); ++i) tensors.buffers()[i].tensor.copy_(kept[i]);
  }
  Trainer trainer(*model, Precision::kFp32, 1,
                  {.learning_rate = 0.01, .momentum = 0.9, .weight_decay = 1e-4});
  at::Tensor losses = at::empty({steps}, at::kFloat);
  for (int step = 0; step < steps; ++step) {
    losses[step] = trainer.TrainStep(batch).loss;
    if (step > 0) continue;
    const std::vector<at::Tensor> gradients = trainer.Gradients();
    for (size_t i = 0; i < gradients.size(); ++i) {
      Write(dir + "/out/grad." + tensors.parameters()[i].name, gradients[i]);
    }
  }
  Write(dir + "/out/losses", losses);
  for (NamedTensor& t : tensors.parameters()) Write(dir + "/out/after." + t.name, t.tensor);
  for (NamedTensor& t : tensors.buffers()) Write(dir + "/out/after." + t.name, t.tensor);
}

}  // namespace
}  // namespace assay::train

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: reference_steps DIR STEPS BATCH SIZE\n");
    return 2;
  }
  try {
    assay::train::Run(argv[1], std::atoi(argv[2]), std::atoi(argv[3]), std::atoi(argv[4]));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "reference_steps: %s\n", error.what());
    return 1;
  }
  return 0;
}
