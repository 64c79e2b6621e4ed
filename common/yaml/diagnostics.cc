#include "common/yaml/diagnostics.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/yaml/utf8_sequence.h"

namespace assay {
namespace {

constexpr size_t kMostLineBytes = 400;
constexpr size_t kMostPathBytes = 120;
constexpr size_t kMostWordBytes = 64;

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Optimal string alignment: a swap of two neighbours counts one.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t cost = Lower(a[i - 1]) == Lower(b[j - 1]) ? 0 : 1;
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + cost});
      if (i > 1 && j > 1 && Lower(a[i - 1]) == Lower(b[j - 2]) &&
          Lower(a[i - 2]) == Lower(b[j - 1])) {
        now[j] = std::min(now[j], before[j - 2] + 1);
      }
    }
    before.swap(last);
    last.swap(now);
  }
  return last[b.size()];
}

}  // namespace

std::string JoinPath(const std::string& path, std::string_view key) {
  if (key.empty()) key = "''";
  return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
}

Diagnostics::Diagnostics(std::string_view file_name) : file_name_(Printable(file_name, 200)) {}

void Diagnostics::Add(Position at, std::string_view path, std::string_view what) {
  if (full()) return;
  const std::string where = path.empty() ? "(file)" : Printable(path, kMostPathBytes);
  std::string line = fmt::format("{}:{}:{}: {}: {}", file_name_, std::max(at.line, 1),
                                 std::max(at.column, 1), where, Printable(what, kMostLineBytes));
  items_.push_back({at, std::move(line)});
}

std::vector<std::string> Diagnostics::Lines() const {
  std::vector<Item> sorted = items_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Item& a, const Item& b) {
    return a.at.line != b.at.line ? a.at.line < b.at.line : a.at.column < b.at.column;
  });
  std::vector<std::string> lines;
  for (Item& item : sorted) {
    if (std::find(lines.begin(), lines.end(), item.line) == lines.end()) {
      lines.push_back(std::move(item.line));
    }
  }
  return lines;
}

absl::Status Diagnostics::ToStatus() const {
  if (empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("{}", fmt::join(Lines(), "\n")));
}

std::string Printable(std::string_view text, size_t most) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const size_t length = Utf8SequenceLength(text.substr(i));
    const unsigned char c = static_cast<unsigned char>(text[i]);
    if (out.size() + std::max<size_t>(length, 1) > most) {
      out += "...";
      break;
    }
    if (length == 0 || c < 0x20 || c == 0x7F) {
      out += '?';
      ++i;
    } else {
      out.append(text.substr(i, length));
      i += length;
    }
  }
  return out;
}

std::string NearestWord(std::string_view word, std::span<const std::string_view> words) {
  if (word.empty() || word.size() > kMostWordBytes) return "";
  // A third of the letters may be wrong: "resnet5" is near resnet50, "foo" is near nothing.
  size_t best_distance = std::max<size_t>(1, word.size() / 3) + 1;
  std::string_view best;
  for (const std::string_view candidate : words) {
    if (candidate.size() > kMostWordBytes) continue;
    const size_t distance = EditDistance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return std::string(best);
}

std::string Suggestion(std::string_view word, std::span<const std::string_view> words) {
  if (words.empty()) return "";
  const std::string nearest = NearestWord(word, words);
  if (!nearest.empty()) return fmt::format("; did you mean '{}'?", nearest);
  return fmt::format("; known: {}", fmt::join(words, ", "));
}

}  // namespace assay
