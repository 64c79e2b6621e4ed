// The .assay file: one run with all that was measured, to be carried to another coordinator.
//
//   {"assay_file":1,"result_schema":1,"version":"0.1.0","run":"01J..."}
//   {"kind":"run","row":{...}}
//   {"kind":"spec","row":{...}}        each spec, by index
//   {"kind":"cell","row":{...}}        each cell, by number, with behind it
//   {"kind":"attempt","row":{...}}     its attempts with their records
//   {"kind":"end","specs":N,"cells":N,"attempts":N,"sha256":"<of every byte before this line>"}
//
// One JSON object a line. A file without its last line, or of which a byte changed, is refused
// whole. Several such files may stand one behind the other. Thread rule: one owner each.
#ifndef ASSAY_COORDINATOR_API_ASSAY_FILE_H_
#define ASSAY_COORDINATOR_API_ASSAY_FILE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/cell/rows.h"
#include "coordinator/store/result_store.h"

namespace assay {

inline constexpr int kAssayFileVersion = 1;
// A line is a matrix text of 1 MiB, escaped, or an attempt.
inline constexpr size_t kMaxAssayLineBytes = size_t{8} << 20;
inline constexpr uint64_t kMaxAssayFileBytes = uint64_t{1} << 30;

// SHA-256 over a growing text.
class RunningHash;

// Writes the file of one run, piece by piece.
class AssayFileWriter {
 public:
  // `reader` outlives this; `run` is a full id.
  AssayFileWriter(ResultReader& reader, std::string run);
  ~AssayFileWriter();

  // The next piece, of about `bytes`; empty at the end.
  absl::StatusOr<std::string> Next(size_t bytes);

 private:
  absl::Status Begin();
  absl::Status AddCells();
  void Add(const std::string& line);

  ResultReader& reader_;
  const std::string run_;
  std::unique_ptr<RunningHash> hash_;
  std::string pending_;
  bool begun_ = false;
  bool ended_ = false;
  uint64_t last_cell_ = 0;
  uint64_t specs_ = 0, cells_ = 0, attempts_ = 0;
};

// Reads one or several files, piece by piece, into the rows of one import.
class AssayFileReader {
 public:
  AssayFileReader();
  ~AssayFileReader();

  // InvalidArgument with the line's number; then nothing more is taken.
  absl::Status Feed(std::string_view piece);
  // After the last piece: the rows, or InvalidArgument where the last line is missing.
  absl::StatusOr<Batch::Import> Finish();

 private:
  absl::Status TakeLine(std::string_view line);
  absl::Status TakeHeader(std::string_view line);
  absl::Status TakeRow(const std::string& kind, const std::string& row);
  absl::Status TakeCell(const std::string& row);
  absl::Status TakeAttempt(const std::string& row);
  absl::Status TakeEnd(std::string_view line, const std::string& sha256);

  // What a cell says of the attempt that counts, and whether that was found.
  struct Counted {
    std::string attempt;  // empty where none is needed
    std::optional<Outcome> outcome;
    bool found = false;
  };

  Batch::Import rows_;
  std::unique_ptr<RunningHash> hash_;
  std::string partial_;
  absl::Status failed_;
  uint64_t bytes_ = 0;
  uint64_t line_ = 0;
  bool inside_ = false;
  bool any_ = false;
  std::string run_;  // of the file being read
  bool run_seen_ = false;
  std::set<uint32_t> specs_;
  std::map<uint64_t, Counted> counted_;  // by cell
  uint64_t attempts_ = 0;
};

}  // namespace assay

#endif  // ASSAY_COORDINATOR_API_ASSAY_FILE_H_
