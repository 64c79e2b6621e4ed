// Coverage: which states and outcomes the schedules of a test have reached, so that a model whose
// faults have become too tame shows as a failure and not as a green test.
#ifndef ASSAY_TESTS_UNIT_FLEET_MODEL_COVERAGE_H_
#define ASSAY_TESTS_UNIT_FLEET_MODEL_COVERAGE_H_

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

namespace assay::model {

class Coverage {
 public:
  // `kind` and `what` make one name, as in "gang:started".
  void Saw(std::string_view kind, std::string_view what) {
    name_.assign(kind);
    name_ += ':';
    name_ += what;
    ++seen_[name_];
  }
  uint64_t Times(const std::string& name) const {
    const auto it = seen_.find(name);
    return it == seen_.end() ? 0 : it->second;
  }
  // Of `kind`, those of `all` that were never seen, in one line; empty where all were.
  std::string Missing(std::string_view kind, std::initializer_list<std::string_view> all) const {
    std::string missing;
    for (const std::string_view what : all) {
      const std::string name = std::string(kind) + ":" + std::string(what);
      if (Times(name) == 0) missing += (missing.empty() ? "" : ", ") + name;
    }
    return missing;
  }
  const std::map<std::string, uint64_t>& seen() const { return seen_; }

 private:
  std::string name_;
  std::map<std::string, uint64_t> seen_;
};

}  // namespace assay::model

#endif  // ASSAY_TESTS_UNIT_FLEET_MODEL_COVERAGE_H_
