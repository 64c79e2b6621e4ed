#include "common/text/did_you_mean.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace assay {
namespace {

constexpr size_t kMostBytes = 256;

std::string Folded(std::string_view word) {
  std::string folded(word);
  for (char& c : folded) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == '_') c = '-';
  }
  return folded;
}

template <typename Text>
std::optional<std::string> NearestOf(std::string_view word, std::span<const Text> candidates) {
  if (word.empty() || word.size() > kMostBytes) return std::nullopt;
  const std::string folded = Folded(word);
  std::optional<std::string> nearest;
  size_t least = 0;
  for (const Text& candidate : candidates) {
    const size_t allowed = std::max<size_t>(1, std::max(word.size(), candidate.size()) / 3);
    const size_t distance = EditDistance(folded, Folded(candidate));
    if (distance > allowed || (nearest && distance >= least)) continue;
    // Of a one-letter word nothing is left when its letter is another.
    if (distance >= std::max(word.size(), candidate.size())) continue;
    nearest = std::string(candidate);
    least = distance;
  }
  return nearest;
}

std::string Asked(const std::optional<std::string>& nearest) {
  return nearest ? fmt::format(" (did you mean '{}'?)", *nearest) : "";
}

}  // namespace

size_t EditDistance(std::string_view a, std::string_view b) {
  if (a.size() > kMostBytes || b.size() > kMostBytes) return std::max(a.size(), b.size());
  std::vector<size_t> before_last(b.size() + 1);
  std::vector<size_t> last(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t changed = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, changed});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::optional<std::string> Nearest(std::string_view word,
                                   std::span<const std::string_view> candidates) {
  return NearestOf(word, candidates);
}

std::optional<std::string> Nearest(std::string_view word, std::span<const std::string> candidates) {
  return NearestOf(word, candidates);
}

std::string DidYouMean(std::string_view word, std::span<const std::string> candidates) {
  return Asked(Nearest(word, candidates));
}

std::string DidYouMean(std::string_view word, std::span<const std::string_view> candidates) {
  return Asked(Nearest(word, candidates));
}

}  // namespace assay
