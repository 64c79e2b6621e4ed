// Diagnose: facts of a node into what works, what does not and what to type. Pure; any thread.
#ifndef ASSAY_AGENT_DOCTOR_CHECKS_H_
#define ASSAY_AGENT_DOCTOR_CHECKS_H_

#include <cstdint>
#include <vector>

#include "agent/doctor/facts.h"
#include "common/doctor/doctor_report.h"

namespace assay {

// SQLite and the spool stop where the disk is full; a run of some thousand cells takes tens of MiB.
inline constexpr uint64_t kBadFreeBytes = uint64_t{200} << 20;
inline constexpr uint64_t kLowFreeBytes = uint64_t{5} << 30;
// NCCL's shared-memory transport takes tens of MiB a pair of ranks; containers default to 64 MiB.
inline constexpr uint64_t kBadShmBytes = uint64_t{64} << 20;
inline constexpr uint64_t kLowShmBytes = uint64_t{1} << 30;

// In a stable order: driver and GPUs, stacks and cards, programs, network, clock, storage, limits,
// processor. Every check is there in every report, but those of single stacks and cards.
DoctorReport Diagnose(const Facts& facts);

// Its parts (one file each), in that order.
void CheckNvidia(const Facts& facts, std::vector<DoctorCheck>& checks);
void CheckStacks(const Facts& facts, std::vector<DoctorCheck>& checks);
void CheckNetwork(const Facts& facts, std::vector<DoctorCheck>& checks);
void CheckStorage(const Facts& facts, std::vector<DoctorCheck>& checks);
void CheckHost(const Facts& facts, std::vector<DoctorCheck>& checks);

}  // namespace assay

#endif  // ASSAY_AGENT_DOCTOR_CHECKS_H_
