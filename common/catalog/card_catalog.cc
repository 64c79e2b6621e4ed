#include "common/catalog/card_catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "common/catalog/builtin_text.h"
#include "common/catalog/fields.h"
#include "common/yaml/diagnostics.h"
#include "common/yaml/yaml_tree.h"

namespace assay {

namespace {

// What NVML says lies this far from the memory class on real machines: ECC and the driver take up
// to 8 % (Tesla T4 15109 of 16384 MiB), and no two classes of one name are nearer than 16 %.
constexpr double kLeastMemoryRatio = 0.89;
constexpr double kMostMemoryRatio = 1.03;
constexpr double kMib = 1024.0 * 1024.0;
constexpr double kGib = 1024.0 * kMib;

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Words of the name that makers and drivers add or leave out.
bool IsMakersWord(std::string_view word) {
  static constexpr std::array<std::string_view, 4> kWords = {"nvidia", "geforce", "tesla",
                                                             "quadro"};
  std::string lowered(word);
  std::transform(lowered.begin(), lowered.end(), lowered.begin(), Lower);
  return std::find(kWords.begin(), kWords.end(), lowered) != kWords.end();
}

// The words that stay, in order.
std::vector<std::string_view> NameWords(std::string_view name) {
  std::vector<std::string_view> words;
  for (size_t i = 0; i < name.size();) {
    if (IsSpace(name[i])) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < name.size() && !IsSpace(name[end])) ++end;
    const std::string_view word = name.substr(i, end - i);
    if (!IsMakersWord(word)) words.push_back(word);
    i = end;
  }
  return words;
}

bool MemoryFits(const CardFacts& card, uint64_t memory_bytes) {
  if (!card.memory_gib) return true;
  const double ratio = static_cast<double>(memory_bytes) / (*card.memory_gib * kGib);
  if (ratio >= kLeastMemoryRatio && ratio <= kMostMemoryRatio) return true;
  const auto mib = static_cast<int64_t>(static_cast<double>(memory_bytes) / kMib);
  const auto& seen = card.memory_seen_mib;
  return std::find(seen.begin(), seen.end(), mib) != seen.end();
}

CardFacts CardFrom(const YamlNode& node, const std::string& path, Diagnostics* diagnostics) {
  Fields fields(node, path,
                {"name", "aliases", "cc", "sm_count", "memory_gib", "memory_seen_mib",
                 "bandwidth_gb_per_second", "fp32_tflops", "fp16_acc16_tflops", "fp16_acc32_tflops",
                 "bf16_tflops", "tf32_tflops", "tdp_watts", "msrp_usd", "launch", "nvlink",
                 "source", "unsure"},
                diagnostics);
  CardFacts card;
  card.name = fields.Text("name", true);
  card.aliases = fields.Texts("aliases", true);
  if (const auto cc = fields.ComputeCapability("cc")) {
    card.cc_major = cc->first;
    card.cc_minor = cc->second;
  }
  if (const auto sm = fields.Integer("sm_count", false)) card.sm_count = static_cast<int>(*sm);
  card.memory_gib = fields.Number("memory_gib");
  card.memory_seen_mib = fields.Integers("memory_seen_mib");
  card.bandwidth_gb_per_second = fields.Number("bandwidth_gb_per_second");
  card.fp32_tflops = fields.Number("fp32_tflops");
  card.fp16_acc16_tflops = fields.Number("fp16_acc16_tflops");
  card.fp16_acc32_tflops = fields.Number("fp16_acc32_tflops");
  card.bf16_tflops = fields.Number("bf16_tflops");
  card.tf32_tflops = fields.Number("tf32_tflops");
  card.tdp_watts = fields.Number("tdp_watts");
  card.msrp_usd = fields.Number("msrp_usd");
  card.launch = fields.Text("launch", false);
  card.nvlink = fields.Flag("nvlink");
  card.source = fields.Text("source", true);
  card.unsure = fields.Text("unsure", false);
  return card;
}

}  // namespace

std::string FoldCardName(std::string_view name) {
  std::string folded;
  for (const std::string_view word : NameWords(name)) {
    for (const char c : word) folded += Lower(c);
  }
  return folded;
}

