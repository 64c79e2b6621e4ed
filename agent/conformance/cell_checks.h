// What a runner did with a cell, judged (docs/doctor.md lists the checks). A finding says what was
// seen, a remedy what to change.
//
// Thread rule: pure functions, any thread.
#ifndef ASSAY_AGENT_CONFORMANCE_CELL_CHECKS_H_
#define ASSAY_AGENT_CONFORMANCE_CELL_CHECKS_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/conformance/trial.h"
#include "common/doctor/doctor_report.h"
#include "common/runner_protocol/cell_file.h"

namespace assay {

// "exit code 1: LAST LINE OF STANDARD ERROR", "SIGSEGV", "still running after 120 s".
std::string HowItEnded(const TrialEnd& end);

// Whether the cell came to `ok`, and nothing the agent would refuse stands against it.
bool EndedOk(const TrialEnd& end);

DoctorCheck CheckEnd(const TrialEnd& end);                            // cell
DoctorCheck CheckRecords(const TrialEnd& end, const CellFile& cell);  // records
DoctorCheck CheckPhases(const TrialEnd& end);                         // phases
DoctorCheck CheckFields(const TrialEnd& end);                         // fields
// The verdict of the rules, the agent's own clock among them.
DoctorCheck CheckFigures(const TrialEnd& end, const CellFile& cell);  // figures
DoctorCheck CheckByHand(const TrialEnd& end);                         // by-hand

// `what`: "a model that no stack has".
DoctorCheck CheckRefusal(const std::string& name, std::string_view what, const TrialEnd& end);
// `ends`: of the cells that are wrong, with what is.
DoctorCheck CheckWrongCells(const std::vector<std::pair<std::string, TrialEnd>>& ends);
DoctorCheck CheckMemory(const TrialEnd& end);         // memory
DoctorCheck CheckTermination(const TrialEnd& end);    // sigterm
DoctorCheck CheckClosedRecords(const TrialEnd& end);  // closed-records
// `silent`: it was not fed, else it was closed.
DoctorCheck CheckLifeline(const TrialEnd& end, bool silent);  // lifeline-end, lifeline-silence

}  // namespace assay

#endif  // ASSAY_AGENT_CONFORMANCE_CELL_CHECKS_H_
