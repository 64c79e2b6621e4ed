// The rules of marks: private to rules.cc, which has those of the verdict.
#ifndef ASSAY_COMMON_RESULTS_RULES_MARKS_H_
#define ASSAY_COMMON_RESULTS_RULES_MARKS_H_

#include "common/results/rules.h"

namespace assay {

// In the order of the field's doc; a sentence for each that has a figure. Any thread.
void JudgeMarks(const Record& record, Verdict& verdict);

}  // namespace assay

#endif  // ASSAY_COMMON_RESULTS_RULES_MARKS_H_
