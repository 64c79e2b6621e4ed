// Bounds of single figures: private to rules.cc. What lies outside was not measured, whoever says
// so; the field is named, since its neighbours in the record are of the same hand.
#ifndef ASSAY_COMMON_RESULTS_RULES_BOUNDS_H_
#define ASSAY_COMMON_RESULTS_RULES_BOUNDS_H_

#include "common/results/rules.h"

namespace assay {

// Shares are 0 to 1, no other figure but those that have a sign is below zero; allocated <=
// reserved, and no memory figure is above the device's. Any thread.
void JudgeBounds(const Record& record, Verdict& verdict);

}  // namespace assay

#endif  // ASSAY_COMMON_RESULTS_RULES_BOUNDS_H_
