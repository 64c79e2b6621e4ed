#include "common/catalog/card_catalog.h"

#include <gtest/gtest.h>

#include <string>

#include "common/catalog/builtin_text.h"
#include "common/status/status.h"

namespace assay {
namespace {

constexpr uint64_t kMib = uint64_t{1} << 20;

CardMatch Identify(std::string_view name, uint64_t mib = 0, int sm_count = 0) {
  return BuiltinCards().Identify(name, mib * kMib, sm_count);
}

TEST(CardCatalog, BuiltinTextHasNoFault) {
  const auto parsed = CardCatalog::Parse(kCardsYaml, "cards.yaml");
  ASSERT_TRUE(parsed.ok()) << Message(parsed.status());
  EXPECT_EQ(parsed->cards().size(), 49u);
}

TEST(CardCatalog, EveryCardIsFoundByItsNameAndItsSeenMemory) {
  for (const CardFacts& card : BuiltinCards().cards()) {
    EXPECT_EQ(Identify(card.name).name, card.name);
    for (const std::string& alias : card.aliases) {
      for (const int64_t mib : card.memory_seen_mib) {
        const CardMatch match = Identify(alias, static_cast<uint64_t>(mib));
        EXPECT_TRUE(match.known) << alias << " " << mib;
        EXPECT_EQ(match.name, card.name) << alias << " " << mib;
      }
    }
  }
}

TEST(CardCatalog, CaseSpacesAndMakersWordsDoNotCount) {
  for (const char* name : {"NVIDIA GeForce RTX 2080 Ti", "GeForce RTX 2080 Ti", "rtx 2080 ti",
                           "RTX2080Ti", "nvidia  geforce\trtx 2080TI "}) {
    EXPECT_EQ(Identify(name).name, "RTX 2080 Ti") << name;
  }
  EXPECT_EQ(Identify("Tesla T4").name, "T4");
  EXPECT_EQ(Identify("A100-SXM-80GB").name, "A100-SXM4-80GB");
}

// Case 5: total memory is not a constant of the card.
TEST(CardCatalog, Case5OneCardWhateverMemoryTheDriverLeaves) {
  for (const uint64_t mib : {24265, 24268, 24576}) {
    EXPECT_EQ(Identify("GeForce RTX 3090", mib).name, "RTX 3090") << mib;
  }
  EXPECT_EQ(Identify("A40", 45634).name, Identify("NVIDIA A40", 49140).name);
  EXPECT_EQ(Identify("Quadro RTX 8000", 48601).name, Identify("Quadro RTX 8000", 49152).name);
}

// Case 12: unknown or odd card names.
TEST(CardCatalog, Case12NoPartOfANameIsMatched) {
  for (const char* name :
       {"NVIDIA Graphics Device", "GRID V100DX-16Q", "GeForce RTX 3080 Laptop GPU",
        "GeForce RTX 2080 Super with Max-Q Design", "NVIDIA GeForce RTX 3080 Ti SUPER", "RTX",
        "3080", "NVIDIA", "", " ", "Odd \"name\", with\na line \xE2\x80\x94 dash", "\xFF\xFE"}) {
    const CardMatch match = Identify(name, 8192, 48);
    EXPECT_EQ(match.name, name);
    EXPECT_FALSE(match.known) << name;
    EXPECT_EQ(match.facts, nullptr) << name;
  }
  const std::string longest(96, 'x');
  EXPECT_EQ(Identify(longest).name, longest);
  EXPECT_EQ(Identify("NVIDIA GeForce RTX 3080 Ti").name, "RTX 3080 Ti");
}

TEST(CardCatalog, OneNameOfTwoProductsIsToldApartByMemoryClass) {
  EXPECT_EQ(Identify("NVIDIA GeForce RTX 3080", 10015).name, "RTX 3080 10GB");
  EXPECT_EQ(Identify("NVIDIA GeForce RTX 3080", 12288).name, "RTX 3080 12GB");
  EXPECT_EQ(Identify("NVIDIA GeForce RTX 3060", 8192).name, "RTX 3060 8GB");
}

TEST(CardCatalog, OneNameOfTwoProductsIsToldApartBySmCount) {
  EXPECT_EQ(Identify("NVIDIA GeForce RTX 3080", 0, 68).name, "RTX 3080 10GB");
  EXPECT_EQ(Identify("NVIDIA GeForce RTX 3080", 0, 70).name, "RTX 3080 12GB");
}

TEST(CardCatalog, OneNameOfTwoProductsWithNoFactIsNeither) {
  const CardMatch match = Identify("NVIDIA GeForce RTX 3080");
  EXPECT_EQ(match.name, "RTX 3080");
  EXPECT_FALSE(match.known);
  EXPECT_EQ(BuiltinCards().FindByName("RTX 3080").size(), 2u);
}

TEST(CardCatalog, AKnownNameWithMemoryOfNoClassIsNoKnownProduct) {
  const CardMatch match = Identify("NVIDIA GeForce RTX 2080 Ti", 22528);
  EXPECT_EQ(match.name, "RTX 2080 Ti 22GB");
  EXPECT_FALSE(match.known);
}

TEST(CardCatalog, FactsThatAreNotKnownAreEmpty) {
  const CardMatch pascal = Identify("GTX 1080 Ti");
  ASSERT_TRUE(pascal.known);
  EXPECT_FALSE(pascal.facts->tf32_tflops.has_value());
  EXPECT_DOUBLE_EQ(*pascal.facts->fp32_tflops, 11.34);
  EXPECT_FALSE(Identify("A10").facts->msrp_usd.has_value());
  EXPECT_EQ(*Identify("H200").facts->cc_major, 9);
}

TEST(CardCatalog, ASliceIsNeverAWholeCardAndAProcessorIsItself) {
  Device device;
  device.kind = "mig";
  device.raw_name = "NVIDIA A100-SXM4-40GB";
  device.memory_total_bytes = 40960 * kMib;
  EXPECT_FALSE(IdentifyDevice(device).known);
  EXPECT_NE(IdentifyDevice(device).name, "A100-SXM4-40GB");
  device.kind = "cpu";
  device.raw_name = "AMD EPYC 7763";
  EXPECT_EQ(IdentifyDevice(device).name, "AMD EPYC 7763");
}

TEST(CardCatalog, NearestNameIsASpellingAway) {
  EXPECT_EQ(BuiltinCards().NearestName("RTX 2008 Ti"), "RTX 2080 Ti");
  EXPECT_EQ(BuiltinCards().NearestName("Voodoo"), "");
}

TEST(CardCatalog, FaultsOfTheTextAreNamedWithTheirPlace) {
  const auto parsed = CardCatalog::Parse(
      "schema: 1\ncards:\n  - {name: A, aliases: [A], cc: x, sm: 1, source: here}\n", "c.yaml");
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(
      Message(parsed.status()),
      "c.yaml:3:33: cards[0].cc: no compute capability; write it as \"8.6\"\n"
      "c.yaml:3:36: cards[0].sm: unknown key; known: name, aliases, cc, sm_count, memory_gib, "
      "memory_seen_mib, bandwidth_gb_per_second, fp32_tflops, fp16_acc16_tflops, "
      "fp16_acc32_tflops, bf16_tflops, tf32_tflops, tdp_watts, msrp_usd, launch, nvlink, "
      "source, unsure");
}

}  // namespace
}  // namespace assay
