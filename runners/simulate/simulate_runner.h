// SimulateRunner: assay-simulate. Answers as a real runner does, from a roofline of a card of the
// catalogue, or misbehaves on command (behaviour.h). All that it yields is simulated.
#ifndef ASSAY_RUNNERS_SIMULATE_SIMULATE_RUNNER_H_
#define ASSAY_RUNNERS_SIMULATE_SIMULATE_RUNNER_H_

#include <string>
#include <vector>

#include "runners/common/runner_main.h"

namespace assay::simulate {

class SimulateRunner final : public Runner {
 public:
  // `rules` as ASSAY_SIMULATE has them.
  explicit SimulateRunner(std::string rules) : rules_(std::move(rules)) {}

  std::string Name() const override { return "assay-simulate"; }
  std::string Version() const override;
  nlohmann::json StackInfo() override;
  std::vector<std::string> Models() const override;
  nlohmann::json Describe(const std::string& model) override;
  RunnerResult Run(const CellFile& cell, RecordWriter& records) override;

 private:
  const std::string rules_;
};

}  // namespace assay::simulate

#endif  // ASSAY_RUNNERS_SIMULATE_SIMULATE_RUNNER_H_
