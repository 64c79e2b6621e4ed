#include "common/results/row_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "common/text/utf8.h"

namespace assay {
namespace {

bool IsSimulated(const Record& record) { return record.Flag(Field::kSimulated).value_or(false); }

std::string AlikeText(const Record& record, Field field) {
  if (const auto number = record.Integer(field)) return fmt::format("{}", *number);
  if (const auto flag = record.Flag(field)) return *flag ? "true" : "false";
  return record.Text(field);
}

bool BelongsTo(const RowGroup& group, const Record& record) {
  const std::string stack = record.Text(Field::kStack);
  if (group.stack.empty() || stack.empty()) return true;
  if (group.stack != stack || group.simulated != IsSimulated(record)) return false;
  for (size_t i = 0; i < RowGroup::kAlike.size(); ++i) {
    const std::string text = AlikeText(record, RowGroup::kAlike[i]);
    if (!text.empty() && !group.alike[i].empty() && text != group.alike[i]) return false;
  }
  return true;
}

void Join(RowGroup& group, const Record& record) {
  const std::string stack = record.Text(Field::kStack);
  if (group.stack.empty() && !stack.empty()) {
    group.stack = stack;
    group.simulated = IsSimulated(record);
  }
  for (size_t i = 0; i < RowGroup::kAlike.size(); ++i) {
    if (group.alike[i].empty()) group.alike[i] = AlikeText(record, RowGroup::kAlike[i]);
  }
}

}  // namespace

std::string RowGroup::DifferenceFrom(const RowGroup& other) const {
  constexpr size_t kMostBytes = 24;
  for (size_t i = 0; i < kAlike.size(); ++i) {
    const std::string& text = alike[i];
    if (text.empty() || other.alike[i].empty() || text == other.alike[i]) continue;
    return fmt::format("{} {}", InfoOf(kAlike[i]).name,
                       std::string_view(text).substr(0, Utf8Boundary(text, kMostBytes)));
  }
  return "";
}

size_t RowGroups::Add(const Record& record) {
  std::vector<size_t>& places = by_place_[{record.Text(Field::kKey), record.Text(Field::kTarget)}];
  auto found = std::find_if(places.begin(), places.end(),
                            [&](size_t at) { return BelongsTo(groups_[at], record); });
  if (found == places.end()) {
    places.push_back(groups_.size());
    groups_.emplace_back();
    found = places.end() - 1;
  }
  Join(groups_[*found], record);
  return *found;
}

}  // namespace assay
