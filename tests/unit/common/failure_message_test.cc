#include "common/runner_protocol/failure_message.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(ShortMessage, ShortTextIsKeptOnOneLine) {
  EXPECT_EQ(ShortMessage(" sizes\n\tdo  not match \r\n"), "sizes do not match");
  EXPECT_EQ(ShortMessage(""), "");
  EXPECT_EQ(ShortMessage(std::string(kMaxFailureMessageBytes, 'x')),
            std::string(kMaxFailureMessageBytes, 'x'));
}

TEST(ShortMessage, LongTextEndsBehindASentence) {
  const std::string first = std::string(200, 'a') + ".";
  EXPECT_EQ(ShortMessage(first + " " + std::string(200, 'b') + "."), first);
  EXPECT_EQ(ShortMessage(std::string(200, 'a') + "; " + std::string(200, 'b')),
            std::string(200, 'a'));
}

TEST(ShortMessage, LongSentenceEndsBehindAWord) {
  std::string text;
  while (text.size() < 1000) text += "word ";
  const std::string cut = ShortMessage(text);
  EXPECT_LE(cut.size(), kMaxFailureMessageBytes);
  EXPECT_EQ(cut.substr(cut.size() - 7), "word...");
}

TEST(ShortMessage, NeverCutsInsideACharacter) {
  for (size_t shift = 0; shift < 4; ++shift) {
    std::string text(shift, 'x');
    while (text.size() < 1000) text += "\xf0\x9f\x94\xa5";
    const std::string cut = ShortMessage(text);
    EXPECT_LE(cut.size(), kMaxFailureMessageBytes);
    EXPECT_EQ((cut.size() - 3 - shift) % 4, 0u);
  }
}

TEST(ShortMessage, TakesAnyBytesAndAnyLength) {
  EXPECT_LE(ShortMessage(std::string(1 << 20, '\xff')).size(), kMaxFailureMessageBytes);
  EXPECT_LE(ShortMessage(std::string(1 << 20, '\x80')).size(), kMaxFailureMessageBytes);
  EXPECT_EQ(ShortMessage(std::string(1 << 20, '\n')), "");
}

TEST(OutOfMemoryMessage, LeavesOutWhatTheTextDoesNotSay) {
  EXPECT_EQ(OutOfMemoryMessage("CUDA error: out of memory"),
            "the GPU's memory is used up: use a smaller batch, or accumulate");
  EXPECT_EQ(OutOfMemoryMessage("CUDA out of memory. Tried to allocate 20.00 MiB."),
            "20.00 MiB more were asked for: use a smaller batch, or accumulate");
  EXPECT_EQ(OutOfMemoryMessage("DefaultCPUAllocator: not enough memory"),
            "the host's memory is used up: use a smaller batch, or accumulate");
  EXPECT_EQ(OutOfMemoryMessage("sizes do not match"), std::nullopt);
}

TEST(OutOfMemoryMessage, SurvivesTextsThatEndEarly) {
  const std::string text =
      "CUDA out of memory. Tried to allocate 2.30 GiB. GPU 0 has a total capacity of 139.72 GiB of "
      "which 7.85 GiB is free.";
  for (size_t size = 0; size <= text.size(); ++size) {
    const auto message = OutOfMemoryMessage(text.substr(0, size));
    EXPECT_EQ(message.has_value(), size >= std::string("CUDA out of memory").size());
  }
}

}  // namespace
}  // namespace assay
