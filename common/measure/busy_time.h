// BusyTime: how long at least one of many spans of time was running.
//
// Kernels of several streams overlap, so that the sum of their lengths says nothing about how long
// the device had work; the length of their union does.
//
// Std only. Thread rule: pure functions, any thread.
#ifndef ASSAY_COMMON_MEASURE_BUSY_TIME_H_
#define ASSAY_COMMON_MEASURE_BUSY_TIME_H_

#include <cstdint>
#include <optional>
#include <vector>

namespace assay::measure {

// By one clock, in nanoseconds; a span that ends before it begins counts as empty.
struct Span {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};

// Length of the union of `spans`, in any order, in nanoseconds.
int64_t UnionNanoseconds(std::vector<Span> spans);

// Share of a step in which the device had work, at most 1: the union of what ran in `steps` traced
// steps over the time that as many steps take when nothing traces them. Not over the length of the
// trace: tracing slows the host and hardly the device, so that a device which is always busy would
// look idle. nullopt without spans, or where a number is not above zero.
std::optional<double> BusyRatio(std::vector<Span> spans, int64_t steps, double step_seconds);

}  // namespace assay::measure

#endif  // ASSAY_COMMON_MEASURE_BUSY_TIME_H_
