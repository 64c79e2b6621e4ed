// AssayProcess: the real `assay` as a child, for tests; surely ended.
#ifndef ASSAY_TESTS_INTEGRATION_CLI_ASSAY_PROCESS_H_
#define ASSAY_TESTS_INTEGRATION_CLI_ASSAY_PROCESS_H_

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace assay::cli {

struct Finished {
  int code = -1;    // exit code; 128 + N where signal N ended it
  std::string out;  // with a terminal: all that came to it
  std::string err;
};

struct ProcessOptions {
  std::string program;                   // empty: AssayProgram()
  std::vector<std::string> environment;  // NAME=VALUE, over the test's own
  std::string input;                     // standard input
  int out_fd = -1;                       // standard output; -1: a pipe that Wait() reads
  bool terminal = false;  // standard input, output and error are a terminal of 100 x 30
};

class AssayProcess {
 public:
  explicit AssayProcess(const std::vector<std::string>& words, ProcessOptions options = {});
  ~AssayProcess();
  AssayProcess(const AssayProcess&) = delete;
  AssayProcess& operator=(const AssayProcess&) = delete;

  void Signal(int number) const;
  // Reads until standard output or error contains `text`. False after `limit` or at the end.
  bool WaitForText(const std::string& text, std::chrono::seconds limit = std::chrono::seconds(20));
  Finished Wait(std::chrono::seconds limit = std::chrono::seconds(40));
  pid_t pid() const { return pid_; }
  const std::string& out() const { return result_.out; }
  const std::string& err() const { return result_.err; }

 private:
  // False when all ends are closed.
  bool ReadSome(std::chrono::milliseconds limit);

  pid_t pid_ = -1;
  int out_ = -1;
  int err_ = -1;
  Finished result_;
};

// The programs of this build: tests/ lies beside bin/.
std::string AssayProgram();
std::string FakeCoordinatorProgram();

// Runs it to its end.
Finished RunAssay(const std::vector<std::string>& words, ProcessOptions options = {});

}  // namespace assay::cli

#endif  // ASSAY_TESTS_INTEGRATION_CLI_ASSAY_PROCESS_H_
