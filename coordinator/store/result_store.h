// ResultStore and ResultReader: what the coordinator keeps, and the questions that can be asked of
// it.
//
// Nothing is acknowledged before it is durable: Commit returns only when every batch handed to it
// would survive a loss of power. After one failed Commit a store refuses all further ones with the
// first error, rather than guess what reached the disk; reading goes on.
#ifndef ASSAY_COORDINATOR_STORE_RESULT_STORE_H_
#define ASSAY_COORDINATOR_STORE_RESULT_STORE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/cell/rows.h"

namespace assay {

// Of the import of one batch; zeros where it has none.
struct ImportCounts {
  uint64_t attempts_new = 0;
  uint64_t attempts_known = 0;
};

// Thread rule: one thread at a time (the store thread, once it runs).
class ResultStore {
 public:
  virtual ~ResultStore() = default;

  // All that the state thread needs at start. DataLoss where a row cannot be understood.
  virtual absl::StatusOr<StateSnapshot> Load() = 0;

  // Writes the batches in this order, all or none, and makes them durable. One entry a batch.
  // ResourceExhausted (disk full), PermissionDenied (read-only), DataLoss, Internal.
  virtual absl::StatusOr<std::vector<ImportCounts>> Commit(std::span<const Batch> batches) = 0;
};

// One run in a list.
struct RunOverview {
  RunRow run;                            // without yaml
  std::map<Outcome, uint64_t> outcomes;  // of its cells that have one
  // Of a sliced run: those that have a cell here, in order.
  std::vector<uint32_t> slices;
};

// A cell and, where it has one, its counted attempt (without log_tail and cell_file).
struct CellResult {
  CellRow cell;
  std::optional<AttemptRow> attempt;
};

// What the runner of peaks calls itself (runners/peaks); an index of the store is for it.
inline constexpr char kPeaksRunner[] = "assay-peaks";

// A cell with its spec, of whatever run.
struct SpecResult {
  Spec spec;
  CellResult result;
};

// Thread rule: one thread at a time, which need not be the store's: a reader sees what was
// committed before its call. Ids are full ones. NotFound names the run.
class ResultReader {
 public:
  virtual ~ResultReader() = default;

  // Newest first.
  virtual absl::StatusOr<std::vector<RunOverview>> ListRuns() = 0;
  // Full id of `text`: an id, a unique prefix of one (in either case), or "last". NotFound where
  // there is none, InvalidArgument where a prefix fits several.
  virtual absl::StatusOr<std::string> ResolveRun(const std::string& text) = 0;
  virtual absl::StatusOr<RunRow> GetRun(const std::string& run) = 0;
  // In the order of spec.index.
  virtual absl::StatusOr<std::vector<Spec>> ListSpecs(const std::string& run) = 0;
  // The run as event::Rerun wants it: attempts without record, log tail and cell file.
  virtual absl::StatusOr<RunSnapshot> LoadRun(const std::string& run) = 0;
  // Cells of the run, spec and target of `cell`, itself among them, by number.
  virtual absl::StatusOr<std::vector<CellResult>> ListRepeats(const CellRow& cell) = 0;
  // At most `limit` cells with a number over `after`, in order.
  virtual absl::StatusOr<std::vector<CellResult>> ListCells(const std::string& run, uint64_t after,
                                                            uint32_t limit) = 0;
  // NotFound names run and cell.
  virtual absl::StatusOr<CellResult> GetCell(const std::string& run, uint64_t cell) = 0;
  // All attempts of a cell in full, by number.
  virtual absl::StatusOr<std::vector<AttemptRow>> ListAttempts(const std::string& run,
                                                               uint64_t cell) = 0;
  // The cells of all runs whose counted attempt is of the runner assay-peaks and ok.
  virtual absl::StatusOr<std::vector<SpecResult>> ListPeaks() = 0;
};

}  // namespace assay

#endif  // ASSAY_COORDINATOR_STORE_RESULT_STORE_H_
