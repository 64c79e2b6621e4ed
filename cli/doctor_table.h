// DoctorTable: a report of the doctor as a person reads it, worst first.
//
// Thread rule: pure, any thread.
#ifndef ASSAY_CLI_DOCTOR_TABLE_H_
#define ASSAY_CLI_DOCTOR_TABLE_H_

#include <cstddef>
#include <string>

#include "common/doctor/doctor_report.h"

namespace assay::cli {

enum class RemedyKind {
  kCommand,   // "type: ", on a line of its own, uncut, so that it can be copied
  kSentence,  // "change: ", wrapped
};

// Findings are wrapped to `width`. Every text is made printable. Ends in the counts and a line
// feed.
std::string DoctorTable(const DoctorReport& report, size_t width, bool color,
                        RemedyKind remedies = RemedyKind::kCommand);

}  // namespace assay::cli

#endif  // ASSAY_CLI_DOCTOR_TABLE_H_
