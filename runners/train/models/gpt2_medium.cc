// GPT-2 medium: 354,823,168 parameters, sequences of 1,024 tokens, as transformers' GPT2LMHeadModel
// of the configuration gpt2-medium without dropout.
#include "runners/train/models/gpt2.h"

namespace assay::train {

ModelEntry Gpt2MediumEntry() {
  static constexpr Gpt2Options kOptions = {};
  return {
      .name = "gpt2_medium",
      .parameters = 354823168,
      .sample_unit = "sequences",
      .input = InputKind::kTokens,
      .image = {1, kOptions.tokens},
      .most_image = {1, kOptions.tokens},
      .make = [](const Placement& p) { return MakeGpt2(kOptions, p); },
      .forward_flops = [](int64_t, int64_t tokens) { return Gpt2ForwardFlops(kOptions, tokens); },
      // Nothing but look-ups comes before the first product.
      .train_flops = [](int64_t,
                        int64_t tokens) { return 3 * Gpt2ForwardFlops(kOptions, tokens); }};
}

}  // namespace assay::train
