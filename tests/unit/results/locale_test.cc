#include <gtest/gtest.h>

#include <clocale>
#include <locale>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/results/csv.h"
#include "common/results/json.h"
#include "common/text/number_format.h"

namespace assay {
namespace {

// A locale with ',' for decimals and '.' for thousands, as the C++ library would use it; made here,
// since de_DE.UTF-8 is often not installed.
class GermanNumbers final : public std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

std::string Everything() {
  Record record;
  record.Set(Field::kThroughput, 1234567.25).IgnoreError();
  record.Set(Field::kSamples, int64_t{1234567}).IgnoreError();
  const std::vector<Record> records = {record};
  return WriteResultsCsv(records) + WriteResultsJson(records) + HumanNumber(1234.5) +
         HumanNumber(0.5) + HumanInteger(1234567) + HumanBytes(1610612736) + HumanDuration(0.85) +
         HumanPercent(0.012) + HumanNumber(1e-9);
}

class RestoreLocale {
 public:
  RestoreLocale() : c_(std::setlocale(LC_ALL, nullptr)) {}
  ~RestoreLocale() {
    std::locale::global(cpp_);
    std::setlocale(LC_ALL, c_.c_str());
  }

 private:
  std::locale cpp_;
  std::string c_;
};

TEST(Locale, TheGlobalCppLocaleChangesNoByte) {
  const std::string before = Everything();
  const RestoreLocale restore;
  std::locale::global(std::locale(std::locale::classic(), new GermanNumbers));
  EXPECT_EQ(Everything(), before);
}

TEST(Locale, ReadingIsNotChangedEither) {
  const RestoreLocale restore;
  std::locale::global(std::locale(std::locale::classic(), new GermanNumbers));
  const auto record = RecordFromJson(R"({"throughput":1234.5})");
  ASSERT_TRUE(record.ok());
  EXPECT_EQ(record->Number(Field::kThroughput), 1234.5);
}

TEST(Locale, AGermanCLocaleChangesNoByte) {
  const std::string before = Everything();
  const RestoreLocale restore;
  if (std::setlocale(LC_ALL, "de_DE.UTF-8") == nullptr) {
    GTEST_SKIP() << "the locale de_DE.UTF-8 is not installed";
  }
  EXPECT_EQ(Everything(), before);
  const auto record = RecordFromJson(R"({"throughput":1234.5})");
  ASSERT_TRUE(record.ok());
  EXPECT_EQ(record->Number(Field::kThroughput), 1234.5);
}

}  // namespace
}  // namespace assay
