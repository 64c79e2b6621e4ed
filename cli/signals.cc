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
std::atomic<int> g_interrupted_by{0};
std::atomic<bool> g_sigterm_interrupts{false};
std::atomic<int> g_pipe_read{-1};
std::atomic<int> g_pipe_write{-1};
std::atomic<int> g_terminal{-1};
std::atomic<bool> g_hidden{false};
struct Note {
  char text[512];
  std::atomic<size_t> size{0};
};
Note g_leave_note;
Note g_hang_up_note;
std::atomic<size_t> g_block_lines{0};
std::atomic<bool> g_block_gone{false};

void WriteRaw(int fd, const char* text, size_t size) {
  if (fd >= 0) (void)!write(fd, text, size);
}

void WriteNote(const Note& note) { WriteRaw(STDERR_FILENO, note.text, note.size.load()); }

void SetNote(Note& note, const std::string& text) {
  note.size = 0;  // a handler in between writes nothing rather than half of two notes
  const size_t size = std::min(text.size(), sizeof note.text - 12);
  std::memcpy(note.text, text.data(), size);
  note.size = size;
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

// The first of them.
void Interrupt(int number) {
  g_interrupted_by = number;
  WriteRaw(g_pipe_write.load(), "x", 1);
}

void OnInterruptSignal(int number) {
  const int saved = errno;
  if (g_interrupts.fetch_add(1) > 0) {
    RestoreCursor();
    WriteNote(g_leave_note);
    _exit(128 + g_interrupted_by.load());
  }
  Interrupt(number);
  errno = saved;
}

void OnEnd(int number) {
  RestoreCursor();
  if (number == SIGHUP) WriteNote(g_interrupts.load() > 0 ? g_leave_note : g_hang_up_note);
  // The default acts when this handler returns.
  signal(number, SIG_DFL);
  raise(number);
}

void OnSigtermSignal(int number) {
  if (!g_sigterm_interrupts.load()) return OnEnd(number);
  const int saved = errno;
  int none = 0;
  if (g_interrupts.compare_exchange_strong(none, 1)) Interrupt(number);
  errno = saved;
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
  g_interrupted_by = 0;
  g_sigterm_interrupts = false;
  g_terminal = terminal_fd;
  g_leave_note.size = 0;
  g_hang_up_note.size = 0;
  g_block_lines = 0;
  g_block_gone = false;
  Install(SIGINT, OnInterruptSignal, SA_RESTART);
  for (const int number : kEnding) {
    // nohup's SIGHUP stays ignored.
    if (IsIgnored(number)) continue;
    Install(number, number == SIGTERM ? OnSigtermSignal : OnEnd, SA_RESTART);
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

int Signals::interrupted_by() const { return g_interrupted_by.load(); }

void Signals::SetSigterm(OnSigterm meaning) {
  g_sigterm_interrupts = meaning == OnSigterm::kInterrupt;
}

void Signals::SetLeaveNote(const std::string& note) { SetNote(g_leave_note, note); }

void Signals::SetHangUpNote(const std::string& note) { SetNote(g_hang_up_note, note); }

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
