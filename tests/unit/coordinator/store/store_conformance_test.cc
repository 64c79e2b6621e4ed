// One suite for every ResultStore with its ResultReader.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "coordinator/store/fake_store.h"
#include "coordinator/store/row_json.h"
#include "coordinator/store/sqlite_store.h"
#include "tests/unit/coordinator/store/rows_for_tests.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

// A store with its reader, and what they stand on.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual ResultStore& store() = 0;
  virtual ResultReader& reader() = 0;
};

class FakeBackend final : public Backend {
 public:
  ResultStore& store() override { return store_; }
  ResultReader& reader() override { return store_; }

 private:
  FakeStore store_;
};

class SqliteBackend final : public Backend {
 public:
  SqliteBackend() {
    std::string pattern = ::testing::TempDir() + "/assay-store-XXXXXX";
    dir_ = mkdtemp(pattern.data());
    store_ = SqliteStore::Open(dir_ + "/results.db").value();
    reader_ = SqliteReader::Open(dir_ + "/results.db").value();
  }
  ~SqliteBackend() override {
    reader_.reset();
    store_.reset();
    std::filesystem::remove_all(dir_);
  }
  ResultStore& store() override { return *store_; }
  ResultReader& reader() override { return *reader_; }

 private:
  std::string dir_;
  std::unique_ptr<SqliteStore> store_;
  std::unique_ptr<SqliteReader> reader_;
};

using MakeBackend = std::function<std::unique_ptr<Backend>()>;

class StoreConformanceTest : public ::testing::TestWithParam<std::pair<const char*, MakeBackend>> {
 protected:
  void SetUp() override { backend_ = GetParam().second(); }
  ResultStore& store() { return backend_->store(); }
  ResultReader& reader() { return backend_->reader(); }

  ImportCounts Commit(const Batch& batch) {
    auto counts = store().Commit(std::span(&batch, 1));
    EXPECT_TRUE(counts.ok()) << counts.status();
    return counts.ok() ? counts->at(0) : ImportCounts();
  }
  ImportCounts Import(Batch::Import import) {
    Batch batch;
    batch.import = std::move(import);
    return Commit(batch);
  }
  static Batch::Import ImportOf(const Batch& batch) {
    return {batch.runs, batch.specs, batch.cells, batch.attempts};
  }

 private:
  std::unique_ptr<Backend> backend_;
};

TEST_P(StoreConformanceTest, EmptyStoreLoadsNothing) {
  const auto snapshot = store().Load();
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_THAT(snapshot->unfinished, IsEmpty());
  EXPECT_THAT(snapshot->ended, IsEmpty());
  EXPECT_THAT(snapshot->nodes, IsEmpty());
}

TEST_P(StoreConformanceTest, RunRowComesBackWhole) {
  Commit(MakeBatch(kRunA));
  EXPECT_EQ(RunJson(reader().GetRun(kRunA).value()), RunJson(MakeRun(kRunA)));
}

TEST_P(StoreConformanceTest, MatrixTextKeepsItsZeroByte) {
  Commit(MakeBatch(kRunA));
  EXPECT_EQ(reader().GetRun(kRunA)->yaml, MakeRun(kRunA).yaml);
}

TEST_P(StoreConformanceTest, SpecsComeBackByIndex) {
  Batch batch = MakeBatch(kRunA);
  std::swap(batch.specs[0], batch.specs[1]);
  Commit(batch);
  const auto specs = reader().ListSpecs(kRunA);
  ASSERT_THAT(*specs, SizeIs(2));
  EXPECT_EQ(SpecJson((*specs)[0]), SpecJson(MakeSpec(0)));
  EXPECT_EQ(SpecJson((*specs)[1]), SpecJson(MakeSpec(1)));
}

