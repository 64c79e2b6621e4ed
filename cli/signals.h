// Signals: Ctrl-C as something a command can wait for, and the cursor given back however the
// program ends.
//
// The first SIGINT makes `interrupt_fd` readable; the second restores the cursor, writes the note
// and leaves with 130 from the handler, whatever the program is doing. A SIGINT that a shell
// ignores for its background jobs is taken too: whoever sends it by `kill -INT` means it. SIGTERM
// is a first Ctrl-C where a command says so, and any number of them is one: timeout(1) and batch
// systems send it more than once. Else it ends the program, as SIGHUP and SIGQUIT do; all three
// restore the cursor first. A stop (Ctrl-Z) does so too, and takes the block off the screen, since
// what a shell writes below it would keep it there.
//
// One at a time in a process; made and destroyed on the main thread.
#ifndef ASSAY_CLI_SIGNALS_H_
#define ASSAY_CLI_SIGNALS_H_

#include <cstddef>
#include <string>

namespace assay::cli {

enum class OnSigterm {
  kEnd,        // as it does by default
  kInterrupt,  // as a first Ctrl-C
};

class Signals {
 public:
  // `terminal_fd` is where the cursor is hidden; -1 where there is no terminal.
  explicit Signals(int terminal_fd);
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int interrupt_fd() const;
  // SIGINT or SIGTERM, whichever made `interrupt_fd` readable; 0 before.
  int interrupted_by() const;
  // kEnd until it is called. A SIGTERM that the caller of this program ignores stays ignored.
  void SetSigterm(OnSigterm meaning);
  // What a second Ctrl-C writes to standard error, or a hang-up after the first; cut at 500 bytes.
  void SetLeaveNote(const std::string& note);
  // What a hang-up writes there before any Ctrl-C: the terminal is gone, a log may be there.
  void SetHangUpNote(const std::string& note);

  void HideCursor();
  void ShowCursor();

  // How many lines of ours stand right above the cursor; a stop takes them away.
  void SetBlockLines(size_t lines);
  // True once after each stop that took the block away.
  bool TakeBlockGone();
};

// Writes to a pipe or socket whose reader is gone fail instead of ending the program.
void IgnoreSigpipe();

}  // namespace assay::cli

#endif  // ASSAY_CLI_SIGNALS_H_
