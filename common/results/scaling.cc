#include "common/results/scaling.h"

#include <map>

#include "common/measure/interval.h"
#include "common/measure/moments.h"

namespace assay {

std::vector<bool> SuspectScaling(std::span<const ScalingRow> rows) {
  std::map<std::string, size_t> bases;
  const auto mean = [&](size_t row) { return measure::Moments(rows[row].process_means).mean(); };
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].world_size != 1 || rows[i].process_means.empty()) continue;
    const auto [base, is_new] = bases.try_emplace(rows[i].alike, i);
    if (!is_new && mean(i) > mean(base->second)) base->second = i;
  }
  std::vector<bool> suspect(rows.size(), false);
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto base = bases.find(rows[i].alike);
    if (rows[i].world_size < 2 || base == bases.end()) continue;
    const auto ratio =
        measure::RatioOfMeans(rows[i].process_means, rows[base->second].process_means);
    if (!ratio || !ratio->interval) continue;
    suspect[i] = ratio->interval->low / static_cast<double>(rows[i].world_size) > kMostScalingRatio;
  }
  return suspect;
}

}  // namespace assay
