#include "cli/signals.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "cli/exit_codes.h"

namespace assay::cli {
namespace {

constexpr char kHide[] = "\x1B[?25l";
constexpr char kShow[] = "\x1B[?25h";
constexpr int kEnding[] = {SIGTERM, SIGHUP, SIGQUIT};

// A handler reaches nothing but statics. All are lock-free.
std::atomic<int> g_interrupts{0};
std::atomic<int> g_pipe_read{-1};
std::atomic<int> g_pipe_write{-1};
std::atomic<int> g_terminal{-1};
std::atomic<bool> g_hidden{false};
char g_note[512];
std::atomic<size_t> g_note_size{0};
std::atomic<size_t> g_block_lines{0};
std::atomic<bool> g_block_gone{false};

void WriteRaw(int fd, const char* text, size_t size) {
  if (fd >= 0) (void)!write(fd, text, size);
}

void RestoreCursor() {
  if (g_hidden.load()) WriteRaw(g_terminal.load(), kShow, sizeof kShow - 1);
}

// "\r, up, clear to the end", without anything that allocates.
void EraseBlock() {
  const size_t lines = g_block_lines.exchange(0);
  if (lines == 0 || g_terminal.load() < 0) return;
  g_block_gone = true;
  char text[32];
  size_t size = 0;
  for (const char c : {'\r', '\x1B', '['}) text[size++] = c;
  size_t scale = 1;
  while (lines / scale >= 10) scale *= 10;
  for (; scale > 0; scale /= 10) text[size++] = static_cast<char>('0' + lines / scale % 10);
  for (const char c : {'A', '\x1B', '[', 'J'}) text[size++] = c;
  WriteRaw(g_terminal.load(), text, size);
}

void OnInterruptSignal(int) {
  const int saved = errno;
  if (g_interrupts.fetch_add(1) > 0) {
    RestoreCursor();
    WriteRaw(STDERR_FILENO, g_note, g_note_size.load());
    _exit(kExitCancelled);
  }
  WriteRaw(g_pipe_write.load(), "x", 1);
  errno = saved;
}

void OnEnd(int number) {
  RestoreCursor();
  // SA_RESETHAND has put the default back; it acts when this handler returns.
  raise(number);
}

void OnStop(int) {
  const int saved = errno;
  EraseBlock();
  RestoreCursor();
  // SA_NODEFER and SA_RESETHAND: stops here, and goes on here after `fg`.
  raise(SIGTSTP);
  if (g_hidden.load()) WriteRaw(g_terminal.load(), kHide, sizeof kHide - 1);
  struct sigaction action = {};
  action.sa_handler = OnStop;
  action.sa_flags = SA_NODEFER | SA_RESETHAND | SA_RESTART;
  sigaction(SIGTSTP, &action, nullptr);
  errno = saved;
}

void Install(int number, void (*handler)(int), int flags) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigemptyset(&action.sa_mask);
  sigaction(number, &action, nullptr);
}

bool IsIgnored(int number) {
  struct sigaction action = {};
  sigaction(number, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

}  // namespace

Signals::Signals(int terminal_fd) {
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0) {
    g_pipe_read = ends[0];
    g_pipe_write = ends[1];
  }
  g_interrupts = 0;
  g_terminal = terminal_fd;
  g_note_size = 0;
  g_block_lines = 0;
  g_block_gone = false;
  Install(SIGINT, OnInterruptSignal, SA_RESTART);
  for (const int number : kEnding) {
    // nohup's SIGHUP stays ignored.
    if (!IsIgnored(number)) Install(number, OnEnd, SA_RESETHAND);
  }
  if (terminal_fd >= 0 && !IsIgnored(SIGTSTP)) {
    Install(SIGTSTP, OnStop, SA_NODEFER | SA_RESETHAND | SA_RESTART);
  }
}

Signals::~Signals() {
  ShowCursor();
  Install(SIGINT, SIG_DFL, 0);
  for (const int number : kEnding) {
    if (!IsIgnored(number)) Install(number, SIG_DFL, 0);
  }
  if (g_terminal.load() >= 0 && !IsIgnored(SIGTSTP)) Install(SIGTSTP, SIG_DFL, 0);
  g_terminal = -1;
  for (std::atomic<int>* end : {&g_pipe_read, &g_pipe_write}) {
    if (const int fd = end->exchange(-1); fd >= 0) close(fd);
  }
}

int Signals::interrupt_fd() const { return g_pipe_read.load(); }

void Signals::SetLeaveNote(const std::string& note) {
  g_note_size = 0;  // a handler in between writes nothing rather than half of two notes
  const size_t size = std::min(note.size(), sizeof g_note - 12);
  std::memcpy(g_note, note.data(), size);
  g_note_size = size;
}

void Signals::HideCursor() {
  if (g_terminal.load() < 0 || g_hidden.exchange(true)) return;
  WriteRaw(g_terminal.load(), kHide, sizeof kHide - 1);
}

void Signals::ShowCursor() {
  if (!g_hidden.exchange(false)) return;
  WriteRaw(g_terminal.load(), kShow, sizeof kShow - 1);
}

void Signals::SetBlockLines(size_t lines) { g_block_lines = lines; }

bool Signals::TakeBlockGone() { return g_block_gone.exchange(false); }

void IgnoreSigpipe() { Install(SIGPIPE, SIG_IGN, 0); }

}  // namespace assay::cli
