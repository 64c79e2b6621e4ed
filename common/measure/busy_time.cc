#include "common/measure/busy_time.h"

#include <algorithm>

namespace assay::measure {

int64_t UnionNanoseconds(std::vector<Span> spans) {
  std::sort(spans.begin(), spans.end(),
            [](const Span& a, const Span& b) { return a.begin_ns < b.begin_ns; });
  int64_t total = 0;
  int64_t reached = 0;
  bool any = false;
  for (const Span& span : spans) {
    if (span.end_ns <= span.begin_ns) continue;
    const int64_t begin = any ? std::max(span.begin_ns, reached) : span.begin_ns;
    if (span.end_ns > begin) {
      total += span.end_ns - begin;
      reached = span.end_ns;
      any = true;
    }
  }
  return total;
}

std::optional<double> BusyRatio(std::vector<Span> spans, int64_t steps, double step_seconds) {
  const int64_t busy_ns = UnionNanoseconds(std::move(spans));
  if (busy_ns <= 0 || steps <= 0 || !(step_seconds > 0)) return std::nullopt;
  const double traced_seconds = static_cast<double>(busy_ns) * 1e-9;
  return std::min(1.0, traced_seconds / (static_cast<double>(steps) * step_seconds));
}

}  // namespace assay::measure
