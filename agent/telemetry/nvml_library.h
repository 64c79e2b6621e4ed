// NvmlLibrary: the NVML of this machine, by dlopen, so that the agent starts where there is none.
//
// Owner: main, for the life of the agent; nvmlShutdown is called by the destructor. The first call
// initialises; an initialisation that failed is tried again by the next Describe, since a driver
// may be loaded later. Thread rule: any thread; calls are made one at a time.
#ifndef ASSAY_AGENT_TELEMETRY_NVML_LIBRARY_H_
#define ASSAY_AGENT_TELEMETRY_NVML_LIBRARY_H_

#include <memory>
#include <string>

#include "agent/telemetry/nvml.h"

namespace assay {

class NvmlLibrary final : public Nvml {
 public:
  explicit NvmlLibrary(std::string library = "libnvidia-ml.so.1");
  ~NvmlLibrary() override;

  absl::StatusOr<NvmlSystem> Describe() override;
  absl::StatusOr<NvmlSample> Sample(const std::string& uuid) override;
  absl::StatusOr<NvmlState> State(const std::string& uuid) override;
  absl::StatusOr<NvmlLink> Link(const std::string& uuid) override;
  absl::StatusOr<std::vector<int64_t>> Xids(const std::string& uuid) override;
  absl::StatusOr<std::vector<int64_t>> ProcessIds(const std::string& uuid) override;
  bool captured() const override { return false; }

 private:
  class Calls;  // the table of function pointers; the only code that knows NVML's types
  std::unique_ptr<Calls> calls_;
};

}  // namespace assay

#endif  // ASSAY_AGENT_TELEMETRY_NVML_LIBRARY_H_
