#include "coordinator/store/store_thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/store/fake_store.h"
#include "tests/unit/coordinator/store/rows_for_tests.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A store whose first commit waits until it is let go, as a slow sync does.
class HeldStore final : public ResultStore {
 public:
  absl::StatusOr<StateSnapshot> Load() override { return store_.Load(); }
  absl::StatusOr<std::vector<ImportCounts>> Commit(std::span<const Batch> batches) override {
    sizes.push_back(batches.size());
    if (sizes.size() == 1) {
      entered.set_value();
      released.get_future().wait();
    }
    return store_.Commit(batches);
  }

  std::vector<size_t> sizes;
  std::promise<void> entered;
  std::promise<void> released;

 private:
  FakeStore store_;
};

Persist PersistRun(uint64_t n) { return {n, MakeBatch("run" + std::to_string(n))}; }

TEST(StoreThreadTest, BatchesThatGatherDuringACommitGoIntoTheNextOne) {
  HeldStore store;
  std::vector<uint64_t> done;
  StoreThread thread(store, {[&](std::vector<event::CommitDone> commits) {
                               for (const auto& commit : commits) done.push_back(commit.n);
                             },
                             [](std::string) { FAIL(); }});
  thread.Start();
  thread.Persist(PersistRun(1));
  store.entered.get_future().wait();
  for (uint64_t n = 2; n <= 5; ++n) thread.Persist(PersistRun(n));
  store.released.set_value();
  thread.Stop();
  EXPECT_THAT(store.sizes, ElementsAre(1, 4));
  EXPECT_THAT(done, ElementsAre(1, 2, 3, 4, 5));
}

TEST(StoreThreadTest, StopCarriesOutWhatWasGivenBefore) {
  FakeStore store;
  int done = 0;
  StoreThread thread(store, {[&](std::vector<event::CommitDone> commits) {
                               done += static_cast<int>(commits.size());
                             },
                             [](std::string) { FAIL(); }});
  thread.Persist(PersistRun(1));
  thread.Persist(PersistRun(2));
  thread.Start();
  thread.Stop();
  EXPECT_EQ(done, 2);
  EXPECT_TRUE(store.GetRun("run2").ok());
}

TEST(StoreThreadTest, FailedCommitIsToldOnceAndNothingIsDoneAfterIt) {
  FakeStore store;
  store.FailCommits(absl::ResourceExhaustedError("disk full"));
  std::vector<std::string> failures;
  StoreThread thread(store, {[](std::vector<event::CommitDone>) { FAIL(); },
                             [&](std::string message) { failures.push_back(message); }});
  thread.Persist(PersistRun(1));
  thread.Start();
  thread.Stop();
  EXPECT_THAT(failures, ElementsAre(HasSubstr("disk full")));
}

TEST(StoreThreadTest, ImportCountsComeBackWithTheirCommit) {
  FakeStore store;
  std::vector<event::CommitDone> all;
  StoreThread thread(store, {[&](std::vector<event::CommitDone> commits) {
                               all.insert(all.end(), commits.begin(), commits.end());
                             },
                             [](std::string) { FAIL(); }});
  const Batch rows = MakeBatch(kRunA, RunState::kDone);
  for (uint64_t n = 1; n <= 2; ++n) {
    Batch batch;
    batch.import = Batch::Import{rows.runs, rows.specs, rows.cells, rows.attempts};
    thread.Persist({n, std::move(batch)});
  }
  thread.Start();
  thread.Stop();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].attempts_new, 1u);
  EXPECT_EQ(all[1].attempts_known, 1u);
}

}  // namespace
}  // namespace assay
