#include "cli/output.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <string>

namespace assay::cli {
namespace {

using ::testing::HasSubstr;

class Pipe {
 public:
  Pipe() { EXPECT_EQ(pipe2(fds_, O_CLOEXEC), 0); }
  ~Pipe() {
    CloseReader();
    close(fds_[1]);
  }
  void CloseReader() {
    if (fds_[0] >= 0) close(fds_[0]);
    fds_[0] = -1;
  }
  int writer() const { return fds_[1]; }
  std::string Read() {
    char buffer[4096];
    const ssize_t got = read(fds_[0], buffer, sizeof buffer);
    return std::string(buffer, got > 0 ? static_cast<size_t>(got) : 0);
  }

 private:
  int fds_[2] = {-1, -1};
};

TEST(Output, AReaderThatWentAwayIsQuiet) {
  signal(SIGPIPE, SIG_IGN);
  Pipe out, err;
  Output output(out.writer(), err.writer(), false, false);
  out.CloseReader();
  output.Out("one\n");
  output.Out("two\n");
  EXPECT_TRUE(output.out_status().ok());
}

TEST(Output, AFullDiskIsAnError) {
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  if (full < 0) GTEST_SKIP() << "no /dev/full here";
  Pipe err;
  Output output(full, err.writer(), false, false);
  output.Out("text\n");
  EXPECT_EQ(output.out_status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(output.out_status().ToString(), HasSubstr("standard output"));
  close(full);
}

TEST(Output, ErrorsAreNamedAndScrubbed) {
  Pipe out, err;
  Output output(out.writer(), err.writer(), false, false);
  output.Error("line one\nline \x1B[31mtwo\n");
  EXPECT_EQ(err.Read(), "assay: line one\nline two\n");
}

TEST(Output, NoColourWithoutATerminal) {
  Pipe out;
  EXPECT_FALSE(WantsColor(out.writer(), false));
}

}  // namespace
}  // namespace assay::cli
