#include "common/certs/authority.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <set>
#include <sstream>

#include "tests/unit/certs/temp_dir.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = Identity::Kind;
using std::chrono::days;

std::string Contents(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

mode_t ModeOf(const std::string& path) {
  struct stat info = {};
  return stat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
}

class AuthorityTest : public ::testing::Test {
 protected:
  AuthorityTest() : dir_(temp_.path() + "/certs") {
    EXPECT_TRUE(Authority::Create(dir_, "Lab CA", kAuthorityDays, false, kNow).ok());
  }
  Authority Opened() { return Authority::Open(dir_).value(); }

  TempDir temp_;
  const std::string dir_;
};

TEST_F(AuthorityTest, KeysAreTheirOwnersAloneWhateverTheUmask) {
  const mode_t old = umask(0);
  const auto issued = Opened().Issue(RequestFor(Kind::kAgent, "n1"), kNow);
  umask(old);
  ASSERT_TRUE(issued.ok());
  EXPECT_EQ(ModeOf(issued->key), 0600u);
  EXPECT_EQ(ModeOf(dir_ + "/ca.key"), 0600u);
  EXPECT_EQ(ModeOf(dir_), 0700u);
  EXPECT_EQ(issued->certificate, dir_ + "/agents/n1.crt");
}

TEST_F(AuthorityTest, AnAuthorityIsNeverOverwritten) {
  const std::string key = Contents(dir_ + "/ca.key");
  const std::string certificate = Contents(dir_ + "/ca.crt");
  const auto again = Authority::Create(dir_, "Other", kAuthorityDays, false, kNow);
  EXPECT_EQ(again.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(again.status().message()), HasSubstr("--renew"));
  EXPECT_EQ(Contents(dir_ + "/ca.key"), key);
  EXPECT_EQ(Contents(dir_ + "/ca.crt"), certificate);
}

TEST_F(AuthorityTest, ARenewedAuthorityKeepsItsKeyAndWhatItSigned) {
  const auto agent = Opened().Issue(RequestFor(Kind::kAgent, "n1"), kNow);
  const std::string key = Contents(dir_ + "/ca.key");
  ASSERT_TRUE(Authority::Create(dir_, "ignored", 100, true, kNow + days(10)).ok());
  EXPECT_EQ(Contents(dir_ + "/ca.key"), key);
  const auto authority = Certificate::Load(dir_ + "/ca.crt");
  EXPECT_EQ(authority->common_name(), "Lab CA");
  EXPECT_EQ(authority->not_after(), kNow + days(110));
  EXPECT_EQ(
      X509_verify(Certificate::Load(agent->certificate)->get(), X509_get0_pubkey(authority->get())),
      1);
}

TEST_F(AuthorityTest, ACertificateSaysForWhomItIs) {
  const auto user = Opened().Issue(RequestFor(Kind::kUser, "alice", Role::kSubmit), kNow);
  ASSERT_TRUE(user.ok());
  const auto certificate = Certificate::Load(user->certificate);
  EXPECT_EQ(*certificate->identity(), (Identity{Kind::kUser, "alice", Role::kSubmit}));
  EXPECT_FALSE(certificate->is_authority());
  EXPECT_EQ(X509_get_extension_flags(certificate->get()) & EXFLAG_CA, 0u);
  EXPECT_EQ(X509_get_extended_key_usage(certificate->get()), uint32_t{XKU_SSL_CLIENT});
  const int at = X509_get_ext_by_NID(certificate->get(), NID_basic_constraints, -1);
  ASSERT_GE(at, 0);
  EXPECT_EQ(X509_EXTENSION_get_critical(X509_get_ext(certificate->get(), at)), 1);
}

TEST_F(AuthorityTest, ACoordinatorIsGoodForItsNamesAndAddresses) {
  const auto issued = Opened().Issue(RequestFor(Kind::kCoordinator), kNow);
  ASSERT_TRUE(issued.ok());
  const auto certificate = Certificate::Load(issued->certificate);
  EXPECT_THAT(certificate->hosts(), ElementsAre("gpu.example.com", "10.1.2.3", "::1"));
  X509* x509 = certificate->get();
  EXPECT_EQ(X509_check_host(x509, "gpu.example.com", 0, 0, nullptr), 1);
  EXPECT_EQ(X509_check_ip_asc(x509, "10.1.2.3", 0), 1);
  EXPECT_EQ(X509_check_ip_asc(x509, "::1", 0), 1);
  EXPECT_EQ(X509_check_host(x509, "other.example.com", 0, 0, nullptr), 0);
  EXPECT_EQ(X509_get_extended_key_usage(x509), uint32_t{XKU_SSL_SERVER});
}

TEST_F(AuthorityTest, HostsThatWouldSayMoreAreRefused) {
  for (const char* host : {"", "a,DNS:b", "a:7070", "[::1]", "a/b", "URI:x", "*"}) {
    CertificateRequest request = RequestFor(Kind::kCoordinator);
    request.hosts = {host};
    EXPECT_EQ(Opened().Issue(request, kNow).status().code(), absl::StatusCode::kInvalidArgument)
        << host;
  }
}

TEST_F(AuthorityTest, NamesThatWouldLeaveTheFolderAreRefused) {
  for (const char* name : {"../n1", "a/b", "", ".x"}) {
    EXPECT_EQ(Opened().Issue(RequestFor(Kind::kAgent, name), kNow).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST_F(AuthorityTest, RenewalKeepsKeyAndNamesAndGivesANewValidity) {
  const auto first = Opened().Issue(RequestFor(Kind::kCoordinator), kNow);
  const std::string key = Contents(first->key);
  CertificateRequest renewal = RequestFor(Kind::kCoordinator);
  renewal.hosts.clear();
  renewal.renew = true;
  renewal.days = 30;
  const auto second = Opened().Issue(renewal, kNow + days(300));
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(Contents(second->key), key);
  const auto certificate = Certificate::Load(second->certificate);
  EXPECT_EQ(certificate->hosts().size(), 3u);
  EXPECT_EQ(certificate->not_after(), kNow + days(330));
}

TEST_F(AuthorityTest, RenewalKeepsTheRole) {
  ASSERT_TRUE(Opened().Issue(RequestFor(Kind::kUser, "bob", Role::kView), kNow).ok());
  CertificateRequest renewal = RequestFor(Kind::kUser, "bob", Role::kAdmin);
  renewal.renew = true;
  const auto refused = Opened().Issue(renewal, kNow);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("role view"));
}

TEST_F(AuthorityTest, WhatIsThereIsRenewedOnlyWhenAsked) {
  ASSERT_TRUE(Opened().Issue(RequestFor(Kind::kAgent, "n1"), kNow).ok());
  const auto again = Opened().Issue(RequestFor(Kind::kAgent, "n1"), kNow);
  EXPECT_EQ(again.status().code(), absl::StatusCode::kAlreadyExists);
  CertificateRequest renewal = RequestFor(Kind::kAgent, "n2");
  renewal.renew = true;
  EXPECT_EQ(Opened().Issue(renewal, kNow).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(AuthorityTest, AKeyLeftByAnInterruptedCommandIsUsed) {
  const auto issued = Opened().Issue(RequestFor(Kind::kAgent, "n1"), kNow);
  const std::string key = Contents(issued->key);
  ASSERT_EQ(unlink(issued->certificate.c_str()), 0);
  ASSERT_TRUE(Opened().Issue(RequestFor(Kind::kAgent, "n1"), kNow).ok());
  EXPECT_EQ(Contents(issued->key), key);
}

TEST_F(AuthorityTest, NothingOutlivesTheAuthority) {
  CertificateRequest request = RequestFor(Kind::kAgent, "n1");
  request.days = kMostCertificateDays;
  const auto issued = Opened().Issue(request, kNow);
  ASSERT_TRUE(issued.ok());
  EXPECT_TRUE(issued->cut);
  EXPECT_EQ(issued->not_after, kNow + days(kAuthorityDays));
  const auto late = Opened().Issue(RequestFor(Kind::kAgent, "n2"), kNow + days(4000));
  EXPECT_THAT(std::string(late.status().message()), HasSubstr("expired"));
}

TEST_F(AuthorityTest, DaysAreCountedFromOne) {
  for (const int count : {0, -1, kMostCertificateDays + 1}) {
    CertificateRequest request = RequestFor(Kind::kAgent, "n1");
    request.days = count;
    EXPECT_EQ(Opened().Issue(request, kNow).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST_F(AuthorityTest, SerialNumbersDiffer) {
  std::set<std::string> serials;
  for (int i = 0; i < 8; ++i) {
    const auto issued = Opened().Issue(RequestFor(Kind::kAgent, "n" + std::to_string(i)), kNow);
    const auto certificate = Certificate::Load(issued->certificate);
    const ASN1_INTEGER* serial = X509_get0_serialNumber(certificate->get());
    EXPECT_GE(ASN1_STRING_length(serial), 12);
    serials.emplace(reinterpret_cast<const char*>(ASN1_STRING_get0_data(serial)),
                    ASN1_STRING_length(serial));
  }
  EXPECT_EQ(serials.size(), 8u);
}

TEST_F(AuthorityTest, ListNamesAllAndWhatCannotBeRead) {
  ASSERT_TRUE(Opened().Issue(RequestFor(Kind::kCoordinator), kNow).ok());
  ASSERT_TRUE(Opened().Issue(RequestFor(Kind::kAgent, "n1"), kNow).ok());
  ASSERT_TRUE(Opened().Issue(RequestFor(Kind::kUser, "al", Role::kAdmin), kNow).ok());
  std::ofstream(dir_ + "/users/broken.crt") << "no certificate";
  const auto list = Authority::List(dir_);
  ASSERT_TRUE(list.ok());
  std::vector<std::string> words;
  for (const ListedCertificate& item : *list) words.push_back(item.what);
  EXPECT_THAT(words, ElementsAre("authority Lab CA", "a coordinator", "the agent of n1",
                                 "user al (admin)", HasSubstr("no certificate")));
}

TEST(NoAuthorityTest, SaysHowToMakeOne) {
  TempDir temp;
  EXPECT_THAT(std::string(Authority::Open(temp.path()).status().message()),
              HasSubstr("assay certs init"));
  EXPECT_EQ(Authority::List(temp.path()).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace assay