TEST_P(StoreConformanceTest, CellsAndAttemptsComeBackWhole) {
  const Batch batch = MakeBatch(kRunA);
  Commit(batch);
  const auto cells = reader().ListCells(kRunA, 0, 100);
  ASSERT_THAT(*cells, SizeIs(2));
  EXPECT_EQ(CellJson((*cells)[0].cell), CellJson(batch.cells[0]));
  EXPECT_EQ(CellJson((*cells)[1].cell), CellJson(batch.cells[1]));
  EXPECT_FALSE((*cells)[1].attempt.has_value());
  ASSERT_TRUE((*cells)[0].attempt.has_value());
  EXPECT_EQ((*cells)[0].attempt->record, batch.attempts[0].record);
  const auto attempts = reader().ListAttempts(kRunA, 1);
  ASSERT_THAT(*attempts, SizeIs(1));
  EXPECT_EQ(AttemptJson((*attempts)[0]), AttemptJson(batch.attempts[0]));
}

TEST_P(StoreConformanceTest, PeaksOfAllRunsAreListedAndNothingElse) {
  Batch peaks = MakeBatch(kRunA);
  peaks.attempts[0].runner = "assay-peaks";
  peaks.attempts[0].outcome = Outcome::kOk;
  Commit(peaks);
  Batch failed = MakeBatch(kRunB);
  failed.attempts[0].runner = "assay-peaks";
  failed.attempts[0].outcome = Outcome::kFail;
  Commit(failed);
  const auto listed = reader().ListPeaks();
  ASSERT_TRUE(listed.ok()) << listed.status();
  ASSERT_THAT(*listed, SizeIs(1));
  EXPECT_EQ(SpecJson(listed->front().spec), SpecJson(MakeSpec(peaks.cells[0].spec_index)));
  EXPECT_EQ(CellJson(listed->front().result.cell), CellJson(peaks.cells[0]));
  EXPECT_EQ(listed->front().result.attempt->record, peaks.attempts[0].record);
}

TEST_P(StoreConformanceTest, ATrainingIsNoPeak) {
  Commit(MakeBatch(kRunA));
  EXPECT_THAT(*reader().ListPeaks(), IsEmpty());
}

TEST_P(StoreConformanceTest, EveryStoredFieldOfARecordSurvives) {
  Batch batch = MakeBatch(kRunA);
  Record record;
  for (const FieldInfo& info : AllFields()) {
    if (info.source == FieldSource::kComputed) continue;
    const auto number = static_cast<int64_t>(info.field) + 1;
    absl::Status status;
    switch (info.type) {
      case FieldType::kText:
      case FieldType::kList:
        status = record.Set(info.field, fmt::format("v{};\"'\n\xE2\x82\xAC", number));
        break;
      case FieldType::kCount:
        status = record.Set(info.field, "max");
        break;
      case FieldType::kInteger:
        status = record.Set(info.field, number * (int64_t{1} << 40));
        break;
      case FieldType::kNumber:
        status = record.Set(info.field, static_cast<double>(number) / 3);
        break;
      case FieldType::kFlag:
        status = record.Set(info.field, false);
        break;
    }
    ASSERT_TRUE(status.ok()) << status;
  }
  batch.attempts[0].record = record;
  Commit(batch);
  EXPECT_EQ(reader().GetCell(kRunA, 1)->attempt->record, record);
}

TEST_P(StoreConformanceTest, LaterRowReplacesEarlierOne) {
  Commit(MakeBatch(kRunA));
  Batch batch;
  batch.runs = {MakeRun(kRunA, RunState::kDone)};
  batch.cells = {EndedCell(MakeCell(kRunA, 2, 1), Outcome::kFail, "")};
  batch.attempts = {MakeAttempt(kRunA, 1, kRunA + "-a1")};
  batch.attempts[0].record.Clear(Field::kThroughput);
  Commit(batch);
  EXPECT_EQ(reader().GetRun(kRunA)->state, RunState::kDone);
  EXPECT_EQ(reader().GetCell(kRunA, 2)->cell.outcome, Outcome::kFail);
  EXPECT_FALSE(reader().GetCell(kRunA, 1)->attempt->record.Has(Field::kThroughput));
}

