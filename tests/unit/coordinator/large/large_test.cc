#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/clock/clock.h"
#include "tests/unit/coordinator/core/bench.h"

namespace assay {
namespace {

// Seconds a cell that a run of that many specs, ten repeats each, takes to be drained.
double DrainSecondsPerCell(uint32_t count) {
  Bench bench;
  const SessionHandle session = bench.Hello(MakeNode("n1"));
  std::vector<Spec> specs;
  for (uint32_t i = 0; i < count; ++i) specs.push_back(MakeSpec(i));
  const std::string run = bench.Submit(std::move(specs), 10);
  EXPECT_EQ(bench.View(run).cells, 10 * count);
  const auto begun = BootClock::now();
  EXPECT_EQ(bench.Drain(session), static_cast<int>(10 * count));
  const std::chrono::duration<double> took = BootClock::now() - begun;
  EXPECT_EQ(bench.View(run).state, RunState::kDone);
  return took.count() / (10.0 * count);
}

// A cell of a run of 20,000 costs what one of a run of 2,000 does; a scan of all cells for each
// would cost ten times that. A ratio within one process, so that a busy machine does not decide it.
TEST(Large, TwentyThousandCellsAreCheap) {
  const double small = DrainSecondsPerCell(200);
  const double large = DrainSecondsPerCell(2000);
  EXPECT_LT(large, 5 * small);
}

}  // namespace
}  // namespace assay
