#include "cli/output.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "cli/printable.h"
#include "common/status/status.h"

namespace assay::cli {
namespace {

// 0, or the errno of the failed write.
int WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {
      // Somebody beside us made the terminal or pipe non-blocking.
      pollfd ready{fd, POLLOUT, 0};
      poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

}  // namespace

void Output::Out(std::string_view text) {
  if (out_closed_ || !out_status_.ok()) return;
  const int error = WriteAll(out_fd_, text);
  if (error == EPIPE) {
    out_closed_ = true;
  } else if (error != 0) {
    out_status_ = ErrnoStatus(error, "cannot write to standard output");
  }
}

void Output::Err(std::string_view text) {
  // There is nowhere left to say that standard error is gone.
  (void)WriteAll(err_fd_, text);
}

void Output::Error(std::string_view sentence) {
  std::string text = PrintableLines(sentence);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  Err(fmt::format("{}{}\n", Colored("assay: ", Color::kRed, err_color_), text));
}

void Output::Warning(std::string_view sentence) {
  Err(fmt::format("{}{}\n", Colored("warning: ", Color::kYellow, err_color_), Printable(sentence)));
}

bool WantsColor(int fd, bool no_color) {
  if (no_color || isatty(fd) == 0) return false;
  const char* off = std::getenv("NO_COLOR");
  if (off != nullptr && *off != '\0') return false;
  const char* term = std::getenv("TERM");
  return term != nullptr && *term != '\0' && std::string_view(term) != "dumb";
}

TerminalSize SizeOf(int fd) {
  winsize size{};
  TerminalSize out;
  if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0) {
    out.columns = size.ws_col;
    out.rows = size.ws_row;
  }
  return out;
}

bool IsTerminal(int fd) {
  const char* term = getenv("TERM");
  return term != nullptr && *term != '\0' && std::string_view(term) != "dumb" && isatty(fd) != 0;
}

std::string Colored(std::string_view text, Color color, bool on) {
  if (!on || color == Color::kNone) return std::string(text);
  const char* code = "0";
  switch (color) {
    case Color::kRed:
      code = "31";
      break;
    case Color::kYellow:
      code = "33";
      break;
    case Color::kGreen:
      code = "32";
      break;
    case Color::kBold:
      code = "1";
      break;
    case Color::kFaint:
      code = "2";
      break;
    case Color::kNone:
      break;
  }
  return fmt::format("\x1B[{}m{}\x1B[0m", code, text);
}

}  // namespace assay::cli
