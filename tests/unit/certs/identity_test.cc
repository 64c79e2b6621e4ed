#include "common/net/identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using ::testing::HasSubstr;

TEST(IdentityTest, UriGoesThereAndBack) {
  for (const Identity& identity : {Identity{Identity::Kind::kCoordinator, "", Role::kView},
                                   Identity{Identity::Kind::kAgent, "node-1.a_b", Role::kView},
                                   Identity{Identity::Kind::kUser, "alice", Role::kSubmit},
                                   Identity{Identity::Kind::kUser, "bob", Role::kAdmin}}) {
    const auto back = IdentityFromUri(identity.Uri());
    ASSERT_TRUE(back.ok()) << identity.Uri();
    EXPECT_EQ(*back, identity);
  }
}

TEST(IdentityTest, AnythingElseIsNoIdentity) {
  for (const char* uri :
       {"", "assay://", "assay://user/alice", "assay://user/alice/root", "assay://user//admin",
        "assay://user/a/admin/x", "assay://user/../admin", "assay://agent/", "assay://agent/a/b",
        "assay://agent/a b", "assay://coordinator/", "https://user/alice/admin",
        "ASSAY://coordinator", "assay://agent/\x01", "spiffe://x/agent/n"}) {
    const auto identity = IdentityFromUri(uri);
    EXPECT_EQ(identity.status().code(), absl::StatusCode::kInvalidArgument) << uri;
  }
}

TEST(IdentityTest, EachRoleMayDoWhatTheOnesBeforeItMay) {
  const auto user = [](Role role) { return Identity{Identity::Kind::kUser, "u", role}; };
  EXPECT_TRUE(user(Role::kView).May(Role::kView));
  EXPECT_FALSE(user(Role::kView).May(Role::kSubmit));
  EXPECT_TRUE(user(Role::kSubmit).May(Role::kView));
  EXPECT_FALSE(user(Role::kSubmit).May(Role::kAdmin));
  EXPECT_TRUE(user(Role::kAdmin).May(Role::kAdmin));
}

TEST(IdentityTest, OnlyUsersAndTheLocalUserMayAnything) {
  for (const auto kind :
       {Identity::Kind::kNobody, Identity::Kind::kAgent, Identity::Kind::kCoordinator}) {
    EXPECT_FALSE((Identity{kind, "n", Role::kAdmin}).May(Role::kView));
  }
  EXPECT_TRUE((Identity{Identity::Kind::kOpen, "", Role::kView}).May(Role::kAdmin));
}

TEST(IdentityTest, NamesThatCouldLeaveAFolderAreRefused) {
  for (const char* name :
       {"", ".", "..", "../x", "a/b", "-rf", ".hidden", "a b", "a\n", "\xc3\xa4"}) {
    EXPECT_FALSE(CheckIdentityName(name, "node name").ok()) << name;
  }
  EXPECT_FALSE(CheckIdentityName(std::string(65, 'a'), "node name").ok());
  EXPECT_TRUE(CheckIdentityName(std::string(64, 'a'), "node name").ok());
  EXPECT_THAT(std::string(CheckIdentityName("a/b", "node name").message()),
              HasSubstr("node name 'a/b'"));
}

TEST(IdentityTest, AWrongRoleIsToldTheRightOnes) {
  EXPECT_THAT(std::string(RoleFromName("root").status().message()),
              HasSubstr("view, submit or admin"));
}

}  // namespace
}  // namespace assay
