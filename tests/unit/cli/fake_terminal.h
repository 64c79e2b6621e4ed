// FakeTerminal: what a VT100 shows after some bytes; enough of it for a block that is redrawn.
#ifndef ASSAY_TESTS_UNIT_CLI_FAKE_TERMINAL_H_
#define ASSAY_TESTS_UNIT_CLI_FAKE_TERMINAL_H_

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace assay::cli {

// Counts a byte as a column: tests that use it write ASCII. A line longer than the terminal wraps,
// as it does on a real one, which is what moves a redrawn block out of place.
class FakeTerminal {
 public:
  explicit FakeTerminal(size_t columns) : columns_(columns) {}

  void Write(std::string_view text) {
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\x1B') {
        i = Escape(text, i);
      } else if (text[i] == '\n') {
        ++row_;
        column_ = 0;
      } else if (text[i] == '\r') {
        column_ = 0;
      } else {
        Put(text[i]);
      }
    }
  }

  // Without the empty lines at the end.
  std::vector<std::string> Screen() const {
    std::vector<std::string> lines = lines_;
    for (std::string& line : lines) line.erase(line.find_last_not_of(' ') + 1);
    while (!lines.empty() && lines.back().empty()) lines.pop_back();
    return lines;
  }
  bool Shows(std::string_view text) const {
    const auto lines = Screen();
    return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
      return line.find(text) != std::string::npos;
    });
  }

 private:
  void Put(char c) {
    if (column_ == columns_) {
      ++row_;
      column_ = 0;
    }
    if (lines_.size() <= row_) lines_.resize(row_ + 1);
    if (lines_[row_].size() <= column_) lines_[row_].resize(column_ + 1, ' ');
    lines_[row_][column_++] = c;
  }

  size_t Escape(std::string_view text, size_t i) {
    size_t count = 0;
    for (i += 2; i < text.size() && text[i] >= '0' && text[i] <= '?'; ++i) {
      if (text[i] >= '0' && text[i] <= '9') count = count * 10 + static_cast<size_t>(text[i] - '0');
    }
    if (i < text.size() && text[i] == 'A') row_ -= std::min(row_, std::max<size_t>(count, 1));
    if (i < text.size() && text[i] == 'J') {
      if (lines_.size() > row_) {
        lines_[row_].resize(std::min(lines_[row_].size(), column_));
        lines_.resize(row_ + 1);
      }
    }
    return i;
  }

  size_t columns_;
  size_t row_ = 0;
  size_t column_ = 0;
  std::vector<std::string> lines_;
};

}  // namespace assay::cli

#endif  // ASSAY_TESTS_UNIT_CLI_FAKE_TERMINAL_H_
