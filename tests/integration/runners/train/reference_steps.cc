// Runs a model on tensors that a reference program left in a folder, and writes back what came of
// it, for tests/integration/runners/train/reference_test.py to compare.
//
//   reference_steps MODEL DIR STEPS BATCH HEIGHTxWIDTH
//
// DIR has in/<name> for images, labels and each parameter and buffer: raw little-endian fp32
// (labels and tokens int64), C order. Writes out/logits, out/grad.<parameter> of the first step,
// and after STEPS of SGD out/after.<parameter>, out/after.<buffer> and out/losses, one fp32 a step.
// The seed of stochastic depth is set to kSeed before each pass.
#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>

#include "runners/train/data/data_source.h"
#include "runners/train/models/registry.h"
#include "runners/train/trainer.h"
#include "tests/integration/runners/train/raw_tensors.h"
#include "tests/unit/runners/train/shallow_models.h"

namespace assay::train {
namespace {

constexpr uint64_t kSeed = 11;

std::optional<ModelEntry> EntryOf(const std::string& name) {
  for (const ModelEntry& shallow : ShallowModels()) {
    if (shallow.name == name) return shallow;
  }
  const ModelEntry* entry = FindModel(name);
  return entry == nullptr ? std::nullopt : std::optional(*entry);
}

void Run(const ModelEntry& entry, const std::string& dir, int steps, int64_t n,
         const std::string& size) {
  SetMath(Precision::kFp32);
  const std::unique_ptr<Model> model = entry.make({});
  ParameterSet& tensors = model->tensors();
  for (NamedTensor& t : tensors.parameters()) ReadInto(dir + "/in/" + t.name, t.tensor);
  for (NamedTensor& t : tensors.buffers()) ReadInto(dir + "/in/" + t.name, t.tensor);
  Batch batch = RandomBatch({.batch = n,
                             .image = ParseImage(size, entry).value(),
                             .classes = model->classes(),
                             .input = entry.input},
                            at::kCPU);
  ReadInto(dir + "/in/images", batch.images);
  ReadInto(dir + "/in/labels", batch.labels);

  std::printf("%lld\n", static_cast<long long>(model->ParameterCount()));
  {
    // Running statistics move in a pass of training: kept for the step itself.
    std::vector<at::Tensor> kept;
    for (NamedTensor& t : tensors.buffers()) kept.push_back(t.tensor.clone());
    const at::NoGradGuard no_grad;
    at::manual_seed(kSeed);
    Write(dir + "/out/logits", model->Forward(batch.images));
    for (size_t i = 0; i < kept.size(); ++i) tensors.buffers()[i].tensor.copy_(kept[i]);
  }
  Trainer trainer(*model, Precision::kFp32, 1,
                  {.learning_rate = 0.01, .momentum = 0.9, .weight_decay = 1e-4});
  at::Tensor losses = at::empty({steps}, at::kFloat);
  for (int step = 0; step < steps; ++step) {
    at::manual_seed(kSeed);
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
  std::optional<assay::train::ModelEntry> entry;
  if (argc == 6) entry = assay::train::EntryOf(argv[1]);
  if (!entry) {
    std::fprintf(stderr, "usage: reference_steps MODEL DIR STEPS BATCH HEIGHTxWIDTH\n");
    return 2;
  }
  try {
    assay::train::Run(*entry, argv[2], std::atoi(argv[3]), std::atoi(argv[4]), argv[5]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "reference_steps: %s\n", error.what());
    return 1;
  }
  return 0;
}
