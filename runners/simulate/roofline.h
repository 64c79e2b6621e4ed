// Roofline: how long a step would take on a card, from the card's peak and bandwidth (Williams,
// Waterman and Patterson, "Roofline: An Insightful Visual Performance Model for Multicore
// Architectures", CACM 52 (2009)). Good for rehearsal and for the order of cards, not for a figure
// of any of them. Pure.
#ifndef ASSAY_RUNNERS_SIMULATE_ROOFLINE_H_
#define ASSAY_RUNNERS_SIMULATE_ROOFLINE_H_

#include <optional>
#include <string>

#include "common/matrix/spec.h"
#include "runners/simulate/catalog.h"

namespace assay::simulate {

struct StepModel {
  double seconds = 0;         // an optimizer step, all its micro-batches and the reduction
  double device_seconds = 0;  // of it, with work on the device
  double memory_bytes = 0;    // tensors at the peak
};

// TFLOP/s that the card has for a precision, 0 where it has no such arithmetic.
double PeakTflops(const CardFigures& card, const std::string& precision);

// HEIGHTxWIDTH over the area of the workload's default image; 1 for an empty text; nullopt where it
// is no such text, or for a workload without images.
std::optional<double> ImageScale(const std::string& image, const WorkloadFigures& workload);

// `rank_batch` is of one rank and step.
StepModel ModelStep(const CardFigures& card, const WorkloadFigures& workload, const Spec& spec,
                    double image_scale, int64_t rank_batch);

}  // namespace assay::simulate

#endif  // ASSAY_RUNNERS_SIMULATE_ROOFLINE_H_
