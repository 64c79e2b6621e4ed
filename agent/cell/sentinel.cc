#include "agent/cell/sentinel.h"

#include <algorithm>
#include <array>
#include <utility>

namespace assay {
namespace {

bool Has(const std::vector<std::string>& words, const char* word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Batch by the least memory of its class. Training of ResNet-50 in AMP takes some 85 MiB a sample
// beside 1 GiB: each fits into half of its class.
constexpr std::array<std::pair<uint64_t, int64_t>, 4> kBatches = {
    {{uint64_t{40} << 30, 256}, {uint64_t{20} << 30, 128}, {uint64_t{10} << 30, 64}, {0, 16}}};

}  // namespace

std::optional<Spec> SentinelSpec(const Device& device, const Stack& stack) {
  Spec spec;
  spec.model = "resnet50";
  spec.mode = "train";
  spec.lane = "eager";
  if (!Has(stack.models, spec.model.c_str()) || !Has(stack.modes, spec.mode.c_str()) ||
      !Has(stack.lanes, spec.lane.c_str())) {
    return std::nullopt;
  }
  const bool amp = Has(stack.precisions, "amp-fp16") && device.cc_major >= 7;
  spec.precision = amp ? "amp-fp16" : "fp32";
  if (!amp && !Has(stack.precisions, "fp32")) return std::nullopt;
  for (const auto& [least_bytes, batch] : kBatches) {
    if (device.memory_total_bytes < least_bytes) continue;
    spec.batch = batch;
    break;
  }
  if (!amp) spec.batch = std::max<int64_t>(spec.batch / 2, 1);
  spec.stop = {0, 10, 10};
  return spec;
}

bool SentinelBook::Due(const std::vector<std::string>& uuids, const std::string& stack, bool cold,
                       BootTime now) const {
  const auto found = series_.find({uuids, stack});
  if (found == series_.end() || now - found->second.at >= kSentinelPeriod) return true;
  return cold && found->second.known;
}

void SentinelBook::Note(const std::vector<std::string>& uuids, const std::string& stack,
                        const std::string& attempt, std::optional<double> throughput,
                        BootTime now) {
  Series& series = series_[{uuids, stack}];
  if (series.last.series.empty()) series.last.series = attempt;
  series.at = now;
  series.known = throughput.has_value();
  if (!throughput) return;
  ++series.last.index;
  series.last.throughput = *throughput;
}

std::optional<SentinelBook::Reading> SentinelBook::Last(const std::vector<std::string>& uuids,
                                                        const std::string& stack) const {
  const auto found = series_.find({uuids, stack});
  if (found == series_.end() || !found->second.known) return std::nullopt;
  return found->second.last;
}

}  // namespace assay
