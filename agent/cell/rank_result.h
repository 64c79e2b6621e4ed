// Small pure decisions about what one rank came to; GangMachine puts them together.
#ifndef ASSAY_AGENT_CELL_RANK_RESULT_H_
#define ASSAY_AGENT_CELL_RANK_RESULT_H_

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/cell/failure_text.h"
#include "agent/cell/gang_events.h"
#include "agent/cell/messages.h"
#include "agent/cell/ports.h"
#include "common/runner_protocol/record_parser.h"

namespace assay {

// "GPU-8a.." and "8A.." are one device. An empty `said` is a CPU alone; a slice, whose UUID CUDA
// and NVML spell differently, is any.
bool SameDevice(std::string_view said, std::string_view given);
std::string OtherDeviceMessage(std::string_view said, std::string_view given);

// Outcome, reason, message and fields of a result record. Fields that the catalogue does not know,
// that are not a runner's to say, are of another type or cannot be so (a text over 200 bytes or of
// several lines; less than nothing, but for a loss; a throughput of 0) go to `dropped`, at most 8
// names.
RankReport ResultReport(const record::Result& result, std::vector<std::string>* dropped);

// The static reason code that `report` names; one that is no code of ours becomes runner_error.
std::string_view ReasonOf(const RankReport& report);

// A device's fault stands over what its rank said, unless somebody else ended the attempt or it
// could not run at all: a result from memory that failed is none.
void BlameDevice(const DeviceFault& fault, std::vector<RankReport>* ranks);

// A process that said `ok` and then crashed, or exited with a failure's code.
std::optional<Diagnosis> Contradiction(const RankReport& report);

// Reasons that a rank also gives when all that happened to it is the loss of a peer.
bool IsEchoReason(std::string_view reason);

// Of a rank that was ended because another one was.
std::string PeerMessage(const LocalRank& first, const Diagnosis& cause);

// A peer's number as a duration that cannot overflow a deadline: above zero and a week at most.
std::chrono::nanoseconds SafeSeconds(double seconds, double fallback);

Diagnosis AbortDiagnosis(const AbortOrder& order);

// Case 16: with several ranks a silent gang is mostly one whose first collective hangs.
std::string SilenceMessage(double seconds, const std::string& phase, size_t world_size);

}  // namespace assay

#endif  // ASSAY_AGENT_CELL_RANK_RESULT_H_
