#include "common/yaml/scalars.h"

#include <gtest/gtest.h>

#include <string>

#include "common/status/status.h"
#include "tests/unit/matrix/comma_locale.h"

namespace assay {
namespace {

YamlNode Plain(std::string text) {
  YamlNode node;
  node.kind = YamlNode::Kind::kScalar;
  node.text = std::move(text);
  return node;
}

YamlNode Quoted(std::string text) {
  YamlNode node = Plain(std::move(text));
  node.quoted = true;
  return node;
}

std::string IntegerFault(const std::string& text) {
  return Message(IntegerOf(Plain(text)).status());
}

TEST(IntegerOf, ReadsPlainDigits) {
  EXPECT_EQ(*IntegerOf(Plain("0")), 0);
  EXPECT_EQ(*IntegerOf(Plain("64")), 64);
  EXPECT_EQ(*IntegerOf(Plain("-3")), -3);
  EXPECT_EQ(*IntegerOf(Plain("9223372036854775807")), INT64_MAX);
}

TEST(IntegerOf, SaysWhatToWriteInstead) {
  EXPECT_EQ(IntegerFault("064"),
            "'064' has a leading zero, which some readers take for octal; write 64");
  EXPECT_EQ(IntegerFault("no"), "'no' is a yes/no word, not a number; write a whole number");
  EXPECT_EQ(IntegerFault("Yes"), "'Yes' is a yes/no word, not a number; write a whole number");
  EXPECT_EQ(IntegerFault("1e3"), "'1e3' has an exponent; write 1000");
  EXPECT_EQ(IntegerFault("6.5"), "'6.5' is not a whole number");
  EXPECT_EQ(IntegerFault("1,000"), "'1,000' is not a number; the decimal sign is a point");
  EXPECT_EQ(IntegerFault("9223372036854775808"), "'9223372036854775808' is too large");
  for (const char* odd : {"0x40", "0o100", "1_000", "+5", "6 4", "-", "", "1e", "1e999", "e3", ".5",
                          "--1", "00", "-0064", "NaN", ".inf", "1:30"}) {
    EXPECT_FALSE(IntegerOf(Plain(odd)).ok()) << odd;
  }
  EXPECT_EQ(Message(IntegerOf(Quoted("64")).status()),
            "'64' in quotes is text; write a whole number without quotes");
}

TEST(NumberOf, ReadsDecimalsOnly) {
  EXPECT_DOUBLE_EQ(*NumberOf(Plain("0.01")), 0.01);
  EXPECT_DOUBLE_EQ(*NumberOf(Plain("5")), 5);
  for (const char* odd : {"1.", ".5", "1e-2", "inf", "nan", "0.0.1", "01.5", "0,01"}) {
    EXPECT_FALSE(NumberOf(Plain(odd)).ok()) << odd;
  }
}

TEST(NumberOf, DoesNotFollowTheLocale) {
  const CommaLocale comma;
  EXPECT_DOUBLE_EQ(*NumberOf(Plain("0.25")), 0.25);
  EXPECT_FALSE(NumberOf(Plain("0,25")).ok());
}

TEST(DurationOf, WantsAUnit) {
  EXPECT_DOUBLE_EQ(*DurationOf(Plain("60s")), 60);
  EXPECT_DOUBLE_EQ(*DurationOf(Plain("500ms")), 0.5);
  EXPECT_DOUBLE_EQ(*DurationOf(Plain("1.5h")), 5400);
  EXPECT_DOUBLE_EQ(*DurationOf(Plain("2m")), 120);
  for (const char* odd : {"60", "s", "1 s", "5 minutes", "1e3s", "05s"}) {
    EXPECT_FALSE(DurationOf(Plain(odd)).ok()) << odd;
  }
}

TEST(TextOf, WantsYesNoWordsQuoted) {
  EXPECT_EQ(*TextOf(Plain("resnet50")), "resnet50");
  EXPECT_EQ(*TextOf(Quoted("no")), "no");
  EXPECT_FALSE(TextOf(Plain("no")).ok());
  EXPECT_FALSE(TextOf(YamlNode{}).ok());
}

TEST(FlagOf, IsTrueOrFalseOnly) {
  EXPECT_TRUE(*FlagOf(Plain("true")));
  EXPECT_FALSE(*FlagOf(Plain("false")));
  EXPECT_FALSE(FlagOf(Plain("yes")).ok());
}

}  // namespace
}  // namespace assay
