// ReportSpool: reports of ended attempts, kept as files until the coordinator has acknowledged
// them, so that neither a lost session nor a killed agent loses a measurement.
//
//   DIR/ATTEMPT.pb      "assay-spool 1 SHA256 LENGTH\n", then the report as it goes over the wire
//   DIR/ATTEMPT.broken  what could not be read back, set aside for a person to look at
//
// The bytes are opaque here. Owner: NodeAgent. Thread rule: one thread.
#ifndef ASSAY_AGENT_SPOOL_REPORT_SPOOL_H_
#define ASSAY_AGENT_SPOOL_REPORT_SPOOL_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace assay {

class ReportSpool {
 public:
  // Creates `dir` (0700) where it is missing and reads back what is there. A file that is cut,
  // changed or foreign is set aside with a warning. The error is the folder's.
  static absl::StatusOr<ReportSpool> Open(const std::string& dir);

  // Durable when it returns OK: file and folder are synced. After an error the report is still kept
  // in memory and sent; only a restart of the agent would lose it. InvalidArgument for an unsafe
  // id.
  absl::Status Put(const std::string& attempt, const std::string& bytes);
  // Forgets it; of an attempt that is not here: nothing.
  void Remove(const std::string& attempt);
  // A report that the wire refuses, though its checksum is right.
  void SetAside(const std::string& attempt);

  std::vector<std::string> Attempts() const;  // oldest first, since ids are ULIDs
  const std::string* Find(const std::string& attempt) const;

 private:
  explicit ReportSpool(std::string dir) : dir_(std::move(dir)) {}
  std::string PathOf(const std::string& attempt, const char* suffix) const;

  std::string dir_;
  std::map<std::string, std::string> reports_;
};

}  // namespace assay

#endif  // ASSAY_AGENT_SPOOL_REPORT_SPOOL_H_
