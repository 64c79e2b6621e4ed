// Output: standard output and standard error of one command.
//
// Writes at once and in order; a reader that went away (EPIPE) is quiet, any other failure of
// standard output is remembered and becomes the command's error. Thread rule: one owner.
#ifndef ASSAY_CLI_OUTPUT_H_
#define ASSAY_CLI_OUTPUT_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace assay::cli {

class Output {
 public:
  // Does not own the descriptors. `color`: whether each may get colour (see WantsColor).
  Output(int out_fd, int err_fd, bool out_color, bool err_color)
      : out_fd_(out_fd), err_fd_(err_fd), out_color_(out_color), err_color_(err_color) {}

  void Out(std::string_view text);
  void Err(std::string_view text);
  // "assay: <sentence>" with a line break, scrubbed (several lines stay several).
  void Error(std::string_view sentence);
  void Warning(std::string_view sentence);

  // OK while all that was written to standard output arrived or nobody reads it any more.
  const absl::Status& out_status() const { return out_status_; }
  bool out_color() const { return out_color_; }
  bool err_color() const { return err_color_; }
  int out_fd() const { return out_fd_; }
  int err_fd() const { return err_fd_; }

 private:
  int out_fd_;
  int err_fd_;
  bool out_color_;
  bool err_color_;
  bool out_closed_ = false;
  absl::Status out_status_;
};

// True for a terminal that understands colour: not with --no-color, NO_COLOR (not empty) or
// TERM=dumb.
bool WantsColor(int fd, bool no_color);

// A terminal that understands cursor movements: not with TERM=dumb or without TERM.
bool IsTerminal(int fd);

struct TerminalSize {
  int columns = 80;
  int rows = 24;
};
// Of the terminal behind `fd`; 80 x 24 where it has none.
TerminalSize SizeOf(int fd);

enum class Color { kNone, kRed, kYellow, kGreen, kBold, kFaint };
// `text` between the sequences of `color`, or as it is where `on` is false.
std::string Colored(std::string_view text, Color color, bool on);

}  // namespace assay::cli

#endif  // ASSAY_CLI_OUTPUT_H_