TEST_P(StoreConformanceTest, LoadTellsUnfinishedFromEndedRuns) {
  Commit(MakeBatch(kRunA));
  Commit(MakeBatch(kRunB, RunState::kCancelled));
  const auto snapshot = store().Load();
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  ASSERT_THAT(snapshot->unfinished, SizeIs(1));
  EXPECT_EQ(snapshot->unfinished[0].run.id, kRunA);
  EXPECT_THAT(snapshot->unfinished[0].specs, SizeIs(2));
  EXPECT_THAT(snapshot->unfinished[0].cells, SizeIs(2));
  ASSERT_THAT(snapshot->unfinished[0].attempts, SizeIs(1));
  EXPECT_THAT(snapshot->unfinished[0].attempts[0].members, SizeIs(2));
  ASSERT_THAT(snapshot->ended, SizeIs(1));
  EXPECT_EQ(snapshot->ended[0].id, kRunB);
  EXPECT_EQ(snapshot->ended[0].request_id, "request-" + kRunB);
  EXPECT_EQ(snapshot->ended[0].digest, MakeRun(kRunB).digest);
  EXPECT_EQ(snapshot->ended[0].generation, 3u);
  EXPECT_EQ(snapshot->ended[0].rerun_request_id, "again");
}

TEST_P(StoreConformanceTest, NodesAreReplacedByName) {
  Batch batch;
  batch.nodes = {{"n1", 1, "m", "b", "i", "a", 5}, {"n1", 2, "m2", "b2", "i2", "a2", 6}};
  Commit(batch);
  const auto snapshot = store().Load();
  ASSERT_THAT(snapshot->nodes, SizeIs(1));
  EXPECT_EQ(snapshot->nodes[0].session_epoch, 2u);
  EXPECT_EQ(snapshot->nodes[0].instance, "i2");
  EXPECT_FALSE(snapshot->nodes[0].draining);
}

TEST_P(StoreConformanceTest, ADrainIsStored) {
  Batch batch;
  batch.nodes = {{"n1", 1, "m", "b", "i", "a", 5, true}, {"n2", 1, "m", "b", "i", "a", 5, false}};
  Commit(batch);
  const auto snapshot = store().Load();
  ASSERT_THAT(snapshot->nodes, SizeIs(2));
  EXPECT_TRUE(snapshot->nodes[0].draining);
  EXPECT_FALSE(snapshot->nodes[1].draining);
}

TEST_P(StoreConformanceTest, TheSlicesThatHaveCellsAreListed) {
  Batch batch = MakeBatch(kRunA);
  batch.runs[0].slice = {2, 4, "job"};
  batch.cells = {MakeCell(kRunA, 2), MakeCell(kRunA, 6), MakeCell(kRunA, 4)};
  Commit(batch);
  const auto runs = reader().ListRuns();
  ASSERT_TRUE(runs.ok()) << runs.status();
  ASSERT_THAT(*runs, SizeIs(1));
  EXPECT_EQ((*runs)[0].run.slice, (Slice{2, 4, "job"}));
  EXPECT_THAT((*runs)[0].slices, ElementsAre(2, 4));
}

TEST_P(StoreConformanceTest, SeveralBatchesAreOneCommitInTheirOrder) {
  Batch second;
  second.runs = {MakeRun(kRunA, RunState::kDone)};
  const std::vector<Batch> batches = {MakeBatch(kRunA), second};
  ASSERT_TRUE(store().Commit(batches).ok());
  EXPECT_EQ(reader().GetRun(kRunA)->state, RunState::kDone);
}

TEST_P(StoreConformanceTest, FailedCommitLeavesNothingAndStopsTheStore) {
  Batch broken = MakeBatch(kRunB);
  broken.cells.push_back(MakeCell(kRunB, 3, 99));  // a spec that does not exist
  const std::vector<Batch> batches = {MakeBatch(kRunA), broken};
  EXPECT_FALSE(store().Commit(batches).ok());
  EXPECT_THAT(*reader().ListRuns(), IsEmpty());
  const Batch good = MakeBatch(kRunA);
  EXPECT_FALSE(store().Commit(std::span(&good, 1)).ok());
}

