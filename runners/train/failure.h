// Failure: what an error text of LibTorch or CUDA means for the cell. Pure.
#ifndef ASSAY_RUNNERS_TRAIN_FAILURE_H_
#define ASSAY_RUNNERS_TRAIN_FAILURE_H_

#include <exception>
#include <string>

#include "runners/common/record_writer.h"

namespace assay::train {

// Outcome, reason and one short line with the remedy where there is one; no fields.
// `saw_out_of_memory`: an allocation has failed in this process, which tells cuDNN's "no engine
// found" for want of workspace from other causes.
RunnerResult ClassifyError(const std::string& text, bool saw_out_of_memory);

// Whether CUDA or LibTorch says that work cannot be recorded, or could not go on being recorded.
bool IsRecordingError(const std::string& text);

// As ClassifyError, of an exception that was caught; c10::OutOfMemoryError and std::bad_alloc are
// mem_limit whatever they say.
RunnerResult ClassifyException(std::exception_ptr error, bool saw_out_of_memory);

// All that it says, for the log.
std::string TextOfException(std::exception_ptr error);

}  // namespace assay::train

#endif  // ASSAY_RUNNERS_TRAIN_FAILURE_H_
