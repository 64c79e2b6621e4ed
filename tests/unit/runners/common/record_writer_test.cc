#include "runners/common/record_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <fstream>
#include <sstream>
#include <thread>

#include "common/runner_protocol/records.h"
#include "runners/common/bad_input.h"
#include "runners/common/lifeline.h"
#include "runners/common/process_start.h"

namespace assay {
namespace {

class Records : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(pipe2(pipe_, O_CLOEXEC), 0); }
  void TearDown() override {
    if (pipe_[0] >= 0) close(pipe_[0]);
  }
  // Ends the writer and returns what it wrote, a record a line.
  std::vector<nlohmann::json> Lines(std::unique_ptr<RecordWriter> writer) {
    writer.reset();
    std::string text;
    char buffer[65536];
    for (ssize_t n; (n = read(pipe_[0], buffer, sizeof buffer)) > 0;) text.append(buffer, n);
    std::vector<nlohmann::json> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
      lines.push_back(nlohmann::json::parse(line));
    }
    return lines;
  }
  std::unique_ptr<RecordWriter> Writer() {
    return RecordWriter::Open("fd:" + std::to_string(pipe_[1]));
  }
  int pipe_[2] = {-1, -1};
};

TEST_F(Records, AreTheProtocols) {
  auto writer = Writer();
  writer->Hello("assay-x", "1.2.3", "GPU-1");
  writer->Joined();
  writer->Phase("measure");
  writer->Progress(3, 100.5, 2);
  writer->Result({"fail", "crash", "it broke", {{"steps", 3}}});
  const auto lines = Lines(std::move(writer));
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[0]["record"], "hello");
  EXPECT_EQ(lines[0]["protocol"], 1);
  EXPECT_EQ(lines[1], (nlohmann::json{{"record", "joined"}}));
  EXPECT_EQ(lines[2]["phase"], "measure");
  EXPECT_EQ(lines[3]["step"], 3);
  EXPECT_EQ(lines[4]["outcome"], "fail");
  EXPECT_EQ(lines[4]["fields"]["steps"], 3);
}

// Case 53.
TEST_F(Records, NonFiniteNumbersAreNullAndBrokenBytesAreReplaced) {
  auto writer = Writer();
  writer->Result(
      {"ok", "", "bad \xff byte", {{"throughput", std::nan("")}, {"cv_ratio", INFINITY}}});
  const auto lines = Lines(std::move(writer));
  EXPECT_TRUE(lines[0]["fields"]["throughput"].is_null());
  EXPECT_TRUE(lines[0]["fields"]["cv_ratio"].is_null());
  EXPECT_EQ(lines[0]["message"], "bad \xef\xbf\xbd byte");
}

TEST_F(Records, NothingFollowsTheResult) {
  auto writer = Writer();
  writer->Result({});
  EXPECT_TRUE(writer->result_written());
  writer->Result({"fail", "x", "", {}});
  writer->Joined();
  EXPECT_EQ(Lines(std::move(writer)).size(), 1u);
}

// To a file: the line is longer than a pipe holds.
TEST_F(Records, AHugeMessageStaysUnderTheLineLimit) {
  close(pipe_[1]);
  const std::string path = testing::TempDir() + "assay_records_" + std::to_string(getpid());
  auto writer = RecordWriter::Open(path);
  writer->Result({"fail", "runner_error", std::string(5 << 20, '\x01'), {}});
  writer.reset();
  std::ifstream file(path);
  std::string line;
  ASSERT_TRUE(std::getline(file, line));
  unlink(path.c_str());
  EXPECT_LT(line.size(), static_cast<size_t>(record::kMaxLineBytes));
  EXPECT_TRUE(nlohmann::json::accept(line));
}

TEST_F(Records, LinesOfTwoThreadsDoNotMix) {
  std::unique_ptr<RecordWriter> writer = Writer();
  std::thread one([&] {
    for (int i = 0; i < 200; ++i) writer->Phase(std::string(500, 'a'));
  });
  std::thread two([&] {
    for (int i = 0; i < 100; ++i) writer->Phase(std::string(100, 'b'));
  });
  // The pipe holds 64 KiB: read while they write.
  std::string text;
  char buffer[4096];
  while (std::count(text.begin(), text.end(), '\n') < 300) {
    const ssize_t n = read(pipe_[0], buffer, sizeof buffer);
    ASSERT_GT(n, 0);
    text.append(buffer, static_cast<size_t>(n));
  }
  one.join();
  two.join();
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    EXPECT_TRUE(nlohmann::json::accept(line)) << line;
  }
}