TEST_P(StoreConformanceTest, LateReportFillsAnAttemptThatWasGivenUp) {
  Batch batch = MakeBatch(kRunA, RunState::kDone);
  batch.attempts.push_back(MakeAttempt(kRunA, 2, "lost-one"));
  batch.attempts[1].counted = false;
  batch.attempts[1].reported = false;
  batch.attempts[1].outcome = Outcome::kLost;
  batch.attempts[1].record = Record();
  Commit(batch);
  Batch late;
  late.late_attempts = {MakeAttempt(kRunA, 2, "lost-one")};
  late.late_attempts[0].late = true;
  late.late_attempts[0].counted = false;
  late.late_attempts[0].node = "another";
  Commit(late);
  EXPECT_EQ((*reader().ListAttempts(kRunA, 2))[0].outcome, Outcome::kLost);  // not its attempt
  late.late_attempts[0].node = "node-1";
  late.late_attempts[0].card = "another";
  Commit(late);
  const auto attempts = reader().ListAttempts(kRunA, 2);
  ASSERT_THAT(*attempts, SizeIs(1));
  EXPECT_TRUE((*attempts)[0].late);
  EXPECT_EQ((*attempts)[0].outcome, Outcome::kOk);
  EXPECT_EQ((*attempts)[0].card, "RTX 3090");
  EXPECT_TRUE((*attempts)[0].record.Has(Field::kThroughput));
}

TEST_P(StoreConformanceTest, LateReportNeverTouchesACountedAttempt) {
  Commit(MakeBatch(kRunA, RunState::kDone));
  Batch late;
  late.late_attempts = {MakeAttempt(kRunA, 1, kRunA + "-a1")};
  late.late_attempts[0].outcome = Outcome::kFail;
  late.late_attempts[0].late = true;
  Commit(late);
  EXPECT_EQ((*reader().ListAttempts(kRunA, 1))[0].outcome, Outcome::kOk);
}

TEST_P(StoreConformanceTest, LateReportOfACountedLostAttemptIsSaidOnceAndCountsForNothing) {
  Batch batch = MakeBatch(kRunA, RunState::kDone);
  batch.attempts[0].reported = false;
  batch.attempts[0].outcome = Outcome::kLost;
  batch.attempts[0].message = "lost on n1";
  batch.attempts[0].record = Record();
  Commit(batch);
  Batch late;
  late.late_attempts = {MakeAttempt(kRunA, 1, kRunA + "-a1")};
  late.late_attempts[0].late = true;
  Commit(late);
  Commit(late);
  const AttemptRow stored = (*reader().ListAttempts(kRunA, 1))[0];
  EXPECT_EQ(stored.outcome, Outcome::kLost);
  EXPECT_TRUE(stored.counted && stored.reported && !stored.late);
  EXPECT_EQ(stored.message, "lost on n1; later it reported ok, which does not count");
  EXPECT_FALSE(stored.record.Has(Field::kThroughput));
}

TEST_P(StoreConformanceTest, AnAttemptThatIsUncountedStaysWithItsResult) {
  Batch batch = MakeBatch(kRunA, RunState::kDone);
  const std::string first = kRunA + "-a1";
  Commit(batch);
  ASSERT_TRUE((*reader().ListAttempts(kRunA, 1))[0].counted);
  Batch again;
  again.uncounted_attempts = {first, "no such attempt"};
  Commit(again);
  const auto attempts = reader().ListAttempts(kRunA, 1);
  ASSERT_THAT(*attempts, SizeIs(1));
  EXPECT_FALSE((*attempts)[0].counted);
  EXPECT_EQ((*attempts)[0].outcome, Outcome::kOk);
}

TEST_P(StoreConformanceTest, LateReportOfAnUnknownRunIsDropped) {
  Batch late;
  late.late_attempts = {MakeAttempt(kRunB, 1, "x")};
  Commit(late);
  EXPECT_THAT(*reader().ListAttempts(kRunB, 1), IsEmpty());
}

TEST_P(StoreConformanceTest, ImportTwiceIsTheSameAsOnce) {
  const Batch::Import import = ImportOf(MakeBatch(kRunA, RunState::kDone));
  EXPECT_EQ(Import(import).attempts_new, 1u);
  const ImportCounts again = Import(import);
  EXPECT_EQ(again.attempts_new, 0u);
  EXPECT_EQ(again.attempts_known, 1u);
  EXPECT_THAT(*reader().ListCells(kRunA, 0, 100), SizeIs(2));
}

