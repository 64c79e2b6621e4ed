// Feasibility: what is known, before anything starts, not to run: by the plan in the CLI and by the
// coordinator when it binds a cell. Thread rule: pure functions, any thread.
#ifndef ASSAY_COMMON_MATRIX_FEASIBILITY_H_
#define ASSAY_COMMON_MATRIX_FEASIBILITY_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/fleet/inventory.h"
#include "common/matrix/spec.h"

namespace assay {

struct Infeasible {
  std::string_view reason;  // of namespace reason (common/results/outcome.h); static storage
  std::string message;      // one sentence: what was asked, of what, what to do
};

// Empty where nothing speaks against running `spec` on `device` with `stack`. Without a stack only
// the card is asked. `card` is the name in the message. A fact that is not known (compute
// capability 0.0, empty driver version) never speaks against it, nor does an estimate of memory.
std::optional<Infeasible> FeasibilityOf(const Spec& spec, const Device& device,
                                        std::string_view card, const Stack* stack);

struct StackChoice {
  const Stack* stack = nullptr;          // into the span; null where none can run it
  std::optional<Infeasible> infeasible;  // set exactly where stack is null
};

// The stack that `spec` names, or the newest of `stacks` that can run it. A simulated device takes
// only simulated stacks; another takes a simulated stack only by name. The reason of the newest
// fitting stack that has the model is given where none can run it; stack_missing where there is
// none to ask.
StackChoice ChooseStack(const Spec& spec, const Device& device, std::string_view card,
                        std::span<const Stack> stacks);

// One sentence where the estimate of the catalogue exceeds the device's memory, else empty.
std::string MemoryWarning(const Spec& spec, const Device& device, std::string_view card);

// True where code for one of `arch_list` ("sm_80", "compute_90") runs on the compute capability:
// same major and no higher minor, PTX on all later ones, "sm_90a" on exactly its own.
bool ArchListRunsOn(std::span<const std::string> arch_list, int cc_major, int cc_minor);

}  // namespace assay

#endif  // ASSAY_COMMON_MATRIX_FEASIBILITY_H_
