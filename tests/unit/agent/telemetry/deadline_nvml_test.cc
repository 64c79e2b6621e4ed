#include "agent/telemetry/deadline_nvml.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

#include "agent/telemetry/fake_nvml.h"

namespace assay {
namespace {

// Hangs in Describe until it is let go.
struct Gate {
  std::mutex mutex;
  std::condition_variable changed;
  bool open = false;
  bool left = false;
  void Open() {
    std::lock_guard lock(mutex);
    open = true;
    changed.notify_all();
  }
};

class HungNvml final : public Nvml {
 public:
  explicit HungNvml(std::shared_ptr<Gate> gate) : gate_(std::move(gate)) {}
  absl::StatusOr<NvmlSystem> Describe() override {
    std::unique_lock lock(gate_->mutex);
    gate_->changed.wait(lock, [&] { return gate_->open; });
    gate_->left = true;
    gate_->changed.notify_all();
    return NvmlSystem{"1.0", {}};
  }
  absl::StatusOr<NvmlSample> Sample(const std::string&) override { return NvmlSample{}; }
  absl::StatusOr<NvmlState> State(const std::string&) override { return NvmlState{}; }
  absl::StatusOr<NvmlLink> Link(const std::string&) override { return NvmlLink{}; }
  absl::StatusOr<std::vector<int64_t>> Xids(const std::string&) override {
    return std::vector<int64_t>{};
  }
  absl::StatusOr<std::vector<int64_t>> ProcessIds(const std::string&) override {
    return std::vector<int64_t>{};
  }
  bool captured() const override { return false; }

 private:
  std::shared_ptr<Gate> gate_;
};

constexpr NvmlDeadlines kShort{std::chrono::milliseconds(20), std::chrono::milliseconds(20)};

TEST(DeadlineNvml, PassesAnswersThrough) {
  DeadlineNvml nvml(std::make_unique<FakeNvml>(NvmlSystem{"535.1", {}}));
  ASSERT_TRUE(nvml.Describe().ok());
  EXPECT_EQ(nvml.Describe()->driver_version, "535.1");
  EXPECT_TRUE(nvml.captured());
  EXPECT_EQ(nvml.Sample("GPU-1").status().code(), absl::StatusCode::kNotFound);
}

// Case 39's neighbour: a driver that does not answer at all.
TEST(DeadlineNvml, AHungCallFailsAtItsDeadlineAndTheNextAtOnce) {
  auto gate = std::make_shared<Gate>();
  DeadlineNvml nvml(std::make_unique<HungNvml>(gate), kShort);
  EXPECT_EQ(nvml.Describe().status().code(), absl::StatusCode::kDeadlineExceeded);
  const auto next = nvml.Sample("GPU-1").status();
  EXPECT_EQ(next.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_NE(next.message().find("has not answered for"), absl::string_view::npos);
  gate->Open();
}

TEST(DeadlineNvml, WorksAgainWhenTheHungCallReturns) {
  auto gate = std::make_shared<Gate>();
  DeadlineNvml nvml(std::make_unique<HungNvml>(gate),
                    {std::chrono::milliseconds(20), std::chrono::seconds(10)});
  EXPECT_FALSE(nvml.Describe().ok());
  gate->Open();
  {
    std::unique_lock lock(gate->mutex);
    gate->changed.wait(lock, [&] { return gate->left; });
  }
  // The worker leaves the call shortly after; until then calls are refused at once.
  absl::Status status;
  for (int i = 0; i < 100000 && !(status = nvml.Sample("GPU-1").status()).ok(); ++i) {
    std::this_thread::yield();
  }
  EXPECT_TRUE(status.ok()) << status;
}

TEST(DeadlineNvml, DestructionDoesNotWaitForAHungDriver) {
  auto gate = std::make_shared<Gate>();
  {
    DeadlineNvml nvml(std::make_unique<HungNvml>(gate), kShort);
    EXPECT_FALSE(nvml.Describe().ok());
  }
  gate->Open();
}

}  // namespace
}  // namespace assay