TEST_P(StoreConformanceTest, ImportCompletesARunFromSeveralFiles) {
  Batch::Import one = ImportOf(MakeBatch(kRunA, RunState::kDone));
  one.cells.resize(1);
  one.runs[0].cells = 1;
  Import(one);
  Batch::Import two = ImportOf(MakeBatch(kRunA, RunState::kDone));
  two.runs[0].cells = 1;
  two.cells = {EndedCell(MakeCell(kRunA, 2, 1), Outcome::kOk, "second")};
  two.attempts = {MakeAttempt(kRunA, 2, "second")};
  EXPECT_EQ(Import(two).attempts_new, 1u);
  EXPECT_EQ(reader().GetRun(kRunA)->cells, 2u);
  EXPECT_TRUE(reader().GetCell(kRunA, 2)->attempt.has_value());
}

TEST_P(StoreConformanceTest, ImportReplacesAnOpenOrCancelledCellButNoOther) {
  Batch batch = MakeBatch(kRunA, RunState::kDone);
  batch.cells.push_back(EndedCell(MakeCell(kRunA, 3, 0), Outcome::kCancelled, ""));
  Commit(batch);
  Batch::Import import = ImportOf(MakeBatch(kRunA, RunState::kDone));
  import.cells = {EndedCell(MakeCell(kRunA, 1, 0), Outcome::kFail, "n1"),
                  EndedCell(MakeCell(kRunA, 2, 1), Outcome::kOk, "n2"),
                  EndedCell(MakeCell(kRunA, 3, 0), Outcome::kOk, "n3")};
  import.attempts = {MakeAttempt(kRunA, 1, "n1"), MakeAttempt(kRunA, 2, "n2"),
                     MakeAttempt(kRunA, 3, "n3")};
  Import(import);
  EXPECT_EQ(reader().GetCell(kRunA, 1)->cell.outcome, Outcome::kOk);
  EXPECT_EQ(reader().GetCell(kRunA, 2)->cell.counted_attempt, "n2");
  EXPECT_EQ(reader().GetCell(kRunA, 3)->cell.counted_attempt, "n3");
  // At most one attempt of a cell is counted: cell 1 kept its own.
  const std::vector<AttemptRow> attempts = reader().ListAttempts(kRunA, 1).value();
  for (const AttemptRow& attempt : attempts) {
    EXPECT_EQ(attempt.counted, attempt.id == kRunA + "-a1") << attempt.id;
  }
}

TEST_P(StoreConformanceTest, ImportsOfARunBeforeAndAfterARerunComeToTheSameInAnyOrder) {
  const auto exported = [](Outcome outcome, uint32_t rerun, const std::string& attempt) {
    Batch::Import import = ImportOf(MakeBatch(kRunA, RunState::kDone));
    import.cells = {EndedCell(MakeCell(kRunA, 1, 0), outcome, attempt)};
    import.cells[0].first_attempt = import.cells[0].attempts = rerun;
    import.attempts = {MakeAttempt(kRunA, 1, attempt)};
    return import;
  };
  struct Case {
    Batch::Import one, other;
    std::string counted;
  };
  const Case cases[] = {
      {exported(Outcome::kFail, 1, "a"), exported(Outcome::kOk, 2, "b"), "b"},
      {exported(Outcome::kLost, 1, "c"), exported(Outcome::kMemLimit, 2, "d"), "d"},
      {exported(Outcome::kTimeout, 1, "e"), exported(Outcome::kFail, 2, "f"), "f"},
      {exported(Outcome::kFail, 3, "g"), exported(Outcome::kOk, 2, "h"), "h"},
      {exported(Outcome::kFail, 1, "i"), exported(Outcome::kCancelled, 2, "j"), "i"},
      // Two sites ran the same failed cell again.
      {exported(Outcome::kOk, 2, "k"), exported(Outcome::kOk, 2, "l"), "k"},
      {exported(Outcome::kOk, 2, "m"), exported(Outcome::kOk, 3, "n"), "n"},
      {exported(Outcome::kOk, 2, "o"), exported(Outcome::kMemLimit, 3, "p"), "o"},
      {exported(Outcome::kHung, 2, "q"), exported(Outcome::kFail, 2, "r"), "q"},
  };
  for (const Case& each : cases) {
    for (const bool swapped : {false, true}) {
      TearDown();
      SetUp();
      Import(swapped ? each.other : each.one);
      Import(swapped ? each.one : each.other);
      EXPECT_EQ(reader().GetCell(kRunA, 1)->cell.counted_attempt, each.counted) << swapped;
      const std::vector<AttemptRow> attempts = reader().ListAttempts(kRunA, 1).value();
      for (const AttemptRow& attempt : attempts) {
        EXPECT_EQ(attempt.counted, attempt.id == each.counted) << attempt.id;
      }
    }
  }
}

