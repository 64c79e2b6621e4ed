#include "common/net/transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using ::testing::HasSubstr;

const TlsFiles kFiles = {"ca.crt", "c.crt", "c.key"};

std::string Refusal(const Transport& transport, const char* address) {
  const absl::Status status = CheckTransport(transport, *ParseAddress(address));
  EXPECT_TRUE(status.ok() || absl::IsInvalidArgument(status));
  return std::string(status.message());
}

TEST(TransportTest, PlainTextStaysOnThisMachine) {
  for (const char* text : {"unix:/a", "127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "localhost:1"}) {
    EXPECT_EQ(Refusal({}, text), "") << text;
  }
  for (const char* text : {"0.0.0.0:1", "[::]:1", "10.0.0.1:1", "localhost.example.com:1"}) {
    EXPECT_THAT(Refusal({}, text), HasSubstr("--tls-ca")) << text;
    EXPECT_THAT(Refusal({}, text), HasSubstr("--insecure")) << text;
    EXPECT_EQ(Refusal({kFiles, false}, text), "") << text;
    EXPECT_EQ(Refusal({{}, true}, text), "") << text;
  }
}

TEST(TransportTest, TlsFilesComeTogether) {
  EXPECT_THAT(Refusal({{"ca", "crt", ""}, false}, "10.0.0.1:1"), HasSubstr("--tls-key is missing"));
  EXPECT_THAT(Refusal({{"ca", "", "key"}, false}, "unix:/a"), HasSubstr("--tls-cert is missing"));
  EXPECT_THAT(Refusal({{"", "crt", "key"}, false}, "[::1]:1"), HasSubstr("--tls-ca is missing"));
}

TEST(TransportTest, TlsAndInsecureContradict) {
  EXPECT_THAT(Refusal({kFiles, true}, "10.0.0.1:1"), HasSubstr("one or the other"));
}

TEST(TransportTest, SocketsStayPlainAndLoopbackTakesTlsWhereItIsGiven) {
  const Transport tls = {kFiles, false};
  EXPECT_FALSE(tls.UsesTls(*ParseAddress("unix:/a")));
  EXPECT_TRUE(tls.UsesTls(*ParseAddress("127.0.0.1:1")));
  EXPECT_FALSE(Transport().UsesTls(*ParseAddress("127.0.0.1:1")));
}

TEST(TransportTest, OnlyPlainTextToElsewhereIsOpen) {
  const Transport insecure = {{}, true};
  EXPECT_TRUE(insecure.IsOpen(*ParseAddress("0.0.0.0:1")));
  EXPECT_FALSE(insecure.IsOpen(*ParseAddress("127.0.0.1:1")));
  EXPECT_FALSE((Transport{kFiles, false}).IsOpen(*ParseAddress("0.0.0.0:1")));
}

}  // namespace
}  // namespace assay
