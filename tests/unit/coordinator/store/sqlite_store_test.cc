// What SqliteStore adds to the conformance suite: durability, old and foreign files, sick disks.
#include "coordinator/store/sqlite_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/store/full_store.h"
#include "coordinator/store/row_json.h"
#include "coordinator/store/schema.h"
#include "tests/unit/coordinator/store/rows_for_tests.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string Text(const absl::Status& status) { return std::string(status.message()); }

class SqliteStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/assay-sqlite-XXXXXX";
    dir_ = mkdtemp(pattern.data());
    path_ = dir_ + "/results.db";
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  // Run number `n` of a sequence.
  static std::string RunId(int n) { return fmt::format("01J{:023d}", n); }

  static absl::Status CommitRun(SqliteStore& store, int n) {
    const Batch batch = MakeBatch(RunId(n), RunState::kDone);
    return store.Commit(std::span(&batch, 1)).status();
  }

  std::string dir_;
  std::string path_;
};

TEST_F(SqliteStoreTest, WritesAheadAndSyncsInFull) {
  auto database = SqliteDatabase::Open(path_);
  ASSERT_TRUE(database.ok()) << database.status();
  EXPECT_EQ(database->QueryInteger("PRAGMA synchronous")->value(), 2);
  EXPECT_EQ(database->QueryInteger("PRAGMA foreign_keys")->value(), 1);
  auto mode = database->Prepare("PRAGMA journal_mode");
  ASSERT_TRUE(*mode->Step());
  EXPECT_EQ(mode->Text(0), "wal");
}

TEST_F(SqliteStoreTest, RowsOutliveTheStore) {
  {
    auto store = SqliteStore::Open(path_).value();
    ASSERT_TRUE(CommitRun(*store, 1).ok());
  }
  auto store = SqliteStore::Open(path_).value();
  EXPECT_THAT(store->Load()->ended, SizeIs(1));
}

TEST_F(SqliteStoreTest, RepeatsAreTheCellsOfOneSpecOnOneTargetOfOneRun) {
  auto store = SqliteStore::Open(path_).value();
  Batch batch = MakeBatch(RunId(1));
  batch.cells = {MakeCell(RunId(1), 4, 0), MakeCell(RunId(1), 1, 0), MakeCell(RunId(1), 2, 1),
                 MakeCell(RunId(1), 3, 0)};
  batch.cells[3].target = "another";
  ASSERT_TRUE(store->Commit(std::span(&batch, 1)).ok());
  ASSERT_TRUE(CommitRun(*store, 2).ok());
  auto reader = SqliteReader::Open(path_).value();
  const auto repeats = reader->ListRepeats(batch.cells[0]);
  ASSERT_THAT(*repeats, SizeIs(2));
  EXPECT_EQ((*repeats)[0].cell.cell, 1u);
  EXPECT_EQ((*repeats)[1].cell.cell, 4u);
}

// The statement that had met the row was left standing on it, and the reader with it in the past.
TEST_F(SqliteStoreTest, ARowThatCannotBeReadDoesNotHoldTheReaderToThePast) {
  auto store = SqliteStore::Open(path_).value();
  auto reader = SqliteReader::Open(path_).value();
  ASSERT_TRUE(CommitRun(*store, 1).ok());
  ASSERT_TRUE(CommitRun(*store, 2).ok());
  auto by_hand = SqliteDatabase::Open(path_);
  ASSERT_TRUE(by_hand->Execute("UPDATE runs SET selection='no JSON'").ok());
  EXPECT_EQ(reader->ListRuns().status().code(), absl::StatusCode::kDataLoss);
  ASSERT_TRUE(CommitRun(*store, 3).ok());
  EXPECT_TRUE(reader->GetRun(RunId(3)).ok()) << reader->GetRun(RunId(3)).status();
}

TEST_F(SqliteStoreTest, ResultColumnsAreTypedAndComputedFieldsHaveNone) {
  auto store = SqliteStore::Open(path_).value();
  auto database = SqliteDatabase::Open(path_);
  const auto type_of = [&](const std::string& column) {
    auto statement = database->Prepare(
        fmt::format("SELECT type FROM pragma_table_info('results') WHERE name='{}'", column));
    return *statement->Step() ? statement->Text(0) : std::string("none");
  };
  EXPECT_EQ(type_of("throughput"), "REAL");
  EXPECT_EQ(type_of("steps"), "INTEGER");
  EXPECT_EQ(type_of("cudnn_benchmark"), "INTEGER");
  EXPECT_EQ(type_of("gpu_uuids"), "TEXT");
  EXPECT_EQ(type_of("verdict"), "none");
}