TEST_P(StoreConformanceTest, RunsAreListedNewestFirstWithTheirOutcomes) {
  Batch batch = MakeBatch(kRunB, RunState::kDone);
  batch.runs[0].submitted_at_unix_ms += 1;
  Commit(MakeBatch(kRunA));
  Commit(batch);
  const auto runs = reader().ListRuns();
  ASSERT_THAT(*runs, SizeIs(2));
  EXPECT_EQ((*runs)[0].run.id, kRunB);
  EXPECT_EQ((*runs)[1].run.id, kRunA);
  EXPECT_THAT((*runs)[0].outcomes, ElementsAre(Pair(Outcome::kOk, 1u)));
}

TEST_P(StoreConformanceTest, RunIsFoundByIdPrefixInEitherCaseAndLast) {
  Commit(MakeBatch(kRunA));
  Batch batch = MakeBatch(kRunB);
  batch.runs[0].submitted_at_unix_ms += 1;
  Commit(batch);
  EXPECT_EQ(*reader().ResolveRun(kRunA), kRunA);
  EXPECT_EQ(*reader().ResolveRun("01j00000000000000000000001"), kRunA);
  EXPECT_EQ(*reader().ResolveRun("last"), kRunB);
  EXPECT_EQ(reader().ResolveRun("01J0").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(reader().ResolveRun("7").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(reader().ResolveRun("").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(reader().ResolveRun("%").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(reader().ResolveRun("a' OR 1=1 --").status().code(), absl::StatusCode::kNotFound);
}

TEST_P(StoreConformanceTest, LastOfAnEmptyStoreIsNotFound) {
  EXPECT_EQ(reader().ResolveRun("last").status().code(), absl::StatusCode::kNotFound);
}

TEST_P(StoreConformanceTest, UnknownRunAndCellAreNotFound) {
  EXPECT_EQ(reader().GetRun(kRunA).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(reader().LoadRun(kRunA).status().code(), absl::StatusCode::kNotFound);
  Commit(MakeBatch(kRunA));
  EXPECT_EQ(reader().GetCell(kRunA, 9).status().code(), absl::StatusCode::kNotFound);
}

TEST_P(StoreConformanceTest, CellsArePagedByNumber) {
  Batch batch = MakeBatch(kRunA);
  for (uint64_t cell = 3; cell <= 10; ++cell) batch.cells.push_back(MakeCell(kRunA, cell));
  Commit(batch);
  const auto page = reader().ListCells(kRunA, 4, 3);
  ASSERT_THAT(*page, SizeIs(3));
  EXPECT_EQ((*page)[0].cell.cell, 5u);
  EXPECT_EQ((*page)[2].cell.cell, 7u);
  EXPECT_THAT(*reader().ListCells(kRunA, 10, 3), IsEmpty());
}

TEST_P(StoreConformanceTest, LoadedRunHasAttemptsInOrderWithoutTheirTexts) {
  Batch batch = MakeBatch(kRunA);
  batch.attempts.push_back(MakeAttempt(kRunA, 2, "0-before-by-id"));
  Commit(batch);
  const auto run = reader().LoadRun(kRunA);
  ASSERT_THAT(run->attempts, SizeIs(2));
  EXPECT_EQ(run->attempts[0].cell, 1u);
  EXPECT_EQ(run->attempts[0].log_tail, "");
  EXPECT_EQ(run->attempts[0].record, Record());
}

INSTANTIATE_TEST_SUITE_P(
    Stores, StoreConformanceTest,
    ::testing::Values(
        std::pair<const char*, MakeBackend>("Fake", [] { return std::make_unique<FakeBackend>(); }),
        std::pair<const char*, MakeBackend>("Sqlite",
                                            [] { return std::make_unique<SqliteBackend>(); })),
    [](const auto& info) { return std::string(info.param.first); });

}  // namespace
}  // namespace assay
