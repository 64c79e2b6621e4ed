#include "agent/doctor/checks.h"

#include "agent/doctor/findings.h"

namespace assay {

DoctorReport Diagnose(const Facts& facts) {
  DoctorReport report;
  report.node = facts.node;
  report.version = facts.version;
  CheckNvidia(facts, report.checks);
  CheckStacks(facts, report.checks);
  CheckNetwork(facts, report.checks);
  CheckStorage(facts, report.checks);
  CheckHost(facts, report.checks);
  return report;
}

}  // namespace assay
