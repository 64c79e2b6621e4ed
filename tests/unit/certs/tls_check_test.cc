#include "common/certs/tls_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "common/certs/authority.h"
#include "tests/unit/certs/temp_dir.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = Identity::Kind;
using std::chrono::days;

class TlsCheckTest : public ::testing::Test {
 protected:
  TlsCheckTest() : dir_(temp_.path() + "/certs") { Make(dir_); }

  static void Make(const std::string& dir) {
    ASSERT_TRUE(Authority::Create(dir, "CA", kAuthorityDays, false, kNow).ok());
    const auto authority = Authority::Open(dir);
    ASSERT_TRUE(authority->Issue(RequestFor(Kind::kAgent, "n1"), kNow).ok());
    ASSERT_TRUE(authority->Issue(RequestFor(Kind::kUser, "al", Role::kAdmin), kNow).ok());
  }
  TlsFiles Agent() const {
    return {dir_ + "/ca.crt", dir_ + "/agents/n1.crt", dir_ + "/agents/n1.key"};
  }
  static std::string Fault(const TlsFiles& files, CertificateTime now = kNow,
                           Kind kind = Kind::kAgent) {
    return std::string(CheckTlsFiles(files, kind, now).status().message());
  }

  TempDir temp_;
  const std::string dir_;
};

TEST_F(TlsCheckTest, GoodFilesSayWhoWeAre) {
  const auto report = CheckTlsFiles(Agent(), Kind::kAgent, kNow);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->identity.name, "n1");
  EXPECT_EQ(report->not_after, kNow + days(kCertificateDays));
  EXPECT_THAT(report->warnings, IsEmpty());
}

TEST_F(TlsCheckTest, ExpiredAndNotYetValidAreToldWithTheTimes) {
  EXPECT_THAT(Fault(Agent(), kNow + days(366)), HasSubstr("expired at 2027-06-01"));
  EXPECT_THAT(Fault(Agent(), kNow - days(1)), HasSubstr("is not valid before"));
}

TEST_F(TlsCheckTest, AnotherAuthorityOfTheSameNameIsTold) {
  const std::string other = temp_.path() + "/other";
  Make(other);
  TlsFiles files = Agent();
  files.ca = other + "/ca.crt";
  EXPECT_THAT(Fault(files), HasSubstr("was not signed by the authority in " + files.ca));
}

TEST_F(TlsCheckTest, AKeyOfAnotherCertificateIsTold) {
  TlsFiles files = Agent();
  files.key = dir_ + "/users/al.key";
  EXPECT_THAT(Fault(files), HasSubstr("is not the key of the certificate"));
}

TEST_F(TlsCheckTest, ACertificateForSomebodyElseIsTold) {
  EXPECT_THAT(Fault(Agent(), kNow, Kind::kUser), HasSubstr("is for the agent of n1"));
  EXPECT_THAT(Fault(Agent(), kNow, Kind::kCoordinator), HasSubstr("assay certs coordinator"));
}

TEST_F(TlsCheckTest, FilesThatCannotBeReadAreNamed) {
  TlsFiles files = Agent();
  files.certificate = dir_ + "/none.crt";
  EXPECT_THAT(Fault(files), HasSubstr("cannot read " + files.certificate));
  files.certificate = dir_;
  EXPECT_THAT(Fault(files), HasSubstr("is no file"));
  files.certificate = dir_ + "/ca.key";
  EXPECT_THAT(Fault(files), HasSubstr("holds no certificate"));
  files = Agent();
  files.key = files.ca;
  EXPECT_THAT(Fault(files), HasSubstr("holds no private key"));
  files = Agent();
  files.ca = files.key;
  EXPECT_THAT(Fault(files), HasSubstr("holds no certificate"));
}

TEST_F(TlsCheckTest, GarbageIsNoCertificateAndDoesNotCrash) {
  TlsFiles files = Agent();
  files.certificate = temp_.path() + "/garbage.crt";
  std::ofstream(files.certificate)
      << "-----BEGIN CERTIFICATE-----\nMIIBAAAAAAAA\n-----END CERTIFICATE-----\n";
  EXPECT_THAT(Fault(files), HasSubstr("holds no certificate"));
}

TEST_F(TlsCheckTest, AKeyThatOthersMayReadIsAWarning) {
  ASSERT_EQ(chmod(Agent().key.c_str(), 0644), 0);
  const auto report = CheckTlsFiles(Agent(), Kind::kAgent, kNow);
  ASSERT_TRUE(report.ok());
  ASSERT_EQ(report->warnings.size(), 1u);
  EXPECT_THAT(report->warnings[0], HasSubstr("chmod 600"));
}

TEST_F(TlsCheckTest, ANearEndIsAWarning) {
  const auto report = CheckTlsFiles(Agent(), Kind::kAgent, kNow + days(360));
  ASSERT_TRUE(report.ok());
  ASSERT_EQ(report->warnings.size(), 1u);
  EXPECT_THAT(report->warnings[0], HasSubstr("--renew"));
}

TEST_F(TlsCheckTest, BothAuthoritiesInOneFileServeAChangeOfAuthority) {
  const std::string other = temp_.path() + "/other";
  Make(other);
  TlsFiles files = Agent();
  files.ca = temp_.path() + "/both.crt";
  std::ofstream both(files.ca);
  both << std::ifstream(other + "/ca.crt").rdbuf() << std::ifstream(dir_ + "/ca.crt").rdbuf();
  both.close();
  EXPECT_TRUE(CheckTlsFiles(files, Kind::kAgent, kNow).ok());
}

}  // namespace
}  // namespace assay
