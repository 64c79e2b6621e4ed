#include "agent/process/orphan_reaper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr pid_t kSelf = 100;

ProcessEntry Process(pid_t pid, pid_t parent, pid_t session, char state = 'S') {
  return {pid, parent, session, session, state, 1};
}

std::vector<pid_t> Members(const std::vector<ProcessEntry>& table, pid_t leader,
                           std::map<pid_t, std::string> mark_of = {}) {
  return MembersOfTree(table, kSelf, leader, {{200, "A/0"}, {300, "A/1"}},
                       [&](pid_t pid) { return mark_of[pid]; });
}

TEST(MembersOfTree, HoldsChildrenAndGrandchildrenButNotTheLeader) {
  EXPECT_THAT(Members({Process(kSelf, 1, kSelf), Process(200, kSelf, 200), Process(201, 200, 200),
                       Process(202, 201, 200)},
                      200),
              UnorderedElementsAre(201, 202));
}

TEST(MembersOfTree, FindsADoubleForkedDaemonByItsMark) {
  EXPECT_THAT(Members({Process(kSelf, 1, kSelf), Process(205, kSelf, 205), Process(206, 205, 205)},
                      200, {{205, "A/0"}}),
              UnorderedElementsAre(205, 206));
}

TEST(MembersOfTree, FindsAnOrphanWithoutMarkByItsSession) {
  EXPECT_THAT(Members({Process(kSelf, 1, kSelf), Process(201, kSelf, 200)}, 200),
              UnorderedElementsAre(201));
}

TEST(MembersOfTree, LeavesTheOtherRankOfTheSameAttemptAlone) {
  EXPECT_THAT(Members({Process(kSelf, 1, kSelf), Process(300, kSelf, 300), Process(301, 300, 300),
                       Process(305, kSelf, 305)},
                      200, {{305, "A/1"}}),
              IsEmpty());
}

TEST(MembersOfTree, TakesAnOrphanThatHidMarkAndSession) {
  EXPECT_THAT(Members({Process(kSelf, 1, kSelf), Process(400, kSelf, 400)}, 200),
              UnorderedElementsAre(400));
}

TEST(MembersOfTree, LeavesChildrenInTheAgentsSessionAndStrangersAlone) {
  EXPECT_THAT(Members({Process(kSelf, 1, kSelf), Process(150, kSelf, kSelf), Process(1, 0, 1),
                       Process(900, 1, 900)},
                      200),
              IsEmpty());
}

TEST(MembersOfTree, DoesNotWaitForZombies) {
  EXPECT_THAT(Members({Process(kSelf, 1, kSelf), Process(201, kSelf, 200, 'Z')}, 200), IsEmpty());
}

}  // namespace
}  // namespace assay
