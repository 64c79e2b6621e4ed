#include "common/measure/largest_batch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <vector>

namespace assay::measure {
namespace {

// Which batches fit, and what one that fits uses.
struct Card {
  double capacity_bytes = 80e9;
  std::function<double(int64_t)> needs;  // to run at all
  std::function<double(int64_t)> uses;   // at the end of a trial; empty: the same
};

struct Outcome {
  LargestBatch result;
  std::vector<BatchTrial> trials;
};

Outcome Search(const Card& card, int64_t multiple = 1, int most_trials = 20) {
  LargestBatchSearch search(multiple, most_trials);
  Outcome outcome;
  while (const auto batch = search.Next()) {
    EXPECT_EQ(*batch % multiple, 0);
    const bool fits = card.needs(*batch) <= card.capacity_bytes;
    const double used = card.uses ? card.uses(*batch) : card.needs(*batch);
    outcome.trials.push_back({*batch, fits, fits ? used : 0, fits ? card.capacity_bytes : 0});
    search.Add(outcome.trials.back());
    if (outcome.trials.size() > 100) break;
  }
  outcome.result = search.Result();
  return outcome;
}

int64_t Granule(int64_t batch, int64_t multiple = 1) {
  return multiple * (batch / multiple < 64 ? 1 : 8);
}

int64_t TrueLargest(const Card& card, int64_t multiple = 1) {
  int64_t batch = 0;
  while (card.needs(batch + Granule(batch, multiple)) <= card.capacity_bytes) {
    batch += Granule(batch, multiple);
  }
  return batch;
}

bool Tried(const Outcome& outcome, int64_t batch, bool fits) {
  for (const BatchTrial& trial : outcome.trials) {
    if (trial.batch == batch && trial.fits == fits) return true;
  }
  return false;
}

Card Linear(double fixed, double per_sample, double capacity) {
  return {
      capacity, [=](int64_t batch) { return fixed + per_sample * static_cast<double>(batch); }, {}};
}

TEST(LargestBatch, OnALineFiveTrialsAreEnough) {
  const Card card = Linear(1.9e9, 88e6, 144e9);
  const Outcome outcome = Search(card);
  EXPECT_TRUE(outcome.result.proven);
  EXPECT_EQ(outcome.result.batch, TrueLargest(card));
  EXPECT_EQ(outcome.result.limit, outcome.result.batch + 8);
  EXPECT_LE(outcome.result.trials, 5);
}

TEST(LargestBatch, GranuleIsOneUpToSixtyFour) {
  const Card card = Linear(0.9e9, 170e6, 8e9);  // 41
  const Outcome outcome = Search(card);
  EXPECT_TRUE(outcome.result.proven);
  EXPECT_EQ(outcome.result.batch, 41);
  EXPECT_EQ(outcome.result.limit, 42);
}

TEST(LargestBatch, BorderOfTheGranule) {
  for (const int64_t largest : {63, 64, 65, 71, 72, 73}) {
    const Card card = Linear(0, 1, static_cast<double>(largest));
    const Outcome outcome = Search(card);
    EXPECT_TRUE(outcome.result.proven) << largest;
    EXPECT_EQ(outcome.result.batch, TrueLargest(card)) << largest;
  }
}

TEST(LargestBatch, SmallerThanTheFirstProbe) {
  for (const int64_t largest : {1, 2, 5, 7, 8, 9, 15}) {
    const Outcome outcome = Search(Linear(0, 1, static_cast<double>(largest)));
    EXPECT_TRUE(outcome.result.proven) << largest;
    EXPECT_EQ(outcome.result.batch, largest);
  }
}

TEST(LargestBatch, NotEvenOneFits) {
  const Outcome outcome = Search(Linear(10, 1, 5));
  EXPECT_EQ(outcome.result.batch, 0);
  EXPECT_EQ(outcome.result.limit, 1);
  EXPECT_FALSE(outcome.result.proven);
}

TEST(LargestBatch, MicroBatchesDivideWhatIsTried) {
  const Card card = Linear(1e9, 10e6, 16e9);
  const Outcome outcome = Search(card, 6);
  EXPECT_TRUE(outcome.result.proven);
  EXPECT_EQ(outcome.result.batch, TrueLargest(card, 6));
  EXPECT_EQ(outcome.result.limit, outcome.result.batch + 48);
}

TEST(LargestBatch, WithoutFiguresOfMemoryItDoublesAndHalves) {
  Card card = Linear(0, 1, 1000);
  card.uses = [](int64_t) { return 0.0; };
  const Outcome outcome = Search(card);
  EXPECT_TRUE(outcome.result.proven);
  EXPECT_EQ(outcome.result.batch, TrueLargest(card));
}

TEST(LargestBatch, WhatNeverEndsEndsUnproven) {
  const Outcome outcome = Search({1e30, [](int64_t) { return 1.0; }, {}});
  EXPECT_FALSE(outcome.result.proven);
  EXPECT_GT(outcome.result.batch, 0);
  EXPECT_EQ(outcome.result.limit, 0);
  EXPECT_LE(outcome.result.trials, 20);
}

TEST(LargestBatch, TrialsThatRunOutLeaveAnInterval) {
  const Card card = Linear(1e9, 88e6, 144e9);
  const Outcome outcome = Search(card, 1, 4);
  EXPECT_FALSE(outcome.result.proven);
  EXPECT_LE(outcome.result.batch, TrueLargest(card));
  EXPECT_TRUE(outcome.result.limit == 0 || outcome.result.limit > TrueLargest(card));
}

// The measurement at the batch that was found runs out of memory after all.
TEST(LargestBatch, AContradictionLeavesAnIntervalAndTheSearchGoesOnBelow) {
  const Card card = Linear(0, 1, 100);
  LargestBatchSearch search(1);
  while (const auto batch = search.Next()) {
    const bool fits = *batch <= 100;
    search.Add({*batch, fits, fits ? static_cast<double>(*batch) : 0, fits ? 100.0 : 0});
  }
  ASSERT_EQ(search.Result().batch, 96);
  ASSERT_TRUE(search.Result().proven);
  search.Add({96, false});
  while (const auto batch = search.Next()) {
    EXPECT_LT(*batch, 96);
    search.Add({*batch, true});
  }
  EXPECT_EQ(search.Result().batch, 88);
  EXPECT_EQ(search.Result().limit, 104);
  EXPECT_FALSE(search.Result().proven);
}

TEST(LargestBatch, AMeasurementThatAgreesChangesNothing) {
  LargestBatchSearch search(1);
  while (const auto batch = search.Next()) search.Add({*batch, *batch <= 40});
  ASSERT_TRUE(search.Result().proven);
  search.Add({40, true});
  EXPECT_FALSE(search.Next().has_value());
  EXPECT_TRUE(search.Result().proven);
}

// Any card: steps of an allocator, convex growth, workspaces that come and go, probes that are off
// by a tenth. What is proven must have been tried on both sides, and be true.
TEST(LargestBatch, WhatIsProvenWasTriedOnBothSidesAndIsTrue) {
  std::mt19937 random(7);
  const auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  constexpr int kCards = 2000;
  int proven = 0, usable = 0;
  for (int i = 0; i < kCards; ++i) {
    const double capacity = std::pow(10, uniform(9, 11.3));
    const double fixed = capacity * uniform(0.005, 0.6);
    const double per_sample = std::pow(10, uniform(5.5, 9.5));
    const double block = std::pow(2, uniform(1, 31)), bend = uniform(0, 0.2);
    const double noise = uniform(0, 0.1);
    Card card;
    card.capacity_bytes = capacity;
    card.needs = [=](int64_t batch) {
      const double samples = static_cast<double>(batch);
      const double bytes = fixed + per_sample * samples * (1 + bend * samples / (samples + 500));
      return std::ceil(bytes / block) * block;
    };
    card.uses = [&, noise](int64_t batch) { return card.needs(batch) * uniform(1 - noise, 1); };
    const int64_t multiple = i % 3 == 0 ? 1 + i % 7 : 1;
    const Outcome outcome = Search(card, multiple);
    const LargestBatch& result = outcome.result;
    const int64_t truth = TrueLargest(card, multiple);
    EXPECT_LE(result.batch, truth);
    EXPECT_TRUE(result.limit == 0 || result.limit > truth);
    EXPECT_LE(result.trials, 20);
    if (truth > 0) ++usable;
    if (!result.proven) continue;
    ++proven;
    EXPECT_EQ(result.batch, truth);
    EXPECT_EQ(result.limit, result.batch + Granule(result.batch, multiple));
    EXPECT_TRUE(Tried(outcome, result.batch, true));
    EXPECT_TRUE(Tried(outcome, result.limit, false));
  }
  EXPECT_GT(usable, kCards * 3 / 4);
  EXPECT_GT(proven, usable * 19 / 20);
}

// A batch near the limit fits in one process and not in the next: never called proven where two
// trials contradict, and always an interval that holds what was seen.
TEST(LargestBatch, FragmentationThatComesAndGoesIsNeverCalledProvenWrongly) {
  std::mt19937 random(8);
  for (int i = 0; i < 500; ++i) {
    const double largest = std::uniform_real_distribution<double>(3, 3000)(random);
    LargestBatchSearch search(1);
    std::vector<BatchTrial> trials;
    const auto run = [&](int64_t batch) {
      const double luck = std::uniform_real_distribution<double>(0.97, 1.03)(random);
      const bool fits = static_cast<double>(batch) <= largest * luck;
      trials.push_back({batch, fits, fits ? static_cast<double>(batch) : 0, fits ? largest : 0});
      search.Add(trials.back());
    };
    while (const auto batch = search.Next()) run(*batch);
    if (search.Result().batch > 0) run(search.Result().batch);  // the measurement
    const LargestBatch result = search.Result();
    for (const BatchTrial& trial : trials) {
      if (!trial.fits) EXPECT_GT(trial.batch, result.batch);
      if (trial.fits && result.limit != 0) EXPECT_LT(trial.batch, result.limit);
      if (trial.fits && result.proven) EXPECT_LE(trial.batch, result.batch);
    }
  }
}

}  // namespace
}  // namespace assay::measure
