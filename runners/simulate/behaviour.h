// Behaviour: what the simulator was told to do wrong, for tests and rehearsals.
//
// ASSAY_SIMULATE holds rules, or ASSAY_SIMULATE_FILE names a file with them (which wins, and can
// change between attempts). Rules are separated by ';' or line breaks, the first whose condition
// holds is taken:
//
//   CONDITION[,CONDITION...]:ACTION[+ACTION...]     default:ACTION[+ACTION...]
//   model=swin_l:hang;batch=128,precision=fp32:crash;rank=1:oom;default:realtime=0.02
//
// Conditions compare a field of the spec (model mode precision batch lane layout accumulate scaling
// image gpus nodes stack key) or of the cell (cell repeat rank local_rank card uuid) with a text.
//
// Actions: crash[=SIGNAL] abort by a signal while measuring (11); exit=CODE leave without a result;
// no_result (exit=0); hang_before_join; hang (after joining); hang_ignore_term (hang and
// ignore_term); ignore_term; garbage (bytes that are no record); huge_line (over 1 MiB); flood (4
// MiB on standard output); slow=SECONDS (the cell takes that long, with progress); realtime=FACTOR
// (simulated time passes that fast: 1 is real); oom; non_finite_loss; wrong_device_steps; timer (a
// device timer that is wrong by a tenth); early_clock (the host's clock is read before the device
// is done); constant_inputs; close_records (early); grandchild (a child that outlives the runner);
// error (an exception).
#ifndef ASSAY_RUNNERS_SIMULATE_BEHAVIOUR_H_
#define ASSAY_RUNNERS_SIMULATE_BEHAVIOUR_H_

#include <optional>
#include <string>

#include "common/runner_protocol/cell_file.h"

namespace assay::simulate {

struct Behaviour {
  std::optional<int> crash_signal;
  std::optional<int> exit_code;
  bool hang_before_join = false, hang = false, ignore_term = false;
  bool garbage = false, huge_line = false, flood = false;
  bool oom = false, non_finite_loss = false, wrong_device_steps = false;
  bool timer = false, early_clock = false, constant_inputs = false;
  bool close_records = false, grandchild = false, error = false;
  double slow_seconds = 0;
  double realtime = 0;  // 0: as fast as the machine computes
};

// Throws BadInput with the rule that is wrong; every rule is checked, also one that is not taken.
Behaviour BehaviourFor(const std::string& rules, const CellFile& cell);

// The rules from the environment; empty where there are none. Throws BadInput where the file cannot
// be read.
std::string RulesFromEnvironment();

}  // namespace assay::simulate

#endif  // ASSAY_RUNNERS_SIMULATE_BEHAVIOUR_H_
