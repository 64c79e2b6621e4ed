// Diagnostics: what is wrong with a file, one line each, for people and editors:
//   FILE:LINE:COL: PATH: what is wrong; remedy
// Thread rule: one thread.
#ifndef ASSAY_COMMON_YAML_DIAGNOSTICS_H_
#define ASSAY_COMMON_YAML_DIAGNOSTICS_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace assay {

// "axes" and "model" as "axes.model"; an empty key is shown as ''.
std::string JoinPath(const std::string& path, std::string_view key);

// From 1; columns count bytes. Line 0: the file as a whole.
struct Position {
  int line = 0;
  int column = 0;
  friend bool operator==(const Position&, const Position&) = default;
};

class Diagnostics {
 public:
  static constexpr size_t kMost = 20;

  explicit Diagnostics(std::string_view file_name);

  // `path` such as "axes.batch[2].from"; empty for the file. Bytes that do not print are shown as
  // '?', long texts cut, so that a diagnostic is one short line whatever the file holds.
  void Add(Position at, std::string_view path, std::string_view what);

  bool empty() const { return items_.empty(); }
  size_t size() const { return items_.size(); }
  bool full() const { return items_.size() >= kMost; }

  // In the order of the file, equal ones once, at most kMost.
  std::vector<std::string> Lines() const;
  // Ok where there are none, else InvalidArgument with Lines(), one a line.
  absl::Status ToStatus() const;

 private:
  struct Item {
    Position at;
    std::string line;
  };
  std::string file_name_;
  std::vector<Item> items_;
};

// `text` fit for one line of a message: at most `most` bytes, not cut inside a character, control
// characters and broken UTF-8 as '?'.
std::string Printable(std::string_view text, size_t most);

// The word of `words` within a small edit distance (Damerau, ASCII case ignored) of `word`, or
// empty. Of equal distances the first.
std::string NearestWord(std::string_view word, std::span<const std::string_view> words);

// "; did you mean 'x'?" where one is near, else "; known: a, b, c", else empty.
std::string Suggestion(std::string_view word, std::span<const std::string_view> words);

}  // namespace assay

#endif  // ASSAY_COMMON_YAML_DIAGNOSTICS_H_
