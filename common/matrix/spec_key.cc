#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "common/ids/ids.h"
#include "common/matrix/axis.h"
#include "common/matrix/matrix.h"

namespace assay {

// Sorted by name and without defaults: an axis written with its default, and an axis that a later
// version adds, change no key. Changing this text orphans every stored result: golden keys in the
// tests guard it.
std::string CanonicalSpecText(const Spec& spec) {
  std::vector<std::string> lines;
  for (const AxisInfo& info : AllAxes()) {
    AxisValue value = GetAxis(spec, info.axis);
    // An empty layout or image is the model's default that was not filled in.
    const bool unset =
        value.text.empty() && (info.axis == Axis::kLayout || info.axis == Axis::kImage);
    if (unset || value == DefaultOf(info.axis, spec.model)) continue;
    lines.push_back(fmt::format("{}={}\n", info.name, value.text));
  }
  std::sort(lines.begin(), lines.end());
  return fmt::format("{}", fmt::join(lines, ""));
}

std::string SpecKey(const Spec& spec) { return Sha256Hex(CanonicalSpecText(spec)).substr(0, 16); }

}  // namespace assay