TEST_F(Records, AReaderThatLeftIsNoCrash) {
  auto writer = Writer();
  close(std::exchange(pipe_[0], -1));
  writer->Joined();
  EXPECT_TRUE(writer->broken());
  writer->Result({});
}

TEST(RecordWriter, ADescriptorThatIsNotOpenOrAFolderIsBadInput) {
  EXPECT_THROW(RecordWriter::Open("fd:987"), BadInput);
  EXPECT_THROW(RecordWriter::Open("/no/such/folder/r"), BadInput);
}

TEST(ProgressThrottle, LetsFourASecondThrough) {
  ProgressThrottle throttle;
  const std::chrono::steady_clock::time_point start{};
  int admitted = 0;
  for (int ms = 0; ms < 1000; ++ms) {
    admitted += throttle.Admit(start + std::chrono::milliseconds(ms));
  }
  EXPECT_EQ(admitted, 4);
}

TEST(RunnerExitCode, AgreesWithTheOutcome) {
  EXPECT_EQ(RunnerExitCode("ok"), 0);
  EXPECT_EQ(RunnerExitCode("mem_limit"), 3);
  EXPECT_EQ(RunnerExitCode("unsupported"), 4);
  EXPECT_EQ(RunnerExitCode("fail"), 1);
  EXPECT_EQ(RunnerExitCode("nonsense"), 1);
}

TEST(ProcessStart, IsKnownOnlyBetweenTwoSaneTimes) {
  EXPECT_EQ(ProcessStartSeconds(1'000'000'000, 1'500'000'000), 0.5);
  EXPECT_FALSE(ProcessStartSeconds(0, 1'500'000'000));
  EXPECT_FALSE(ProcessStartSeconds(2'000'000'000, 1'500'000'000));
  EXPECT_FALSE(ProcessStartSeconds(1, int64_t{90'000} * 1'000'000'000));
}

// What a child with this lifeline does: its exit code.
int ExitOf(void (*agent)(int write_end), double seconds) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  const pid_t pid = fork();
  if (pid == 0) {
    close(ends[1]);
    Lifeline lifeline(ends[0], seconds);
    for (;;) pause();
  }
  close(ends[0]);
  agent(ends[1]);
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Lifeline, EndOfFileEndsTheProcess) {
  EXPECT_EQ(ExitOf([](int fd) { close(fd); }, 600), 143);
}

TEST(Lifeline, SilenceEndsTheProcess) {
  EXPECT_EQ(ExitOf([](int) {}, 0.05), 143);
}

TEST(Lifeline, StopsWithItsOwner) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  {
    Lifeline lifeline(ends[0], 600);
  }
  close(ends[1]);
}

// Found by kill schedules: a runner whose data loader outlived it did not exit after its result.
TEST(Lifeline, StopsWithItsOwnerThoughAForkedChildHoldsEveryDescriptor) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  pid_t child = 0;
  const pid_t owner = fork();
  if (owner == 0) {
    {
      Lifeline lifeline(ends[0], 600);
      child = fork();
      if (child == 0) {
        alarm(20);
        for (;;) pause();
      }
    }
    kill(child, SIGKILL);
    _exit(0);
  }
  bool ended = false;
  for (int i = 0; i < 1000 && !ended; ++i) {
    ended = waitpid(owner, nullptr, WNOHANG) == owner;
    if (!ended) usleep(10'000);
  }
  EXPECT_TRUE(ended);
  if (!ended) {
    kill(owner, SIGKILL);
    waitpid(owner, nullptr, 0);
  }
  close(ends[1]);
}

TEST(Lifeline, ADescriptorThatIsNotOpenIsBadInput) { EXPECT_THROW(Lifeline(987, 1), BadInput); }

}  // namespace
}  // namespace assay
