#include "runners/train/loaded_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::train {
namespace {

TEST(LoadedLibrary, LibTorchIsNamedByTheHashOfItsContents) {
  const std::string id = BuildIdOf("libtorch_cpu.so");
  EXPECT_THAT(id, testing::MatchesRegex("[0-9a-f]+")) << id;
  EXPECT_EQ(id.size(), 40u);  // SHA-1, as ld makes it
  EXPECT_NE(BuildIdOf("libc10.so"), id);
}

TEST(LoadedLibrary, WhatIsNotLoadedHasNone) {
  EXPECT_EQ(BuildIdOf("libtorch.so.9"), "");
  EXPECT_EQ(BuildIdOf(""), "");
}

}  // namespace
}  // namespace assay::train
