#include "common/results/outcome.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

constexpr Outcome kAll[] = {Outcome::kOk,          Outcome::kMemLimit, Outcome::kFail,
                            Outcome::kUnsupported, Outcome::kHung,     Outcome::kTimeout,
                            Outcome::kLost,        Outcome::kCancelled};

TEST(Outcome, NamesReadBack) {
  for (const Outcome outcome : kAll) EXPECT_EQ(OutcomeFromName(OutcomeName(outcome)), outcome);
  EXPECT_FALSE(OutcomeFromName("OK").has_value());
  EXPECT_FALSE(OutcomeFromName("").has_value());
}

TEST(Outcome, WhatTheRunnerDecidesIsNotTriedAgain) {
  EXPECT_EQ(RetriesAllowed(Outcome::kOk, ""), 0);
  EXPECT_EQ(RetriesAllowed(Outcome::kMemLimit, reason::kOutOfMemory), 0);
  EXPECT_EQ(RetriesAllowed(Outcome::kFail, reason::kCrash), 0);
  EXPECT_EQ(RetriesAllowed(Outcome::kFail, reason::kNonFiniteLoss), 0);
  EXPECT_EQ(RetriesAllowed(Outcome::kUnsupported, reason::kUnsupportedArch), 0);
  EXPECT_EQ(RetriesAllowed(Outcome::kCancelled, reason::kUserCancelled), 0);
}

TEST(Outcome, InfrastructureIsTriedAgain) {
  EXPECT_EQ(RetriesAllowed(Outcome::kFail, reason::kStartFailed), 1);
  EXPECT_EQ(RetriesAllowed(Outcome::kFail, reason::kJoinTimeout), 1);
  EXPECT_EQ(RetriesAllowed(Outcome::kFail, reason::kGpuGone), 1);
  EXPECT_EQ(RetriesAllowed(Outcome::kHung, reason::kNoProgress), 1);
  EXPECT_EQ(RetriesAllowed(Outcome::kTimeout, reason::kCellLimit), 1);
  EXPECT_EQ(RetriesAllowed(Outcome::kLost, reason::kAgentLost), 2);
}

TEST(Outcome, FailuresAreThoseThatMakeARunFail) {
  for (const Outcome outcome : kAll) {
    const bool failure = outcome == Outcome::kFail || outcome == Outcome::kHung ||
                         outcome == Outcome::kTimeout || outcome == Outcome::kLost;
    EXPECT_EQ(IsFailure(outcome), failure) << OutcomeName(outcome);
    EXPECT_EQ(ExitCodeOf(outcome), outcome == Outcome::kCancelled ? 130 : failure ? 1 : 0);
  }
}

}  // namespace
}  // namespace assay
