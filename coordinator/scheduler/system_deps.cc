#include <sys/random.h>

#include "common/catalog/card_catalog.h"
#include "common/catalog/workload_catalog.h"
#include "common/ids/ids.h"
#include "coordinator/scheduler/coordinator_state.h"

namespace assay {

CoordinatorDeps SystemDeps() {
  CoordinatorDeps deps;
  deps.card_of = [](const Device& device) { return IdentifyDevice(device).name; };
  deps.choose_stack = [](const Spec& spec, const Device& device, std::string_view card,
                         std::span<const Stack> stacks) {
    return ChooseStack(spec, device, card, stacks);
  };
  deps.unit_of = [](std::string_view model) {
    const Workload* workload = BuiltinWorkloads().Find(model);
    return workload == nullptr ? std::string() : workload->sample_unit + "/s";
  };
  deps.new_id = [](WallTime wall) { return NewUlid(wall); };
  deps.new_seed = [] {
    uint64_t seed = 0;
    while (getrandom(&seed, sizeof(seed), 0) != static_cast<ssize_t>(sizeof(seed))) {
    }
    return seed;
  };
  return deps;
}

}  // namespace assay
