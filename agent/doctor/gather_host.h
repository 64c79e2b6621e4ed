// The part of gather.h that has nothing to do with GPUs: network, clock, folders, limits,
// processor.
#ifndef ASSAY_AGENT_DOCTOR_GATHER_HOST_H_
#define ASSAY_AGENT_DOCTOR_GATHER_HOST_H_

#include <string>
#include <vector>

#include "agent/doctor/gather.h"

namespace assay {

// Thread rule: any thread. Fills what its name says and leaves the rest of `facts`.
void GatherHost(const GatherOptions& options, Facts& facts);

// Parts of `line` between blanks.
std::vector<std::string> WordsOf(const std::string& line);

}  // namespace assay

#endif  // ASSAY_AGENT_DOCTOR_GATHER_HOST_H_
