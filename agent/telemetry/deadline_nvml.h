// DeadlineNvml: an Nvml whose calls come back. A sick driver hangs inside NVML for minutes; the
// calls are made on a thread of this class, and a caller waits for its deadline only.
//
// While a call hangs, every other call fails at once with DeadlineExceeded that says for how long.
// When the hung call returns, all is as before. Thread rule: any thread.
#ifndef ASSAY_AGENT_TELEMETRY_DEADLINE_NVML_H_
#define ASSAY_AGENT_TELEMETRY_DEADLINE_NVML_H_

#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include "agent/telemetry/nvml.h"

namespace assay {

struct NvmlDeadlines {
  // Describing eight GPUs without persistence mode initialises each: seconds.
  std::chrono::milliseconds describe{15000};
  // A sample takes 1 to 20 ms; a session's destructor waits for at most one.
  std::chrono::milliseconds sample{400};
};

class DeadlineNvml final : public Nvml {
 public:
  explicit DeadlineNvml(std::unique_ptr<Nvml> inner, NvmlDeadlines deadlines = {});
  // Ends the thread; one that hangs inside the driver is left behind with what it uses.
  ~DeadlineNvml() override;

  absl::StatusOr<NvmlSystem> Describe() override;
  absl::StatusOr<NvmlSample> Sample(const std::string& uuid) override;
  absl::StatusOr<NvmlState> State(const std::string& uuid) override;
  absl::StatusOr<NvmlLink> Link(const std::string& uuid) override;
  absl::StatusOr<std::vector<int64_t>> Xids(const std::string& uuid) override;
  absl::StatusOr<std::vector<int64_t>> ProcessIds(const std::string& uuid) override;
  bool captured() const override { return captured_; }

 private:
  struct Shared;
  absl::Status Run(const char* what, std::chrono::milliseconds deadline,
                   std::function<void(Nvml&)> call);
  template <class Answer, class Call>
  absl::StatusOr<Answer> Ask(const char* what, Call call);

  const bool captured_;
  const NvmlDeadlines deadlines_;
  const std::shared_ptr<Shared> state_;
  std::thread thread_;
};

}  // namespace assay

#endif  // ASSAY_AGENT_TELEMETRY_DEADLINE_NVML_H_
