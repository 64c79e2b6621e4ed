// Pair: two connected agents and a gang of both.
#ifndef ASSAY_TESTS_UNIT_COORDINATOR_CORE_PAIR_H_
#define ASSAY_TESTS_UNIT_COORDINATOR_CORE_PAIR_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/coordinator/core/bench.h"

namespace assay {

inline Spec TwoNodes() {
  Spec spec = MakeSpec(0);
  spec.nodes = 2;
  return spec;
}

// The first agent has been asked; Start() brings the gang to its Start.
struct Pair {
  explicit Pair(CoordinatorTimes times = {}) : bench(times) {
    a = bench.Hello(MakeNode("n1"));
    b = bench.Hello(MakeNode("n2"));
    bench.Pass(std::chrono::seconds(2));  // the second hello is taken up by the next tick
    run = bench.Submit({TwoNodes()});
  }
  void Start() {
    const auto prepares = bench.Take<message::Prepare>(a);
    ASSERT_THAT(prepares, testing::SizeIs(1));
    bench.last_prepare = prepares[0];
    attempt = prepares[0].attempt;
    bench.Do(event::GangReady{a, attempt, "10.0.0.1:4000"});
    bench.Take<message::Prepare>(b);
    bench.Do(event::GangReady{b, attempt, ""});
    bench.held[a] = bench.held[b] = {attempt};
  }
  Bench bench;
  SessionHandle a = 0, b = 0;
  std::string run, attempt;
};

}  // namespace assay

#endif  // ASSAY_TESTS_UNIT_COORDINATOR_CORE_PAIR_H_
