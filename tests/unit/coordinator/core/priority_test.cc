// Runs of different priorities.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/coordinator/core/bench.h"

namespace assay {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class Priority : public testing::Test {
 protected:
  std::string Submit(int64_t priority, int repeat, int64_t nodes = 1) {
    Spec spec = MakeSpec(0);
    spec.nodes = nodes;
    return bench_.Submit({spec}, repeat, [priority](event::SubmitRun& submit) {
      submit.matrix.select.priority = priority;
    });
  }
  // The runs of the cells that `session` gets one after the other, to the last.
  std::vector<std::string> RunsServedOn(SessionHandle session) {
    std::vector<std::string> order;
    for (std::string attempt = bench_.StartOn(session); !attempt.empty();
         attempt = bench_.StartOn(session)) {
      order.push_back(bench_.last_prepare.run);
      bench_.Report(session, attempt);
    }
    return order;
  }

  Bench bench_;
};

TEST_F(Priority, HigherGoesFirstAndEqualOnesTakeTurns) {
  const SessionHandle session = bench_.Hello(MakeNode("n1"));
  const std::string low = Submit(-1, 2);
  const std::string running = bench_.StartOn(session);
  const std::string a = Submit(0, 2);
  const std::string b = Submit(0, 2);
  const std::string high = Submit(7, 2);
  EXPECT_THAT(bench_.Take<message::Abort>(session), SizeIs(0)) << "what runs is not interrupted";
  bench_.Report(session, running);
  const std::vector<std::string> order = RunsServedOn(session);
  ASSERT_THAT(order, SizeIs(7));
  EXPECT_THAT(std::vector(order.begin(), order.begin() + 2), ElementsAre(high, high));
  EXPECT_NE(order[2], order[3]);
  EXPECT_EQ(order[2], order[4]);
  EXPECT_EQ(order[3], order[5]);
  EXPECT_EQ(order[6], low);
}

TEST_F(Priority, IsKeptByACoordinatorThatWasStartedAnew) {
  const std::string low = Submit(0, 1);
  const std::string high = Submit(1, 1);
  bench_.Boot();
  const SessionHandle session = bench_.Hello(MakeNode("n1"));
  bench_.Pass(seconds(2), {session});
  EXPECT_THAT(RunsServedOn(session), ElementsAre(high, low));
}

TEST_F(Priority, OfTheRunThatHasTheNodeIsToldToWhoWaits) {
  const SessionHandle session = bench_.Hello(MakeNode("n1"));
  Submit(5, 1);
  ASSERT_NE(bench_.StartOn(session), "");
  const std::string low = Submit(0, 1);
  const std::string equal = Submit(5, 1);
  EXPECT_THAT(bench_.View(low).waiting_for, HasSubstr("a run with a higher priority"));
  EXPECT_THAT(bench_.View(equal).waiting_for, HasSubstr("n1 runs a cell of another run"));
}

// A gang that waits holds nodes back, but not from those before it; and one of a higher priority
// gets its nodes whatever holds them back.
TEST_F(Priority, OutranksAGangThatHoldsNodesBack) {
  const SessionHandle a = bench_.Hello(MakeNode("n1")), b = bench_.Hello(MakeNode("n2"));
  bench_.Pass(seconds(2), {a, b});
  Submit(0, 2);
  const std::string on_a = bench_.StartOn(a), on_b = bench_.StartOn(b);
  ASSERT_TRUE(on_a != "" && on_b != "");
  const std::string gang = Submit(0, 1, 2);
  const std::string single = Submit(1, 1);
  bench_.Report(a, on_a);
  const std::string next = bench_.StartOn(a);
  ASSERT_NE(next, "") << "the node was held back from a run of a higher priority";
  EXPECT_EQ(bench_.last_prepare.run, single);
  const std::string first_gang = Submit(1, 1, 2);
  bench_.Report(b, on_b);
  bench_.Report(a, next);
  EXPECT_THAT(bench_.View(first_gang).active, SizeIs(1));
  EXPECT_THAT(bench_.View(gang).active, SizeIs(0));
}

// Else small cells of a lower priority would take each node as it comes free.
TEST_F(Priority, AGangHoldsNodesBackFromLowerOnes) {
  const SessionHandle a = bench_.Hello(MakeNode("n1")), b = bench_.Hello(MakeNode("n2"));
  bench_.Pass(seconds(2), {a, b});
  Submit(0, 20);
  const std::string on_a = bench_.StartOn(a), on_b = bench_.StartOn(b);
  const std::string gang = Submit(1, 1, 2);
  bench_.Report(a, on_a);
  EXPECT_EQ(bench_.StartOn(a), "");
  bench_.Report(b, on_b);
  EXPECT_THAT(bench_.View(gang).active, SizeIs(1));
}

}  // namespace
}  // namespace assay
