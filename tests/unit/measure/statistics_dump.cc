// Reads a command from standard input a line and writes its figures, so that scipy_test.py can
// compare common/measure with SciPy:
//   t P DOF | mean X... | ratio N X... Y... (the first N are the values) | percentile P X... | mad
//   X... | medians as ratio | geomean N (COUNT X...)... | deviations X... | batches X...
#include <charconv>
#include <cstdio>
#include <iostream>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "common/measure/interval.h"
#include "common/measure/moments.h"
#include "common/measure/percentile.h"
#include "common/measure/student_t.h"

namespace measure = assay::measure;

namespace {

void Print(const std::optional<measure::Ratio>& ratio) {
  std::printf("%.17g %.17g %.17g\n", ratio->value, ratio->interval->low, ratio->interval->high);
}

}  // namespace

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream in(line);
    std::string command;
    in >> command;
    std::vector<double> x;
    for (double value = 0; in >> value;) x.push_back(value);
    if (command == "t" && x.size() == 2) {
      std::printf("%.17g\n", measure::StudentTQuantile(x[0], x[1]));
    } else if (command == "mean") {
      const auto interval = measure::MeanInterval(x);
      const measure::Moments moments(x);
      std::printf("%.17g %.17g %.17g %.17g\n", moments.mean(), *moments.StandardDeviation(),
                  interval->low, interval->high);
    } else if (command == "ratio") {
      const auto values = static_cast<std::ptrdiff_t>(x[0]);
      const std::vector<double> top(x.begin() + 1, x.begin() + 1 + values);
      const std::vector<double> base(x.begin() + 1 + values, x.end());
      Print(measure::RatioOfMeans(top, base));
    } else if (command == "percentile") {
      const std::vector<double> values(x.begin() + 1, x.end());
      std::printf("%.17g\n", *measure::Percentile(values, x[0]));
    } else if (command == "mad") {
      std::printf("%.17g\n", *measure::ScaledMad(x));
    } else if (command == "medians") {
      const auto values = static_cast<std::ptrdiff_t>(x[0]);
      const std::vector<double> top(x.begin() + 1, x.begin() + 1 + values);
      const std::vector<double> base(x.begin() + 1 + values, x.end());
      const measure::LogSides sides{*measure::LogMedian(top), *measure::LogMedian(base)};
      Print(measure::GeometricMeanOfRatios({&sides, 1}));
    } else if (command == "geomean") {
      // N, then for each workload twice a count with as many values.
      std::vector<measure::LogSides> workloads;
      size_t at = 1;
      const auto next = [&] {
        const auto count = static_cast<size_t>(x[at]);
        const auto mean = measure::LogMean(std::span(x).subspan(at + 1, count));
        at += 1 + count;
        return *mean;
      };
      for (int i = 0; i < static_cast<int>(x[0]); ++i) {
        const measure::LogEstimate values = next();
        workloads.push_back({values, next()});
      }
      Print(measure::GeometricMeanOfRatios(workloads));
    } else if (command == "deviations") {
      for (const double deviation : measure::RobustDeviations(x)) std::printf("%.17g ", deviation);
      std::printf("\n");
    } else if (command == "batches") {
      const auto means = measure::BatchMeansOf(x);
      std::printf("%.17g %.17g\n", means->mean, means->half_width_ratio);
    } else {
      return 2;
    }
  }
  return 0;
}
