#include "common/yaml/yaml_tree.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "common/status/status.h"

namespace assay {
namespace {

std::string TreeRefusal(std::string_view text, YamlLimits limits = {}) {
  Diagnostics diagnostics("f");
  const YamlPtr root = ParseYaml(text, limits, &diagnostics);
  EXPECT_EQ(root == nullptr, !diagnostics.empty());
  return Message(diagnostics.ToStatus());
}

YamlPtr Tree(std::string_view text) {
  Diagnostics diagnostics("f");
  YamlPtr root = ParseYaml(text, {}, &diagnostics);
  EXPECT_TRUE(diagnostics.empty()) << Message(diagnostics.ToStatus());
  return root != nullptr ? root : std::make_shared<YamlNode>();
}

TEST(YamlTree, KeepsOrderPositionsAndQuotes) {
  const YamlPtr root = Tree("b: 'x'\na: [1, \"2\"]\n");
  ASSERT_EQ(root->entries.size(), 2u);
  EXPECT_EQ(root->entries[0].key, "b");
  EXPECT_TRUE(root->entries[0].value->quoted);
  EXPECT_EQ(root->entries[1].key_at, (Position{2, 1}));
  ASSERT_EQ(root->entries[1].value->items.size(), 2u);
  EXPECT_FALSE(root->entries[1].value->items[0]->quoted);
  EXPECT_EQ(root->entries[1].value->items[1]->at, (Position{2, 8}));
}

TEST(YamlTree, AnAliasIsTheAnchorsValue) {
  const YamlPtr root = Tree("a: &x [1, 2]\nb: *x\n");
  EXPECT_EQ(root->Find("b")->value->items.size(), 2u);
  EXPECT_EQ(root->weight, 7u);
}

// Case 49: YAML that kills the parser.
TEST(YamlTree, Case49DeepNestingIsRefusedInOneLine) {
  EXPECT_EQ(TreeRefusal(std::string(100'000, '[')),
            "f:1:65: (file): nested deeper than 64 levels; flatten it");
  std::string block;
  for (int i = 0; i < 200; ++i) block += std::string(static_cast<size_t>(2 * i), ' ') + "a:\n";
  EXPECT_EQ(TreeRefusal(block), "f:64:127: (file): nested deeper than 64 levels; flatten it");
  std::string dashes;
  for (int i = 0; i < 10'000; ++i) dashes += "- ";
  EXPECT_EQ(TreeRefusal(dashes + "x"), "f:1:129: (file): nested deeper than 64 levels; flatten it");
  std::string questions;
  for (int i = 0; i < 10'000; ++i) questions += "? ";
  EXPECT_EQ(TreeRefusal(questions + "x"),
            "f:1:3: (file): a key is a list or a map; write a plain word");
}

TEST(YamlTree, AllowedDepthIsRead) {
  std::string text(63, '[');
  text += "x" + std::string(63, ']');
  EXPECT_EQ(Tree(text)->height, 64);
}

TEST(YamlTree, Case49DepthThroughAliasesCounts) {
  std::string text = "a0: &a0 [x]\n";
  for (int i = 1; i < 5000; ++i) {
    const std::string before = std::to_string(i - 1), now = std::to_string(i);
    text += "a" + now + ": &a" + now + " [*a" + before + "]\n";
  }
  EXPECT_EQ(TreeRefusal(text), "f:63:12: (file): nested deeper than 64 levels; flatten it");
}

TEST(YamlTree, Case49SelfReferenceIsRefused) {
  EXPECT_EQ(TreeRefusal("&x [*x]"),
            "f:1:5: [0]: the alias refers to an anchor that holds it; write the value out");
  EXPECT_EQ(TreeRefusal("a: &x {b: *x}"),
            "f:1:11: a.b: the alias refers to an anchor that holds it; write the value out");
}

TEST(YamlTree, Case49NineLevelsOfTenAliasesAreRefused) {
  std::string text = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
  for (char level = '1'; level <= '9'; ++level) {
    const std::string alias = std::string("*a") + static_cast<char>(level - 1);
    text += std::string("a") + level + ": &a" + level + " [" + alias;
    for (int i = 1; i < 10; ++i) text += "," + alias;
    text += "]\n";
  }
  EXPECT_EQ(TreeRefusal(text),
            "f:5:38: (file): more than 100000 values, aliases counted as often as used; use ranges "
            "or several files");
}

TEST(YamlTree, Case49NulByteAndControlCharactersAreRefused) {
  EXPECT_EQ(TreeRefusal(std::string_view("a: x\0y", 6)),
            "f:1:5: (file): a NUL byte; this is no text file, or it is damaged");
  // yaml-cpp takes 0x04 for the end of the file and would drop the rest.
  EXPECT_EQ(TreeRefusal("a: 1\n\x04"
                        "b: 2\n"),
            "f:2:1: (file): control character 0x04; take it out");
}

TEST(YamlTree, Case49ByteOrderMarkIsAcceptedAtTheStart) {
  EXPECT_EQ(Tree("\xEF\xBB\xBF"
                 "a: 1")
                ->entries[0]
                .key,
            "a");
}

TEST(YamlTree, BytesThatAreNotUtf8AreRefused) {
  for (const char* bytes : {"\xFF", "\xC0\x80", "\xED\xA0\x80", "\xF5\x80\x80\x80", "\xE2\x82"}) {
    EXPECT_NE(TreeRefusal(std::string("a: ") + bytes).find("is not UTF-8; save the file as UTF-8"),
              std::string::npos);
  }
  EXPECT_EQ(TreeRefusal("a: \xE2\x80\x94"), "");
}

TEST(YamlTree, Case49ATabThatIndentsIsRefused) {
  EXPECT_EQ(TreeRefusal("a:\n\tb: 1\n"),
            "f:2:1: (file): a tab indents this line; YAML wants spaces");
}

TEST(YamlTree, Case49ASecondDocumentIsRefused) {
  EXPECT_EQ(TreeRefusal("a: 1\n---\nb: 2\n"),
            "f:2:1: (file): a second document starts here; keep one to a file");
  EXPECT_EQ(TreeRefusal("---\na: 1\n...\n"), "");
}

TEST(YamlTree, Case49TheSameKeyTwiceIsRefused) {
  EXPECT_EQ(TreeRefusal("a: {b: 1, b: 2}\na: 3\n"),
            "f:1:11: a.b: this key is given twice; keep one of them\n"
            "f:2:1: a: this key is given twice; keep one of them");
}

TEST(YamlTree, TagsMergeKeysAndListsAsKeysAreRefused) {
  EXPECT_EQ(TreeRefusal("a: !!int 3"),
            "f:1:4: a: tag 'tag:yaml.org,2002:int' is not read; leave it out");
  EXPECT_EQ(TreeRefusal("a: &x {b: 1}\nc: {<<: *x}"),
            "f:2:5: c: merge keys (<<) are not read; write the keys out");
  EXPECT_EQ(TreeRefusal("{[1]: 2}"), "f:1:2: (file): a key is a list or a map; write a plain word");
}

TEST(YamlTree, BrokenYamlHasItsPlace) {
  EXPECT_EQ(TreeRefusal("a: [1\n"),
            "f:2:1: (file): not YAML: end of sequence flow not found; look at the brackets, quotes "
            "and indentation here");
  EXPECT_EQ(TreeRefusal("a: *nobody"),
            "f:1:4: (file): not YAML: the referenced anchor is not defined; look at the "
            "brackets, quotes and indentation here");
}

TEST(YamlTree, TooLargeATextIsRefusedUnread) {
  EXPECT_EQ(TreeRefusal(std::string(YamlLimits{}.bytes + 1, 'x')),
            "f:1:1: (file): larger than 1048576 bytes; use ranges or several files");
  EXPECT_EQ(TreeRefusal("a: " + std::string(40'000, 'x')),
            "f:1:32769: (file): a line is longer than 32768 bytes; break it");
}

TEST(YamlTree, NothingAtAllIsRefused) {
  EXPECT_EQ(TreeRefusal(""), "f:1:1: (file): the file is empty; write at least one key");
  EXPECT_EQ(TreeRefusal("# only this\n"),
            "f:1:1: (file): the file is empty; write at least one key");
}

class ReadTextFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/assay-yaml-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string folder_;
};

// Case 49: a 1 GB file.
TEST_F(ReadTextFileTest, Case49AFileOfOneGibibyteIsNotReadIntoMemory) {
  const std::string path = folder_ + "/big.yaml";
  const int fd = open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(ftruncate(fd, off_t{1} << 30), 0);
  close(fd);
  const auto text = ReadTextFile(path, size_t{1} << 20);
  EXPECT_EQ(Message(text.status()),
            path + ":1:1: (file): larger than 1048576 bytes; use ranges or several files");
}

TEST_F(ReadTextFileTest, AnEndlessFileIsLeftAfterTheLimit) {
  EXPECT_FALSE(ReadTextFile("/dev/zero", size_t{1} << 20).ok());
}

TEST_F(ReadTextFileTest, AFileOfExactlyTheLimitIsRead) {
  const std::string path = folder_ + "/f";
  const int fd = open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(write(fd, "12345", 5), 5);
  close(fd);
  EXPECT_EQ(*ReadTextFile(path, 5), "12345");
  EXPECT_FALSE(ReadTextFile(path, 4).ok());
}

TEST_F(ReadTextFileTest, AFolderAndAMissingFileAreNamed) {
  EXPECT_EQ(Message(ReadTextFile(folder_, 10).status()), folder_ + " is a folder; name a file");
  EXPECT_EQ(ReadTextFile(folder_ + "/no", 10).status().code(), absl::StatusCode::kNotFound);
}

TEST(Diagnostics, AreOneLineEachWhateverTheFileHolds) {
  Diagnostics diagnostics("a\nb.yaml");
  diagnostics.Add({2, 3}, "x\ny", "bad\n\x1B[31m\xFF" + std::string(1000, 'z'));
  diagnostics.Add({1, 1}, "", "first");
  const auto lines = diagnostics.Lines();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], "a?b.yaml:1:1: (file): first");
  EXPECT_TRUE(lines[1].starts_with("a?b.yaml:2:3: x?y: bad??[31m?zzz")) << lines[1];
  EXPECT_LT(lines[1].size(), 500u);
}

TEST(NearestWord, IsASmallDistanceAway) {
  const std::vector<std::string_view> words = {"resnet50_v1", "resnet50", "swin_l"};
  EXPECT_EQ(NearestWord("resnet5", words), "resnet50");
  EXPECT_EQ(NearestWord("ResNet50", words), "resnet50");
  EXPECT_EQ(NearestWord("rsenet50", words), "resnet50");
  EXPECT_EQ(NearestWord("vgg", words), "");
  EXPECT_EQ(NearestWord("", words), "");
  EXPECT_EQ(NearestWord(std::string(100'000, 'r'), words), "");
}

}  // namespace
}  // namespace assay