TEST_F(SqliteStoreTest, FileOfAnOlderVersionIsMigratedWithItsRows) {
  {
    auto database = SqliteDatabase::Open(path_);
    ASSERT_TRUE(MigrateSchema(*database, 1).ok());
    // As version 1 of the program, before a field was added to the catalogue.
    ASSERT_TRUE(database->Execute("ALTER TABLE results DROP COLUMN throughput").ok());
    // Rows are written by the program of today, with columns that version 1 does not have.
    const std::vector<std::string> later = {"submitted_by", "labels", "slice", "slices",
                                            "slice_id"};
    for (const std::string& column : later) {
      ASSERT_TRUE(database->Execute("ALTER TABLE runs ADD COLUMN " + column).ok()) << column;
    }
    {
      SqliteRows rows(*database);
      ASSERT_TRUE(rows.Write(MakeRun(kRunA, RunState::kDone), OnConflict::kReplace).ok());
      ASSERT_TRUE(rows.Write(SpecRow{kRunA, MakeSpec(0)}, OnConflict::kReplace).ok());
    }
    for (const std::string& column : later) {
      ASSERT_TRUE(database->Execute("ALTER TABLE runs DROP COLUMN " + column).ok()) << column;
    }
    EXPECT_EQ(database->QueryInteger("SELECT version FROM schema_version")->value(), 1);
  }
  auto store = SqliteStore::Open(path_);
  ASSERT_TRUE(store.ok()) << store.status();
  auto database = SqliteDatabase::Open(path_);
  EXPECT_EQ(database->QueryInteger("SELECT version FROM schema_version")->value(), kSchemaVersion);
  EXPECT_EQ(database
                ->QueryInteger("SELECT count(*) FROM sqlite_master WHERE type='index' AND "
                               "name='attempts_by_cell'")
                ->value(),
            1);
  EXPECT_EQ(database
                ->QueryInteger("SELECT count(*) FROM pragma_table_info('results') WHERE "
                               "name='throughput'")
                ->value(),
            1);
  auto reader = SqliteReader::Open(path_).value();
  RunRow expected = MakeRun(kRunA, RunState::kDone);
  expected.submitted_by.clear();
  expected.labels.clear();
  EXPECT_EQ(RunJson(reader->GetRun(kRunA).value()), RunJson(expected));
}

TEST_F(SqliteStoreTest, FileOfANewerVersionIsRefusedWithBothVersions) {
  {
    auto store = SqliteStore::Open(path_).value();
    auto database = SqliteDatabase::Open(path_);
    ASSERT_TRUE(database->Execute("UPDATE schema_version SET version = 99").ok());
  }
  const auto store = SqliteStore::Open(path_);
  EXPECT_EQ(store.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Text(store.status()), HasSubstr("99"));
  EXPECT_THAT(Text(store.status()), HasSubstr(std::to_string(kSchemaVersion)));
}

// A version under 1 was once taken as an index.
TEST_F(SqliteStoreTest, FileWithNoVersionOfOursIsDataLossNotACrash) {
  for (const char* version : {"-3", "0", "'six'", "NULL"}) {
    std::filesystem::remove(path_);
    {
      auto database = SqliteDatabase::Open(path_);
      ASSERT_TRUE(database->Execute("CREATE TABLE schema_version (version)").ok());
      const std::string insert = std::string("INSERT INTO schema_version VALUES (") + version + ")";
      ASSERT_TRUE(database->Execute(insert).ok());
    }
    const auto store = SqliteStore::Open(path_);
    EXPECT_EQ(store.status().code(), absl::StatusCode::kDataLoss) << version;
    EXPECT_THAT(Text(store.status()), HasSubstr("move the file away")) << version;
  }
}

TEST_F(SqliteStoreTest, FileThatLacksATableOfItsVersionIsDataLoss) {
  {
    auto store = SqliteStore::Open(path_).value();
    auto database = SqliteDatabase::Open(path_);
    ASSERT_TRUE(database->Execute("DROP TABLE nodes").ok());
  }
  const auto store = SqliteStore::Open(path_);
  ASSERT_TRUE(store.ok());
  const absl::Status status = (*store)->Load().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Text(status), HasSubstr("nodes"));
}

