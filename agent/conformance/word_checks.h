// What a runner says of itself, judged: --stack-info, --list, --describe, --version.
//
// Thread rule: pure functions, any thread.
#ifndef ASSAY_AGENT_CONFORMANCE_WORD_CHECKS_H_
#define ASSAY_AGENT_CONFORMANCE_WORD_CHECKS_H_

#include <vector>

#include "agent/conformance/trial.h"
#include "common/doctor/doctor_report.h"
#include "common/fleet/inventory.h"

namespace assay {

// Fills `stack`, but for its name. Bad where an agent would find it unusable.
DoctorCheck CheckStackInfo(const TrialEnd& end, Stack& stack);
DoctorCheck CheckList(const TrialEnd& end, const Stack& stack);
// `unknown`: asked for a model that there is not.
DoctorCheck CheckDescribe(const TrialEnd& known, const TrialEnd& unknown, const std::string& model);
DoctorCheck CheckVersionText(const TrialEnd& end);
// An argument that there is not.
DoctorCheck CheckArguments(const TrialEnd& end);

}  // namespace assay

#endif  // ASSAY_AGENT_CONFORMANCE_WORD_CHECKS_H_
