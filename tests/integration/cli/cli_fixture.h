// CliTest: a state directory with a FakeServer, and a matrix file that the real checker takes.
#ifndef ASSAY_TESTS_INTEGRATION_CLI_CLI_FIXTURE_H_
#define ASSAY_TESTS_INTEGRATION_CLI_CLI_FIXTURE_H_

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "assay_process.h"
#include "fake_control.h"

namespace assay::cli {

inline constexpr char kMatrix[] =
    "name: fake\naxes:\n  model: [resnet50]\n  batch: [32, 64]\nrepeat: 1\n";

class CliTest : public ::testing::Test {
 protected:
  CliTest() {
    // Short: a Unix socket's path has 107 bytes.
    std::string name = "/tmp/assay-cli-XXXXXX";
    dir_ = mkdtemp(name.data());
    state_ = dir_ + "/s";
    std::filesystem::create_directory(state_);
  }
  ~CliTest() override {
    server_.reset();
    std::filesystem::remove_all(dir_);
  }

  FakeControl& Serve(FakeScript script = {}) {
    server_ = std::make_unique<FakeServer>(state_, std::move(script));
    EXPECT_TRUE(server_->listening());
    return server_->control();
  }
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = dir_ + "/" + name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  std::string Matrix() { return Write("m.yaml", kMatrix); }
  ProcessOptions Options(std::vector<std::string> environment = {}) const {
    ProcessOptions options;
    options.environment = std::move(environment);
    options.environment.push_back("ASSAY_STATE=" + state_);
    return options;
  }
  Finished Assay(const std::vector<std::string>& words,
                 std::vector<std::string> environment = {}) const {
    return RunAssay(words, Options(std::move(environment)));
  }

  std::string dir_;
  std::string state_;
  std::unique_ptr<FakeServer> server_;
};

inline constexpr char kRunId[] = "01JAAAAAAAAAAAAAAAAAAAAA01";

}  // namespace assay::cli

#endif  // ASSAY_TESTS_INTEGRATION_CLI_CLI_FIXTURE_H_
