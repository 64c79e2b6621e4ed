#include "agent/inventory/stack_manifests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/agent/host/folder.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kInfo[] =
    R"({"runner":"assay-x","protocol":1,"versions":{"libtorch":"2.11.0","cuda":null},)"
    R"("models":["resnet50"],"precisions":["fp32"],"device_kinds":["gpu"],"max_world_size":8})";

TEST(StackManifest, ProgramIsRelativeToTheManifest) {
  const auto parsed = ParseStackManifest(
      R"({"name":"libtorch-2.11.0","program":"../../../bin/assay-train","env":{"A":"b"}})",
      "/opt/assay/share/assay/stacks/t.json");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->program, "/opt/assay/bin/assay-train");
  EXPECT_EQ(parsed->stack.name, "libtorch-2.11.0");
  EXPECT_EQ(parsed->environment.at("A"), "b");
}

TEST(StackManifest, WrongManifestsAreOneSentenceWithTheFile) {
  for (const char* text :
       {"", "[]", "{", "{}", R"({"name":"a b","program":"x"})", R"({"name":"a"})",
        R"({"name":3,"program":"x"})", R"({"name":"a","program":"x","progam":"y"})",
        R"({"name":"a","program":"x","env":{"A":1}})", R"({"name":"a","program":"x","env":[]})",
        R"({"name":"a","program":"x","env":{"A=B":"c"}})"}) {
    const auto parsed = ParseStackManifest(text, "/f.json");
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_THAT(std::string(parsed.status().message()), HasSubstr("/f.json")) << text;
  }
}

TEST(StackInfo, IsReadWithWhatIsMissingEmpty) {
  Stack stack;
  stack.name = "s";
  ASSERT_TRUE(ParseStackInfo(kInfo, stack).ok());
  EXPECT_EQ(stack.name, "s");
  EXPECT_EQ(stack.versions.at("libtorch"), "2.11.0");
  EXPECT_FALSE(stack.versions.contains("cuda"));
  EXPECT_THAT(stack.models, ElementsAre("resnet50"));
  EXPECT_THAT(stack.lanes, IsEmpty());
  EXPECT_EQ(stack.max_world_size, 8);
}

TEST(StackInfo, GarbageAndOtherProtocolsAreRefused) {
  for (const char* text : {"", "3", "{}", R"({"runner":"x"})", R"({"runner":"x","protocol":9})",
                           R"({"runner":"x","protocol":1,"models":7})",
                           R"({"runner":"x","protocol":1,"models":[7]})"}) {
    Stack stack;
    EXPECT_FALSE(ParseStackInfo(text, stack).ok()) << text;
  }
}

class Manifests : public testing::Test {
 protected:
  void Install(const std::string& name, const std::string& script) {
    dir_.Write("bin/" + name, "#!/bin/sh\n" + script, true);
    dir_.Write("stacks/" + name + ".json",
               R"({"name":")" + name + R"(","program":"../bin/)" + name + R"(","env":{"X":"y"}})");
  }
  std::string Stacks() const { return dir_.path() + "/stacks"; }
  Folder dir_;
  std::vector<std::string> warnings_;
};

TEST_F(Manifests, AStackIsWhatItsProgramSays) {
  Install("good",
          std::string("test \"$X\" = y && test \"$1\" = --stack-info && echo '") + kInfo + "'\n");
  StackManifests manifests(Stacks());
  manifests.Refresh(warnings_);
  EXPECT_THAT(warnings_, IsEmpty());
  const auto found = manifests.Find("good");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->stack.runner, "assay-x");
  EXPECT_EQ(found->stack.digest.size(), 64u);
  EXPECT_EQ(found->environment.at("X"), "y");
}

TEST_F(Manifests, ABadManifestIsAWarningAndTheOthersStay) {
  Install("good", std::string("echo '") + kInfo + "'\n");
  dir_.Write("stacks/bad.json", "{\"name\":");
  dir_.Write("stacks/huge.json", std::string(100000, ' '));
  StackManifests manifests(Stacks());
  manifests.Refresh(warnings_);
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("bad.json"), HasSubstr("huge.json")));
  EXPECT_EQ(manifests.programs().size(), 1u);
}

TEST_F(Manifests, AProgramThatFailsIsUnusableWithItsLastLine) {
  Install(
      "broken",
      "echo noise >&2; echo 'error while loading shared libraries: libtorch.so' >&2; exit 127\n");
  StackManifests manifests(Stacks());
  manifests.Refresh(warnings_);
  ASSERT_EQ(manifests.programs().size(), 1u);
  EXPECT_THAT(manifests.programs()[0].stack.unusable_reason, HasSubstr("libtorch.so"));
  EXPECT_EQ(manifests.Find("broken").status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(Manifests, AProgramThatHangsIsUnusableAfterTheDeadline) {
  Install("hangs", "sleep 600 & sleep 600\n");
  StackManifests manifests(Stacks(), std::chrono::milliseconds(100));
  manifests.Refresh(warnings_);
  EXPECT_THAT(manifests.programs()[0].stack.unusable_reason, HasSubstr("did not answer"));
}

TEST_F(Manifests, AMissingProgramIsUnusable) {
  dir_.Write("stacks/gone.json", R"({"name":"gone","program":"/no/such/program"})");
  StackManifests manifests(Stacks());
  manifests.Refresh(warnings_);
  EXPECT_THAT(manifests.programs()[0].stack.unusable_reason, HasSubstr("/no/such/program"));
}

TEST_F(Manifests, AnUnknownNameIsAnsweredWithTheNamesThereAre) {
  Install("good", std::string("echo '") + kInfo + "'\n");
  StackManifests manifests(Stacks());
  manifests.Refresh(warnings_);
  const auto status = manifests.Find("other").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("good"));
}

TEST_F(Manifests, AProgramIsAskedAgainOnlyWhenItChanged) {
  const std::string log = dir_.path() + "/asked";
  Install("good", "echo x >> " + log + "; echo '" + kInfo + "'\n");
  StackManifests manifests(Stacks());
  const auto asked = [&] { return std::filesystem::file_size(log) / 2; };
  manifests.Refresh(warnings_);
  manifests.Refresh(warnings_);
  EXPECT_EQ(asked(), 1u);
  Install("good", "echo x >> " + log + "; echo '" + kInfo + "' \n");
  manifests.Refresh(warnings_);
  EXPECT_EQ(asked(), 2u);
}

TEST_F(Manifests, TwoManifestsOfOneNameAreAWarning) {
  Install("good", std::string("echo '") + kInfo + "'\n");
  dir_.Write("stacks/other.json", R"({"name":"good","program":"../bin/good"})");
  StackManifests manifests(Stacks());
  manifests.Refresh(warnings_);
  EXPECT_EQ(manifests.programs().size(), 1u);
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("other.json")));
}

TEST_F(Manifests, NoFolderIsAWarning) {
  StackManifests manifests("/no/such/folder");
  manifests.Refresh(warnings_);
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("/no/such/folder")));
}

}  // namespace
}  // namespace assay
