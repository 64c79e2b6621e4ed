// StackManifests: the stacks that this node's operator installed, one JSON manifest each.
//
//   {"name": "libtorch-2.11.0", "program": "../../../bin/assay-train",
//    "env": {"LD_LIBRARY_PATH": "/opt/torch/lib"}}
//
// `program` is absolute or relative to the manifest; `env` (optional) is set for every run of it
// and for --stack-info. A manifest that cannot be read or is wrong is a warning and left out; a
// program that does not start or answer is a stack with an unusable_reason. Each program is asked
// once and asked again only when its file or manifest has changed. Thread rule: one thread.
#ifndef ASSAY_AGENT_INVENTORY_STACK_MANIFESTS_H_
#define ASSAY_AGENT_INVENTORY_STACK_MANIFESTS_H_

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/cell/ports.h"

namespace assay {

// "share/assay/stacks" beside the folder of this program.
std::string DefaultStacksDir();

// One manifest's text. InvalidArgument with one sentence that names file and key. The stack's name
// is set, nothing else of it.
absl::StatusOr<StackProgram> ParseStackManifest(const std::string& json, const std::string& path);

// What --stack-info printed, into `stack`. InvalidArgument with one sentence.
absl::Status ParseStackInfo(const std::string& json, Stack& stack);

class StackManifests {
 public:
  explicit StackManifests(std::string dir,
                          std::chrono::milliseconds deadline = std::chrono::seconds(10));

  // Reads the folder again and appends what is wrong to `warnings`.
  void Refresh(std::vector<std::string>& warnings);

  // By name; newest version last in name order.
  const std::vector<StackProgram>& programs() const { return programs_; }
  absl::StatusOr<StackProgram> Find(const std::string& name) const;

 private:
  struct Known {
    std::string stamp;  // of manifest and program file
    StackProgram program;
  };
  void ReadOne(const std::string& path, std::vector<std::string>& warnings);
  void Ask(StackProgram& program) const;

  const std::string dir_;
  const std::chrono::milliseconds deadline_;
  std::map<std::string, Known> known_;  // by manifest path
  std::vector<StackProgram> programs_;
};

}  // namespace assay

#endif  // ASSAY_AGENT_INVENTORY_STACK_MANIFESTS_H_
