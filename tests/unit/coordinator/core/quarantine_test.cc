// GPUs that failed: left alone, probed, and used again. Cases 43 and 44.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/coordinator/core/bench.h"

namespace assay {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Quarantine : public testing::TestWithParam<std::string_view> {
 protected:
  std::string NextGpu(SessionHandle session) {
    attempt_ = bench_.StartOn(session);
    return attempt_.empty() ? "" : bench_.last_prepare.members[0].gpu_uuid;
  }
  std::vector<std::string> Warnings() const { return bench_.state->Agents()[0].inventory.warnings; }

  Bench bench_;
  std::string attempt_;
};

INSTANTIATE_TEST_SUITE_P(Reasons, Quarantine, testing::Values(reason::kGpuGone, reason::kEccError));

TEST_P(Quarantine, GpuThatFailedIsLeftAloneAndShownAndComesBackByAProbe) {
  const SessionHandle session = bench_.Hello(MakeNode("n1", "RTX 3090", 2));
  bench_.Submit({MakeSpec(0)}, 200);
  const std::string sick = NextGpu(session);
  bench_.Report(session, attempt_, Outcome::kFail, GetParam());
  EXPECT_THAT(Warnings(), ElementsAre(AllOf(HasSubstr(sick), HasSubstr(std::string(GetParam())),
                                            HasSubstr("probe"))));
  for (int i = 0; i < 5; ++i) {
    bench_.Pass(seconds(11), {session});
    const std::string other = NextGpu(session);
    EXPECT_NE(other, "");
    EXPECT_NE(other, sick) << "after " << 11 * (i + 1) << " s";
    bench_.Report(session, attempt_);
  }
  bench_.Pass(seconds(6), {session});
  bench_.Report(session, bench_.StartOn(session));  // offered before the rest was over
  ASSERT_EQ(NextGpu(session), sick) << "the least used one comes first";
  bench_.Do(event::RanksJoined{session, attempt_, {0}});
  EXPECT_THAT(Warnings(), IsEmpty());
}

TEST_P(Quarantine, ProbeThatFailsTooIsFollowedByAnotherRest) {
  const SessionHandle session = bench_.Hello(MakeNode("n1"));
  bench_.Submit({MakeSpec(0)}, 200);
  for (int i = 0; i < 3; ++i) {
    ASSERT_NE(NextGpu(session), "") << i;
    bench_.Report(session, attempt_, Outcome::kFail, GetParam());
    bench_.Pass(seconds(59), {session});
    ASSERT_EQ(NextGpu(session), "") << i;
    bench_.Pass(seconds(2), {session});
  }
}

TEST_P(Quarantine, OthersOfTheGangAreNotBlamed) {
  const SessionHandle session = bench_.Hello(MakeNode("n1", "RTX 3090", 2));
  Spec pair = MakeSpec(0);
  pair.gpus = 2;
  bench_.Submit({pair});
  NextGpu(session);
  event::AttemptReport report = bench_.MakeReport(session, attempt_, {0, 1});
  report.ranks[1].outcome = Outcome::kFail;
  report.ranks[1].reason = GetParam();
  report.ranks[1].message = "fell off the bus";
  const std::string sick = bench_.last_prepare.members[1].gpu_uuid;
  bench_.held[session].clear();
  bench_.Do(report);
  EXPECT_THAT(Warnings(), ElementsAre(HasSubstr(sick)));
}

}  // namespace
}  // namespace assay
