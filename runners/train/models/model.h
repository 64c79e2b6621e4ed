// Model: layers and nothing else. How it is trained is the Trainer's, how it is timed the
// Measurement's.
//
// Owner: the runner, for one cell. Thread rule: one thread (autograd's own threads aside).
#ifndef ASSAY_RUNNERS_TRAIN_MODELS_MODEL_H_
#define ASSAY_RUNNERS_TRAIN_MODELS_MODEL_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/MemoryFormat.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace assay::train {

struct NamedTensor {
  std::string name;  // as in the reference's state_dict
  at::Tensor tensor;
};

// Where a model lives and what it is for; fixed for its life, so that no layer has to move.
struct Placement {
  c10::Device device = c10::kCPU;
  c10::MemoryFormat layout = c10::MemoryFormat::ChannelsLast;
  bool train = true;
};

// Makes and registers the tensors of a model. Weights are drawn on the CPU, so that one seed gives
// the same weights on every card, and then moved.
class ParameterSet {
 public:
  explicit ParameterSet(const Placement& placement) : placement_(placement) {}

  // Normal with standard deviation sqrt(2 / fan_out), He et al., "Delving Deep into Rectifiers"
  // (2015), as TorchVision's ResNet. `shape` is {out, in / groups, height, width}.
  at::Tensor ConvWeight(const std::string& name, at::IntArrayRef shape);
  // The same, not trained.
  at::Tensor FrozenConvWeight(const std::string& name, at::IntArrayRef shape);
  at::Tensor Normal(const std::string& name, at::IntArrayRef shape, double deviation);
  at::Tensor Uniform(const std::string& name, at::IntArrayRef shape, double bound);
  at::Tensor Constant(const std::string& name, at::IntArrayRef shape, double value);
  // Not trained: running statistics, and what is frozen.
  at::Tensor Buffer(const std::string& name, at::IntArrayRef shape, double value);

  const Placement& placement() const { return placement_; }
  std::vector<NamedTensor>& parameters() { return parameters_; }
  std::vector<NamedTensor>& buffers() { return buffers_; }

 private:
  at::Tensor Place(const at::Tensor& value) const;
  at::Tensor Register(const std::string& name, at::Tensor value);

  const Placement placement_;
  std::vector<NamedTensor> parameters_;
  std::vector<NamedTensor> buffers_;
};

class Model {
 public:
  explicit Model(const Placement& placement) : tensors_(placement) {}
  virtual ~Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  // A batch's images {N, 3, H, W} to logits {N, classes}, or tokens {N, T} to {N, T, classes}.
  virtual at::Tensor Forward(const at::Tensor& input) = 0;
  virtual int64_t classes() const = 0;  // or tokens of the vocabulary
  // Mean loss of a batch, fp32, one element: of logits and labels, from 0 to classes() - 1.
  virtual at::Tensor Loss(const at::Tensor& input, const at::Tensor& labels);
  // Figures of what it did since it was made, by the names of the result's fields; none of most.
  virtual std::vector<std::pair<std::string, double>> Figures() const { return {}; }

  ParameterSet& tensors() { return tensors_; }
  int64_t ParameterCount();

 protected:
  ParameterSet tensors_;
};

}  // namespace assay::train

#endif  // ASSAY_RUNNERS_TRAIN_MODELS_MODEL_H_
