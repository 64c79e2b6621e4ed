// DoctorTable: a report of the doctor as a person reads it, worst first.
//
// Thread rule: pure, any thread.
#ifndef ASSAY_CLI_DOCTOR_TABLE_H_
#define ASSAY_CLI_DOCTOR_TABLE_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "common/doctor/doctor_report.h"

namespace assay::cli {

// Findings are wrapped to `width`; what to do stands on a line of its own behind `do_word`
// ("type"), uncut, so that it can be copied. Every text is made printable. Ends in the counts and a
// line feed.
std::string DoctorTable(const DoctorReport& report, size_t width, bool color,
                        std::string_view do_word = "type");

}  // namespace assay::cli

#endif  // ASSAY_CLI_DOCTOR_TABLE_H_