TEST_F(SqliteStoreTest, DatabaseOfAnotherProgramIsLeftAlone) {
  {
    auto database = SqliteDatabase::Open(path_);
    ASSERT_TRUE(database->Execute("CREATE TABLE bookmarks (url TEXT)").ok());
  }
  EXPECT_EQ(SqliteStore::Open(path_).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(SqliteStoreTest, FileThatIsNoDatabaseIsDataLossAndNamed) {
  std::ofstream(path_) << std::string(10'000, 'x');
  const auto store = SqliteStore::Open(path_);
  EXPECT_EQ(store.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Text(store.status()), HasSubstr(path_));
}

TEST_F(SqliteStoreTest, FolderThatTakesNoFilesGivesAStatusThatNamesIt) {
  // Also for root, whom the mode of a folder does not stop.
  const auto store = SqliteStore::Open("/proc/self/results.db");
  EXPECT_EQ(store.status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(Text(store.status()), HasSubstr("/proc/self/results.db"));
}

TEST_F(SqliteStoreTest, DamagedRowIsDataLossNotACrash) {
  auto store = SqliteStore::Open(path_).value();
  ASSERT_TRUE(CommitRun(*store, 1).ok());
  auto database = SqliteDatabase::Open(path_);
  ASSERT_TRUE(database->Execute("UPDATE runs SET selection = '{', state = 'running'").ok());
  EXPECT_EQ(store->Load().status().code(), absl::StatusCode::kDataLoss);
}

// A full disk as the kernel shows it: writes past the limit fail. Runs in a child, since the limit
// is the process's.
TEST_F(SqliteStoreTest, FullDiskStopsTheStoreAndKeepsWhatWasAcknowledged) {
  int results[2];
  ASSERT_EQ(pipe(results), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    auto store = SqliteStore::Open(path_).value();
    const rlimit limit = {512 << 10, 512 << 10};
    setrlimit(RLIMIT_FSIZE, &limit);
    int acknowledged = 0;
    while (acknowledged < 10'000 && CommitRun(*store, acknowledged + 1).ok()) ++acknowledged;
    const bool stays_stopped = !CommitRun(*store, 20'000).ok();
    const int answer[2] = {acknowledged, stays_stopped ? 1 : 0};
    _exit(write(results[1], answer, sizeof(answer)) == sizeof(answer) ? 0 : 1);
  }
  int answer[2] = {0, 0};
  ASSERT_EQ(read(results[0], answer, sizeof(answer)), static_cast<ssize_t>(sizeof(answer)));
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_GT(answer[0], 0);
  EXPECT_LT(answer[0], 10'000);
  EXPECT_EQ(answer[1], 1);
  auto store = SqliteStore::Open(path_);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_GE((*store)->Load()->ended.size(), static_cast<size_t>(answer[0]));
  close(results[0]);
  close(results[1]);
}

// What a child with a disk that takes nothing finds; 0: all as it should be.
int ReadWithoutRoom(const std::string& path) {
  signal(SIGXFSZ, SIG_IGN);
  // As on a full disk: the index can be begun (SQLite sets its size to 3) and gets no block.
  const rlimit none = {3, 3};
  setrlimit(RLIMIT_FSIZE, &none);
  if (!absl::IsResourceExhausted(SqliteStore::Open(path).status())) return 2;
  auto opened = OpenStore(path);
  if (!opened.ok() || !absl::IsResourceExhausted(opened->full)) return 3;
  if (opened->store->Load()->ended.size() != 2) return 4;
  const auto runs = opened->reader->ListRuns();
  if (!runs.ok() || runs->size() != 2) return 5;
  if (opened->reader->ListCells(runs->front().run.id, 0, 10)->size() != 2) return 6;
  return absl::IsResourceExhausted(opened->store->Commit({}).status()) ? 0 : 7;
}

TEST_F(SqliteStoreTest, WithoutRoomForTheIndexOfItsLogItIsReadAndTakesNothing) {
  const auto in_child = [](const std::function<int()>& work) {
    const pid_t child = fork();
    if (child == 0) _exit(work());
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  };
  // Killed, so that all rows are in the log alone.
  ASSERT_EQ(in_child([&] {
              auto store = SqliteStore::Open(path_).value();
              const bool ok = CommitRun(*store, 1).ok() && CommitRun(*store, 2).ok();
              _exit(ok ? 0 : 1);
              return 1;
            }),
            0);
  ASSERT_TRUE(std::filesystem::remove(path_ + "-shm"));
  EXPECT_EQ(in_child([&] { return ReadWithoutRoom(path_); }), 0);
  const auto opened = OpenStore(path_);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_TRUE(opened->full.ok());
  EXPECT_THAT(opened->store->Load()->ended, SizeIs(2));
}

TEST_F(SqliteStoreTest, EverythingAcknowledgedSurvivesKill9AtAnyCommit) {
  int total = 0;
  for (const int kill_after : {1, 7, 40}) {
    int acks[2];
    ASSERT_EQ(pipe(acks), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto store = SqliteStore::Open(path_).value();
      for (int n = total + 1;; ++n) {
        if (!CommitRun(*store, n).ok()) _exit(1);
        if (write(acks[1], &n, sizeof(n)) != sizeof(n)) _exit(1);
      }
    }
    close(acks[1]);
    int last = 0;
    for (int i = 0; i < kill_after; ++i) {
      ASSERT_EQ(read(acks[0], &last, sizeof(last)), static_cast<ssize_t>(sizeof(last)));
    }
    kill(child, SIGKILL);
    // What was acknowledged between the last read and the kill counts too.
    while (read(acks[0], &last, sizeof(last)) == static_cast<ssize_t>(sizeof(last))) {
    }
    close(acks[0]);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));

    auto store = SqliteStore::Open(path_);
    ASSERT_TRUE(store.ok()) << store.status();
    auto reader = SqliteReader::Open(path_).value();
    const size_t found = (*store)->Load()->ended.size();
    EXPECT_GE(found, static_cast<size_t>(last));
    EXPECT_LE(found, static_cast<size_t>(last) + 1);  // one may have been durable, not yet said so
    for (int n = 1; n <= last; ++n) {
      EXPECT_THAT(reader->ListCells(RunId(n), 0, 10).value(), SizeIs(2)) << n;
    }
    total = static_cast<int>(found);
  }
}

// A VFS whose sync can be made to fail, in front of the real one.
class FailingSync {
 public:
  static void Install() {
    static sqlite3_vfs vfs = *sqlite3_vfs_find(nullptr);
    real_ = sqlite3_vfs_find(nullptr);
    vfs.zName = "failing-sync";
    vfs.xOpen = Open;
    sqlite3_vfs_register(&vfs, /*makeDflt=*/1);
  }
  static void Remove() { sqlite3_vfs_register(real_, /*makeDflt=*/1); }
  static bool fails;

 private:
  static int Open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out) {
    const int code = real_->xOpen(real_, name, file, flags, out);
    if (code == SQLITE_OK && file->pMethods != nullptr) {
      real_sync_ = file->pMethods->xSync;
      // Databases and their logs have tables of their own, with one sync in all of them.
      static std::map<const sqlite3_io_methods*, sqlite3_io_methods> tables;
      sqlite3_io_methods& methods =
          tables.try_emplace(file->pMethods, *file->pMethods).first->second;
      methods.xSync = Sync;
      file->pMethods = &methods;
    }
    return code;
  }
  static int Sync(sqlite3_file* file, int flags) {
    return fails ? SQLITE_IOERR_FSYNC : real_sync_(file, flags);
  }
  static inline sqlite3_vfs* real_ = nullptr;
  static inline int (*real_sync_)(sqlite3_file*, int) = nullptr;
};
bool FailingSync::fails = false;

TEST_F(SqliteStoreTest, StoreThatFailedToSyncRefusesAllFurtherWork) {
  FailingSync::Install();
  auto store = SqliteStore::Open(path_).value();
  ASSERT_TRUE(CommitRun(*store, 1).ok());
  FailingSync::fails = true;
  EXPECT_FALSE(CommitRun(*store, 2).ok());
  // The disk is well again; what it holds is not known any more.
  FailingSync::fails = false;
  const absl::Status refused = CommitRun(*store, 3);
  EXPECT_THAT(Text(refused), HasSubstr("takes no more results"));
  store.reset();
  FailingSync::Remove();
  EXPECT_THAT(SqliteReader::Open(path_).value()->GetRun(RunId(3)).status().code(),
              absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace assay
