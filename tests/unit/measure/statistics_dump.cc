// Reads a command from standard input a line and writes its figures, so that scipy_test.py can
// compare common/measure with SciPy:
//   t P DOF | mean X... | ratio N X... Y... (the first N are the values) | percentile P X... | mad
//   X...
#include <charconv>
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "common/measure/interval.h"
#include "common/measure/moments.h"
#include "common/measure/percentile.h"
#include "common/measure/student_t.h"

namespace measure = assay::measure;

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
      const auto ratio = measure::RatioOfMeans(top, base);
      std::printf("%.17g %.17g %.17g\n", ratio->value, ratio->interval->low, ratio->interval->high);
    } else if (command == "percentile") {
      const std::vector<double> values(x.begin() + 1, x.end());
      std::printf("%.17g\n", *measure::Percentile(values, x[0]));
    } else if (command == "mad") {
      std::printf("%.17g\n", *measure::ScaledMad(x));
    } else {
      return 2;
    }
  }
  return 0;
}
