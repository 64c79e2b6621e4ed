// A stand-in for assay-coordinator: holds the lock of the state directory, serves a FakeControl,
// and leaves on SIGTERM. FAKE_COORDINATOR=fail says a sentence and exits with 5;
// FAKE_COORDINATOR=hold keeps its runs unfinished.
#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "common/net/state_dir.h"
#include "common/status/status.h"
#include "fake_control.h"

int main(int argc, char** argv) {
  const char* mode = std::getenv("FAKE_COORDINATOR");
  const std::string how = mode == nullptr ? "" : mode;
  std::string state_dir;
  bool local = false;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--state" && i + 1 < argc) state_dir = argv[++i];
    if (std::string(argv[i]) == "--local") local = true;
  }
  if (how == "fail" || !local) {
    fmt::print(stderr, "the store of {} cannot be opened: bad header\n", state_dir);
    return 5;
  }
  // One line a start: a test counts them.
  fmt::print(stderr, "started pid {}\n", getpid());
  const auto lock = assay::StateLock::Acquire(state_dir);
  if (!lock.ok()) {
    fmt::print(stderr, "{}\n", assay::Message(lock.status()));
    return 2;
  }
  sigset_t end;
  sigemptyset(&end);
  sigaddset(&end, SIGTERM);
  sigprocmask(SIG_BLOCK, &end, nullptr);
  assay::cli::FakeScript script;
  script.hold = how == "hold";
  assay::cli::FakeServer server(state_dir, script);
  if (!server.listening()) return 6;
  // Bounded, so that a test that dies leaves nothing behind for long.
  alarm(120);
  int number = 0;
  sigwait(&end, &number);
  return 0;
}
