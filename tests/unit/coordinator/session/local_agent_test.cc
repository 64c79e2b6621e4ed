#include "coordinator/local_agent.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <string>

namespace assay {
namespace {

using std::chrono::milliseconds;

LocalAgentOptions Shell(const std::string& script) {
  LocalAgentOptions options;
  options.program = "/bin/sh";
  options.arguments = {"-c", script};
  options.backoff_first = milliseconds(1);
  options.backoff_cap = milliseconds(5);
  options.stop_grace = milliseconds(200);
  return options;
}

// Polls a fact about another process, for at most ten seconds.
bool Eventually(const std::function<bool()>& fact) {
  for (int i = 0; i < 10'000; ++i) {
    if (fact()) return true;
    usleep(1'000);
  }
  return false;
}

TEST(LocalAgentTest, ProgramThatEndsIsStartedAgain) {
  LocalAgent agent(Shell("exit 3"));
  ASSERT_TRUE(agent.Start().ok());
  EXPECT_TRUE(Eventually([&] { return agent.starts() >= 3; }));
}

TEST(LocalAgentTest, MissingProgramIsTriedAgainAndStopped) {
  LocalAgentOptions options = Shell("");
  options.program = "/no/such/program";
  LocalAgent agent(options);
  ASSERT_TRUE(agent.Start().ok());
  EXPECT_TRUE(Eventually([&] { return agent.starts() >= 2; }));
}

TEST(LocalAgentTest, StopWaitsUntilTheChildIsGone) {
  LocalAgent agent(Shell("exec sleep 1000"));
  ASSERT_TRUE(agent.Start().ok());
  ASSERT_TRUE(Eventually([&] { return agent.pid() > 0; }));
  const pid_t pid = agent.pid();
  agent.Stop();
  EXPECT_NE(kill(pid, 0), 0);
}

// Case 46: a child that ignores SIGTERM.
TEST(LocalAgentTest, ChildThatIgnoresTermIsKilledAfterTheGrace) {
  LocalAgent agent(Shell("trap '' TERM; exec sleep 1000"));
  ASSERT_TRUE(agent.Start().ok());
  ASSERT_TRUE(Eventually([&] { return agent.pid() > 0; }));
  const pid_t pid = agent.pid();
  agent.Stop();
  EXPECT_NE(kill(pid, 0), 0);
}

TEST(LocalAgentTest, ChildDoesNotOutliveAParentThatWasKilled) {
  int fds[2];
  ASSERT_EQ(pipe(fds), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    LocalAgent agent(Shell("exec sleep 1000"));
    if (!agent.Start().ok()) _exit(1);
    Eventually([&] { return agent.pid() > 0; });
    const pid_t child = agent.pid();
    if (write(fds[1], &child, sizeof(child)) != sizeof(child)) _exit(1);
    pause();
    _exit(0);
  }
  pid_t child = 0;
  ASSERT_EQ(read(fds[0], &child, sizeof(child)), static_cast<ssize_t>(sizeof(child)));
  ASSERT_GT(child, 0);
  kill(parent, SIGKILL);
  waitpid(parent, nullptr, 0);
  // An orphan that nobody reaps yet may stay as a zombie: state Z, or gone.
  EXPECT_TRUE(Eventually([&] {
    if (kill(child, 0) != 0) return true;
    const std::string path = "/proc/" + std::to_string(child) + "/stat";
    FILE* file = fopen(path.c_str(), "r");
    if (file == nullptr) return true;
    char state = '?';
    const int n = fscanf(file, "%*d (%*[^)]) %c", &state);
    fclose(file);
    return n == 1 && state == 'Z';
  }));
  close(fds[0]);
  close(fds[1]);
}

}  // namespace
}  // namespace assay