absl::StatusOr<CardCatalog> CardCatalog::Parse(std::string_view yaml, std::string_view file_name) {
  Diagnostics diagnostics(file_name);
  const YamlPtr root = ParseYaml(yaml, YamlLimits{}, &diagnostics);
  if (root == nullptr) return diagnostics.ToStatus();
  CardCatalog catalog;
  Fields fields(*root, "", {"schema", "cards"}, &diagnostics);
  if (const YamlNode* cards = fields.List("cards", true)) {
    for (size_t i = 0; i < cards->items.size(); ++i) {
      catalog.cards_.push_back(
          CardFrom(*cards->items[i], fmt::format("cards[{}]", i), &diagnostics));
    }
  }
  std::set<std::string> names;
  for (size_t i = 0; i < catalog.cards_.size(); ++i) {
    const CardFacts& card = catalog.cards_[i];
    std::set<std::string> folded = {FoldCardName(card.name)};
    if (!names.insert(*folded.begin()).second) {
      diagnostics.Add(root->at, fmt::format("cards[{}].name", i), "this card is listed twice");
    }
    for (const std::string& alias : card.aliases) folded.insert(FoldCardName(alias));
    for (const std::string& name : folded) catalog.by_folded_name_.emplace(name, i);
  }
  if (!diagnostics.empty()) return diagnostics.ToStatus();
  return catalog;
}

std::vector<const CardFacts*> CardCatalog::FindByName(std::string_view name) const {
  std::vector<const CardFacts*> found;
  const std::string folded = FoldCardName(name);
  if (folded.empty()) return found;
  const auto [begin, end] = by_folded_name_.equal_range(folded);
  for (auto it = begin; it != end; ++it) found.push_back(&cards_[it->second]);
  std::sort(found.begin(), found.end());
  return found;
}

CardMatch CardCatalog::Identify(std::string_view raw_name, uint64_t memory_bytes,
                                int sm_count) const {
  std::vector<const CardFacts*> found = FindByName(raw_name);
  if (found.empty()) return {std::string(raw_name), false, nullptr};
  const std::string plain = fmt::format("{}", fmt::join(NameWords(raw_name), " "));
  if (memory_bytes != 0) {
    std::erase_if(found, [&](const CardFacts* card) { return !MemoryFits(*card, memory_bytes); });
    if (found.empty()) {
      const double gib = static_cast<double>(memory_bytes) / kGib;
      return {fmt::format("{} {:.0f}GB", plain, std::ceil(gib)), false, nullptr};
    }
  }
  if (found.size() > 1 && sm_count != 0) {
    std::erase_if(found, [&](const CardFacts* card) { return card->sm_count != sm_count; });
  }
  if (found.size() != 1) return {plain, false, nullptr};
  return {found[0]->name, true, found[0]};
}

std::string CardCatalog::NearestName(std::string_view name) const {
  std::vector<std::string> folded;
  for (const CardFacts& card : cards_) folded.push_back(FoldCardName(card.name));
  const std::vector<std::string_view> words(folded.begin(), folded.end());
  const std::string nearest = NearestWord(FoldCardName(name), words);
  for (size_t i = 0; i < cards_.size(); ++i) {
    if (!nearest.empty() && folded[i] == nearest) return cards_[i].name;
  }
  return "";
}

const CardCatalog& BuiltinCards() {
  // Its text is part of the program and checked by a test: a fault leaves an empty catalogue, in
  // which every card is unknown, rather than ending the process.
  static const CardCatalog* const catalog = [] {
    auto parsed = CardCatalog::Parse(kCardsYaml, "cards.yaml");
    return new CardCatalog(parsed.ok() ? *std::move(parsed) : CardCatalog());
  }();
  return *catalog;
}

CardMatch IdentifyDevice(const Device& device) {
  if (device.kind == "cpu") return {device.raw_name, false, nullptr};
  if (device.kind == "mig") {
    const bool says_so = device.raw_name.find("MIG") != std::string::npos;
    return {says_so ? device.raw_name : device.raw_name + " MIG", false, nullptr};
  }
  return BuiltinCards().Identify(device.raw_name, device.memory_total_bytes, device.sm_count);
}

}  // namespace assay
