#include "common/ids/ids.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>

namespace assay {
namespace {

TEST(Ulid, HasTheTimeInFront) {
  // The example of the ULID specification: 1469918176385 is 01ARYZ6S41.
  const WallTime wall{std::chrono::milliseconds(1469918176385)};
  EXPECT_EQ(NewUlid(wall).substr(0, 10), "01ARYZ6S41");
}

TEST(SafeId, IsAWordThatLeadsNowhereAsAFileName) {
  for (const std::string& id :
       {std::string(), std::string("."), std::string("a/b"), std::string("a b"),
        std::string("\xC3\xA4"), std::string("a\0", 2), std::string(65, 'a')}) {
    EXPECT_FALSE(IsSafeId(id)) << id;
  }
  for (const std::string& id :
       {std::string("01J8ZC3V9Q5R7S9T1V3X5Z7A9B"), std::string("GPU-0_a"), std::string(64, 'a')}) {
    EXPECT_TRUE(IsSafeId(id)) << id;
  }
}

TEST(Ulid, SortsByTime) {
  const WallTime wall{std::chrono::milliseconds(1767225600000)};
  EXPECT_LT(NewUlid(wall), NewUlid(wall + std::chrono::milliseconds(1)));
}

// A board without a battery starts its clock anywhere.
TEST(Ulid, OfAClockBefore1970SortsBeforeEveryOther) {
  const WallTime before{std::chrono::milliseconds(-1)};
  EXPECT_EQ(NewUlid(before).substr(0, 10), "0000000000");
  EXPECT_LT(NewUlid(before), NewUlid(WallTime{std::chrono::milliseconds(1767225600000)}));
  EXPECT_EQ(NewUlid(WallTime{std::chrono::milliseconds(int64_t{1} << 50)}).substr(0, 10),
            "7ZZZZZZZZZ");
}

TEST(Ulid, IsNeverTheSameTwice) {
  const WallTime wall{std::chrono::milliseconds(1767225600000)};
  std::set<std::string> seen;
  for (int i = 0; i < 2000; ++i) {
    const std::string ulid = NewUlid(wall);
    ASSERT_TRUE(IsUlid(ulid)) << ulid;
    ASSERT_TRUE(seen.insert(ulid).second) << ulid;
  }
}

TEST(IsUlid, RefusesWhatIsNone) {
  EXPECT_TRUE(IsUlid("7ZZZZZZZZZZZZZZZZZZZZZZZZZ"));
  EXPECT_FALSE(IsUlid("8ZZZZZZZZZZZZZZZZZZZZZZZZZ"));   // over 128 bits
  EXPECT_FALSE(IsUlid("01ARYZ6S41TSV4RRFFQ69G5FA"));    // 25 characters
  EXPECT_FALSE(IsUlid("01ARYZ6S41TSV4RRFFQ69G5FAVX"));  // 27
  EXPECT_FALSE(IsUlid("01ARYZ6S41TSV4RRFFQ69G5FAU"));   // no U in the alphabet
  EXPECT_FALSE(IsUlid("../../../../../../etc/pass"));
  EXPECT_FALSE(IsUlid(""));
}

TEST(Sha256, AgreesWithTheStandardsExamples) {
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256, OfAFileIsThatOfItsBytes) {
  std::string path = testing::TempDir() + "/ids_test_XXXXXX";
  const int fd = mkstemp(path.data());
  ASSERT_GE(fd, 0);
  const std::string bytes(200000, 'x');
  ASSERT_EQ(write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  close(fd);
  const auto digest = Sha256HexOfFile(path);
  std::remove(path.c_str());
  ASSERT_TRUE(digest.ok());
  EXPECT_EQ(*digest, Sha256Hex(bytes));
}

TEST(Sha256, OfAMissingFileNamesIt) {
  const auto digest = Sha256HexOfFile("/no/such/file");
  ASSERT_FALSE(digest.ok());
  EXPECT_EQ(digest.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(std::string(digest.status().message()).find("/no/such/file"), std::string::npos);
}

}  // namespace
}  // namespace assay
