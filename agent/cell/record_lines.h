// RecordLines: a runner's bytes to lines, in bounded memory.
#ifndef ASSAY_AGENT_CELL_RECORD_LINES_H_
#define ASSAY_AGENT_CELL_RECORD_LINES_H_

#include <functional>
#include <string>
#include <string_view>

#include "common/runner_protocol/records.h"

namespace assay {

// Thread rule: one owner.
class RecordLines {
 public:
  // Calls `line` for each complete line, without its line feed; blank ones are skipped. A line over
  // the protocol's limit is handed on once, cut just above it, and the rest up to the next line
  // feed is dropped: the parser then says that it is too long.
  void Append(std::string_view bytes, const std::function<void(std::string_view)>& line);
  // What came after the last line feed; for the end of the records.
  std::string TakeRest();

 private:
  std::string partial_;
  bool skipping_ = false;
};

}  // namespace assay

#endif  // ASSAY_AGENT_CELL_RECORD_LINES_H_
