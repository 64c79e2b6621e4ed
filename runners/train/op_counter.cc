#include "runners/train/op_counter.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::train {
namespace {

std::atomic<int64_t> flops_done = 0;
std::atomic<int64_t> bytes_moved = 0;
std::atomic<bool> counting = false;
// Operators that are counted call others that must not be counted again: conv2d calls convolution.
thread_local int products_open = 0;
thread_local int movers_open = 0;

// An operator between its start, when its inputs are at hand, and its end, when its outputs are.
struct OpenOperator final : at::ObserverContext {
  bool is_product = false;
  int64_t flops = 0;
  int64_t flops_per_output_element = 0;
  std::optional<c10::FunctionSchema> mover;  // set where its bytes are counted
  int64_t bytes = 0;
};

bool IsDefinedTensor(const c10::IValue& value) {
  return value.isTensor() && value.toTensor().defined();
}

template <typename Function>
void ForEachTensor(const c10::IValue& value, const Function& function) {
  if (IsDefinedTensor(value)) {
    function(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) {
      if (tensor.defined()) function(tensor);
    }
  } else if (value.isList()) {
    for (const c10::IValue& item : value.toListRef()) {
      if (IsDefinedTensor(item)) function(item.toTensor());
    }
  }
}

// An expanded tensor has more elements than lie in memory.
int64_t BytesOf(const c10::IValue& value) {
  int64_t bytes = 0;
  ForEachTensor(value, [&](const at::Tensor& tensor) {
    const int64_t all = static_cast<int64_t>(tensor.nbytes());
    bytes +=
        tensor.has_storage() ? std::min(all, static_cast<int64_t>(tensor.storage().nbytes())) : all;
  });
  return bytes;
}

int64_t Last(const at::Tensor& tensor, int64_t from_end) { return tensor.size(-from_end); }

// Of [.., m, k] by [.., k, n]; both have as many leading dimensions.
int64_t ProductFlops(const c10::IValue& left, const c10::IValue& right) {
  if (!IsDefinedTensor(left) || !IsDefinedTensor(right)) return 0;
  return 2 * left.toTensor().numel() * Last(right.toTensor(), 1);
}

// Each output element of a convolution is a sum over one filter, {out, in / groups, kernel...}; of
// a transposed one each input element meets one filter, {in, out / groups, kernel...}.
int64_t FlopsPerElement(const at::Tensor& weight) {
  return weight.size(0) == 0 ? 0 : 2 * (weight.numel() / weight.size(0));
}

struct ProductOperator {
  std::string_view name;
  size_t left, right;  // places of the operands
};
constexpr std::array<ProductOperator, 7> kProducts = {{{"aten::mm", 0, 1},
                                                       {"aten::bmm", 0, 1},
                                                       {"aten::addmm", 1, 2},
                                                       {"aten::addmm_", 1, 2},
                                                       {"aten::baddbmm", 1, 2},
                                                       {"aten::addbmm", 1, 2},
                                                       {"aten::_addmm_activation", 1, 2}}};
// Fused attention: (query, key, value, ...), and its backward pass with the output's gradient
// before them.
constexpr std::string_view kAttention = "aten::_scaled_dot_product_";
constexpr std::array<std::string_view, 5> kAttentionKernels = {
    {"flash_attention", "efficient_attention", "cudnn_attention", "flash_attention_for_cpu",
     "fused_attention_overrideable"}};
constexpr std::string_view kBackwardSuffix = "_backward";
constexpr std::string_view kConvolution = "aten::convolution";
constexpr std::string_view kConvolutionBackward = "aten::convolution_backward";

const ProductOperator* FindProduct(std::string_view name) {
  const auto found = std::find_if(kProducts.begin(), kProducts.end(),
                                  [&](const ProductOperator& p) { return p.name == name; });
  return found == kProducts.end() ? nullptr : &*found;
}

bool IsAttentionBackward(std::string_view name) {
  return name.size() > kBackwardSuffix.size() &&
         name.substr(name.size() - kBackwardSuffix.size()) == kBackwardSuffix;
}

bool IsAttention(std::string_view name) {
  if (name.substr(0, kAttention.size()) != kAttention) return false;
  if (IsAttentionBackward(name)) name.remove_suffix(kBackwardSuffix.size());
  name.remove_prefix(kAttention.size());
  return std::find(kAttentionKernels.begin(), kAttentionKernels.end(), name) !=
         kAttentionKernels.end();
}

bool IsProduct(std::string_view name) {
  return name == kConvolution || name == kConvolutionBackward || FindProduct(name) != nullptr ||
         IsAttention(name);
}

// Scores are query {N, H, L, E} by key {N, H, S, E}, the output is scores by value {N, H, S, Ev};
// the gradients of three operands, and of the scores, cost two products for each of the two.
int64_t AttentionFlops(c10::ArrayRef<const c10::IValue> inputs, bool backward) {
  const size_t first = backward ? 1 : 0;
  if (inputs.size() < first + 3) return 0;
  for (size_t i = first; i < first + 3; ++i) {
    if (!IsDefinedTensor(inputs[i]) || inputs[i].toTensor().dim() < 2) return 0;
  }
  const at::Tensor query = inputs[first].toTensor(), value = inputs[first + 2].toTensor();
  if (query.numel() == 0) return 0;
  const int64_t rows = query.numel() / Last(query, 1), keys = Last(value, 2);
  const int64_t forward = 2 * rows * keys * (Last(query, 1) + Last(value, 1));
  return backward ? 2 * forward : forward;
}

// convolution_backward(grad_output, input, weight, bias_sizes, stride, padding, dilation,
// transposed, output_padding, groups, output_mask): the gradients of input and weight cost a
// forward pass each.
int64_t BackwardFlops(c10::ArrayRef<const c10::IValue> inputs) {
  if (inputs.size() < 11 || !IsDefinedTensor(inputs[0]) || !IsDefinedTensor(inputs[1])) return 0;
  const at::Tensor& swept = inputs[inputs[7].toBool() ? 1 : 0].toTensor();
  const int64_t forward = swept.numel() * FlopsPerElement(inputs[2].toTensor());
  int64_t flops = 0;
  size_t place = 0;
  for (const c10::IValue& wanted : inputs[10].toListRef()) {
    if (place++ < 2 && wanted.toBool()) flops += forward;
  }
  return flops;
}

void BeginProduct(std::string_view name, c10::ArrayRef<const c10::IValue> inputs,
                  OpenOperator& open) {
  const ProductOperator* product = FindProduct(name);
  if (product != nullptr && inputs.size() > product->right) {
    open.flops = ProductFlops(inputs[product->left], inputs[product->right]);
  } else if (name == kConvolutionBackward) {
    open.flops = BackwardFlops(inputs);
  } else if (IsAttention(name)) {
    open.flops = AttentionFlops(inputs, IsAttentionBackward(name));
  } else if (name == kConvolution && inputs.size() >= 7 && IsDefinedTensor(inputs[0])) {
    // (input, weight, bias, stride, padding, dilation, transposed, ...)
    const int64_t each = FlopsPerElement(inputs[1].toTensor());
    if (inputs[6].toBool()) {
      open.flops = inputs[0].toTensor().numel() * each;
    } else {
      open.flops_per_output_element = each;
    }
  }
}

// Gives memory and moves nothing.
bool IsAllocation(std::string_view name) {
  return name.rfind("aten::empty", 0) == 0 || name.rfind("aten::new_empty", 0) == 0 ||
         name == "aten::resize_" || name == "aten::set_" || name == "aten::record_stream";
}

// Writes its first argument without reading it.
bool Overwrites(std::string_view name) {
  return name == "aten::copy_" || name == "aten::zero_" || name == "aten::fill_" ||
         name == "aten::normal_" || name == "aten::uniform_" || name == "aten::random_";
}

// Views, and what may be one (reshape): what it calls to copy is counted by itself.
bool IsView(const c10::FunctionSchema& schema) {
  return std::any_of(schema.returns().begin(), schema.returns().end(),
                     [](const c10::Argument& out) {
                       return out.alias_info() != nullptr && !out.alias_info()->isWrite();
                     });
}

int64_t BytesOfInputs(std::string_view name, const c10::FunctionSchema& schema,
                      c10::ArrayRef<const c10::IValue> inputs) {
  int64_t bytes = 0;
  for (size_t i = 0; i < inputs.size() && i < schema.arguments().size(); ++i) {
    const c10::AliasInfo* alias = schema.arguments()[i].alias_info();
    const bool written = alias != nullptr && alias->isWrite();
    const int64_t size = BytesOf(inputs[i]);
    if (!(written && Overwrites(name))) bytes += size;
    if (written) bytes += size;
  }
  return bytes;
}

// One that is an input, changed in place, was counted with the inputs.
int64_t BytesOfOutputs(const c10::FunctionSchema& schema, const std::vector<c10::IValue>& outputs) {
  int64_t bytes = 0;
  for (size_t i = 0; i < outputs.size() && i < schema.returns().size(); ++i) {
    if (schema.returns()[i].alias_info() == nullptr) bytes += BytesOf(outputs[i]);
  }
  return bytes;
}

std::unique_ptr<at::ObserverContext> Begin(const at::RecordFunction& op) {
  auto open = std::make_unique<OpenOperator>();
  const std::string_view name = op.name();
  if (products_open == 0 && IsProduct(name)) {
    open->is_product = true;
    ++products_open;
    BeginProduct(name, op.inputs(), *open);
  }
  if (movers_open == 0 && !IsAllocation(name)) {
    std::optional<c10::FunctionSchema> schema = op.operator_schema();
    if (schema && !IsView(*schema)) {
      ++movers_open;
      open->bytes = BytesOfInputs(name, *schema, op.inputs());
      open->mover = std::move(schema);
    }
  }
  return open;
}

void End(const at::RecordFunction& op, at::ObserverContext* context) {
  const auto* open = static_cast<const OpenOperator*>(context);
  if (open == nullptr) return;
  if (open->is_product) {
    --products_open;
    int64_t elements = 0;
    if (!op.outputs().empty() && IsDefinedTensor(op.outputs()[0])) {
      elements = op.outputs()[0].toTensor().numel();
    }
    flops_done += open->flops + open->flops_per_output_element * elements;
  }
  if (open->mover) {
    --movers_open;
    bytes_moved += open->bytes + BytesOfOutputs(*open->mover, op.outputs());
  }
}

}  // namespace

OpCounter::OpCounter() {
  if (counting.exchange(true)) throw std::logic_error("two operator counters at a time");
  flops_done = bytes_moved = 0;
  handle_ = at::addGlobalCallback(at::RecordFunctionCallback(&Begin, &End)
                                      .needsInputs(true)
                                      .needsOutputs(true)
                                      .scopes({at::RecordScope::FUNCTION}));
}

OpCounter::~OpCounter() {
  at::removeCallback(handle_);
  counting = false;
}

OpCounts OpCounter::counts() const { return {flops_done, bytes_moved}; }

StepOutput CountedLane::Step() {
  if (counted_) return lane_.Step();
  counted_ = true;
  const OpCounter counter;
  StepOutput output = lane_.Step();
  counts_ = counter.counts();
  return output;
}

}  // namespace assay::train
