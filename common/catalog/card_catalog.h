// CardCatalog: GPU products by a normalised name, as catalog/cards.yaml lists them.
//
// Owner: one immutable built-in instance, embedded at build time. Thread rule: any thread.
// A figure that the catalogue does not know is empty, never zero.
#ifndef ASSAY_COMMON_CATALOG_CARD_CATALOG_H_
#define ASSAY_COMMON_CATALOG_CARD_CATALOG_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/fleet/inventory.h"

namespace assay {

// Tensor figures are dense, in TFLOP/s at boost clock; sources and doubts are kept beside them.
struct CardFacts {
  std::string name;                  // "RTX 2080 Ti", "RTX 3080 12GB"
  std::vector<std::string> aliases;  // names that drivers report
  std::optional<int> cc_major, cc_minor;
  std::optional<int> sm_count;
  std::optional<double> memory_gib;  // nominal: the memory class
  std::vector<int64_t> memory_seen_mib;
  std::optional<double> bandwidth_gb_per_second;
  std::optional<double> fp32_tflops;
  std::optional<double> fp16_acc16_tflops;  // fp16 products, fp16 accumulation
  std::optional<double> fp16_acc32_tflops;  // fp16 products, fp32 accumulation
  std::optional<double> bf16_tflops;
  std::optional<double> tf32_tflops;
  std::optional<double> tdp_watts;
  std::optional<double> msrp_usd;
  std::string launch;  // ISO 8601 day
  std::optional<bool> nvlink;
  std::string source;
  std::string unsure;  // what to doubt, in words
};

struct CardMatch {
  std::string name;  // the catalogue's, or the raw name where it has none
  bool known = false;
  const CardFacts* facts = nullptr;  // null where not known; owned by the catalogue
};

class CardCatalog {
 public:
  // InvalidArgument with one line a fault. `file_name` is for the positions only.
  static absl::StatusOr<CardCatalog> Parse(std::string_view yaml, std::string_view file_name);

  // Never fails. Case, spaces and the words NVIDIA, GeForce, Tesla and Quadro are dropped, then the
  // name must be equal to one in the catalogue: no part of a name is ever matched. One name that is
  // two products is told apart by memory class, then by SM count. 0 stands for not known. A known
  // name with memory of no known class is no known product: "RTX 2080 Ti 22GB", known false.
  CardMatch Identify(std::string_view raw_name, uint64_t memory_bytes, int sm_count) const;

  // Every product of that name: two for "RTX 3080", one for "RTX 3080 12GB", none for a name that
  // the catalogue lacks.
  std::vector<const CardFacts*> FindByName(std::string_view name) const;

  // Listed name nearest in spelling, or empty where none is near: for "did you mean".
  std::string NearestName(std::string_view name) const;

  const std::vector<CardFacts>& cards() const { return cards_; }

 private:
  std::vector<CardFacts> cards_;
  std::multimap<std::string, size_t> by_folded_name_;
};

// The catalogue that this program was built with.
const CardCatalog& BuiltinCards();

// BuiltinCards().Identify for a device of an inventory; a MIG slice is never a whole card, a
// processor is its own name.
CardMatch IdentifyDevice(const Device& device);

// The name as the catalogue compares it: "NVIDIA GeForce RTX 2080 Ti" and "rtx2080ti" are equal.
std::string FoldCardName(std::string_view name);

}  // namespace assay

#endif  // ASSAY_COMMON_CATALOG_CARD_CATALOG_H_
