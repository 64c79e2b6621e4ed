// Gpt2: a decoder of pre-normalised blocks over tokens: Radford et al., "Language Models are
// Unsupervised Multitask Learners" (2019), as transformers' GPT2LMHeadModel, whose state_dict names
// the tensors. The last layer's weight is that of the token embedding, and counted once. Attention
// is LibTorch's scaled_dot_product_attention, which takes a fused kernel where there is one.
// Without dropout: transformers' default of 0.1 is set to 0 in the reference, as pre-training does
// since. Thread rule and owner: those of Model.
#ifndef ASSAY_RUNNERS_TRAIN_MODELS_GPT2_H_
#define ASSAY_RUNNERS_TRAIN_MODELS_GPT2_H_

#include <cstdint>
#include <memory>

#include "runners/train/models/registry.h"

namespace assay::train {

struct Gpt2Options {
  int64_t vocabulary = 50257;
  int64_t tokens = 1024;  // the longest sequence
  int64_t width = 1024;
  int64_t blocks = 24;
  int64_t heads = 16;
};

// Its Forward takes tokens {N, T}, T up to `tokens`, to logits {N, T, vocabulary}.
std::unique_ptr<Model> MakeGpt2(const Gpt2Options& options, const Placement& placement);

// Of one sequence of so many tokens: two for each multiply-add of linear layers and attention,
// whose scores are counted whole, as the literature does (Chowdhery et al., "PaLM", 2022, appendix
// B), though a causal kernel may leave out the half that is masked.
int64_t Gpt2ForwardFlops(const Gpt2Options& options, int64_t tokens);

}  // namespace assay::train

#endif  // ASSAY_RUNNERS_TRAIN_MODELS_GPT2_H_
