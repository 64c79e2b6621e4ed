// The nearest right spelling of a word that nothing knows.
//
// Thread rule: pure, any thread.
#ifndef ASSAY_COMMON_TEXT_DID_YOU_MEAN_H_
#define ASSAY_COMMON_TEXT_DID_YOU_MEAN_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace assay {

// Least number of inserted, deleted, changed bytes (Levenshtein, "Binary codes capable of
// correcting deletions, insertions and reversals", 1966) and swapped neighbours (optimal string
// alignment) that make `b` of `a`. Words over 256 bytes are as far apart as their longer one is
// long.
size_t EditDistance(std::string_view a, std::string_view b);

// The candidate nearest to `word`, without regard to case and with '-' and '_' alike, where it is
// near enough to be meant: at most a third of the longer word's bytes away (at least 1). The first
// of equals. nullopt where none is.
std::optional<std::string> Nearest(std::string_view word,
                                   std::span<const std::string_view> candidates);
std::optional<std::string> Nearest(std::string_view word, std::span<const std::string> candidates);

// " (did you mean 'batch'?)" or "".
std::string DidYouMean(std::string_view word, std::span<const std::string> candidates);
std::string DidYouMean(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace assay

#endif  // ASSAY_COMMON_TEXT_DID_YOU_MEAN_H_
