#include "coordinator/api/assay_file.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "common/ids/ids.h"
#include "common/matrix/matrix.h"
#include "common/status/status.h"
#include "common/version.h"
#include "coordinator/store/row_json.h"

namespace assay {

class RunningHash {
 public:
  RunningHash() : context_(EVP_MD_CTX_new()) { EVP_DigestInit_ex(context_, EVP_sha256(), nullptr); }
  ~RunningHash() { EVP_MD_CTX_free(context_); }
  RunningHash(const RunningHash&) = delete;
  RunningHash& operator=(const RunningHash&) = delete;

  void Add(std::string_view bytes) { EVP_DigestUpdate(context_, bytes.data(), bytes.size()); }
  // Of all that was added since the last call.
  std::string Take() {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    EVP_DigestFinal_ex(context_, digest, &size);
    EVP_DigestInit_ex(context_, EVP_sha256(), nullptr);
    std::string hex;
    for (unsigned i = 0; i < size; ++i) hex += fmt::format("{:02x}", digest[i]);
    return hex;
  }

 private:
  EVP_MD_CTX* context_;
};

namespace {

using Json = nlohmann::json;

constexpr uint32_t kCellsAPiece = 64;
constexpr int kMaxDepth = 10;

std::string Line(const char* kind, const std::string& row) {
  return fmt::format("{{\"kind\":\"{}\",\"row\":{}}}\n", kind, row);
}

// Discarded where the line is no JSON object or is nested too deeply.
Json ParseLine(std::string_view line) {
  const Json::parser_callback_t shallow = [](int depth, Json::parse_event_t, Json&) {
    return depth <= kMaxDepth;
  };
  Json json = Json::parse(line, shallow, /*allow_exceptions=*/false);
  return json.is_object() ? json : Json(Json::value_t::discarded);
}

std::string TextOf(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::optional<uint64_t> CountOf(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_number_unsigned()) return std::nullopt;
  return found->get<uint64_t>();
}

// Two results of one key are taken for the same thing, and a spec may be run again: `rerun`.
absl::Status CheckSpec(const Spec& spec) {
  if (spec.key != SpecKey(spec)) {
    return absl::InvalidArgumentError(fmt::format(
        "the key of spec {} is not that of its values: it was changed, or a newer version wrote it",
        spec.index));
  }
  const auto within = [](auto value, auto least, auto most) {
    return value >= least && value <= most;
  };
  // The widest that a matrix can ask for.
  const bool sound = (spec.batch == kBatchMax || within(spec.batch, 1, 1'000'000'000)) &&
                     within(spec.accumulate, 1, 65'536) && within(spec.gpus, 1, 1024) &&
                     within(spec.nodes, 1, 65'536) && within(spec.stop.confidence, 1e-6, 1) &&
                     within(spec.stop.min_seconds, 0, 86'400) &&
                     within(spec.stop.max_seconds, 0.001, 86'400) &&
                     within(spec.limits.cell_seconds, 0.001, 604'800) &&
                     within(spec.limits.no_step_seconds, 0.001, 604'800);
  if (sound) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("spec {} has a value that no matrix can ask for", spec.index));
}

}  // namespace

AssayFileWriter::AssayFileWriter(ResultReader& reader, std::string run)
    : reader_(reader), run_(std::move(run)), hash_(std::make_unique<RunningHash>()) {}
AssayFileWriter::~AssayFileWriter() = default;

absl::StatusOr<std::string> AssayFileWriter::Next(size_t bytes) {
  if (!begun_) ASSAY_RETURN_IF_ERROR(Begin());
  while (pending_.size() < bytes && !ended_) ASSAY_RETURN_IF_ERROR(AddCells());
  std::string piece = pending_.substr(0, bytes);
  pending_.erase(0, piece.size());
  return piece;
}

void AssayFileWriter::Add(const std::string& line) {
  hash_->Add(line);
  pending_ += line;
}

absl::Status AssayFileWriter::Begin() {
  begun_ = true;
  ASSAY_ASSIGN_OR_RETURN(const RunRow run, reader_.GetRun(run_));
  ASSAY_ASSIGN_OR_RETURN(const std::vector<Spec> specs, reader_.ListSpecs(run_));
  Add(fmt::format("{{\"assay_file\":{},\"result_schema\":{},\"version\":\"{}\",\"run\":\"{}\"}}\n",
                  kAssayFileVersion, kResultSchema, kVersion, run_));
  Add(Line("run", RunJson(run)));
  for (const Spec& spec : specs) Add(Line("spec", SpecJson(spec)));
  specs_ = specs.size();
  return absl::OkStatus();
}

absl::Status AssayFileWriter::AddCells() {
  ASSAY_ASSIGN_OR_RETURN(const std::vector<CellResult> cells,
                         reader_.ListCells(run_, last_cell_, kCellsAPiece));
  for (const CellResult& cell : cells) {
    last_cell_ = cell.cell.cell;
    ++cells_;
    Add(Line("cell", CellJson(cell.cell)));
    ASSAY_ASSIGN_OR_RETURN(const std::vector<AttemptRow> attempts,
                           reader_.ListAttempts(run_, last_cell_));
    for (const AttemptRow& attempt : attempts) {
      // One that still runs is nothing to carry away.
      if (attempt.state != AttemptState::kEnded) continue;
      ++attempts_;
      Add(Line("attempt", AttemptJson(attempt)));
    }
  }
  if (!cells.empty()) return absl::OkStatus();
  ended_ = true;
  const std::string sha256 = hash_->Take();
  pending_ += fmt::format(
      "{{\"kind\":\"end\",\"specs\":{},\"cells\":{},\"attempts\":{},\"sha256\":\"{}\"}}\n", specs_,
      cells_, attempts_, sha256);
  return absl::OkStatus();
}

AssayFileReader::AssayFileReader() : hash_(std::make_unique<RunningHash>()) {}
AssayFileReader::~AssayFileReader() = default;

absl::Status AssayFileReader::Feed(std::string_view piece) {
  if (!failed_.ok()) return failed_;
  bytes_ += piece.size();
  if (bytes_ > kMaxAssayFileBytes) {
    return failed_ = absl::InvalidArgumentError(
               fmt::format("the file is over {} MiB", kMaxAssayFileBytes >> 20));
  }
  while (!piece.empty()) {
    const size_t end = piece.find('\n');
    partial_ += piece.substr(0, end == std::string_view::npos ? piece.size() : end + 1);
    piece.remove_prefix(end == std::string_view::npos ? piece.size() : end + 1);
    if (partial_.size() > kMaxAssayLineBytes) {
      return failed_ = absl::InvalidArgumentError(
                 fmt::format("line {} is over {} MiB", line_ + 1, kMaxAssayLineBytes >> 20));
    }
    if (end == std::string_view::npos) break;
    ++line_;
    if (absl::Status status = TakeLine(partial_); !status.ok()) {
      return failed_ = absl::InvalidArgumentError(
                 fmt::format("not a whole .assay file: line {}: {}", line_, Message(status)));
    }
    partial_.clear();
  }
  return absl::OkStatus();
}

absl::StatusOr<Batch::Import> AssayFileReader::Finish() {
  if (!failed_.ok()) return failed_;
  if (!any_) {
    return absl::InvalidArgumentError(bytes_ == 0 ? "the file is empty"
                                                  : "not an .assay file: it has no head line");
  }
  if (inside_ || !partial_.empty()) {
    return absl::InvalidArgumentError(
        "the file is cut: its last line, with the counts, is missing; nothing was taken from it");
  }
  return std::move(rows_);
}

absl::Status AssayFileReader::TakeLine(std::string_view line) {
  if (!inside_) return TakeHeader(line);
  const Json json = ParseLine(line);
  if (json.is_discarded()) return absl::InvalidArgumentError("not a JSON object");
  const std::string kind = TextOf(json, "kind");
  if (kind == "end") return TakeEnd(line, hash_->Take());
  hash_->Add(line);
  const auto row = json.find("row");
  if (row == json.end()) return absl::InvalidArgumentError("no 'row'");
  return TakeRow(kind, row->dump(-1, ' ', false, Json::error_handler_t::replace));
}

absl::Status AssayFileReader::TakeHeader(std::string_view line) {
  const Json json = ParseLine(line);
  const std::optional<uint64_t> version =
      json.is_discarded() ? std::nullopt : CountOf(json, "assay_file");
  if (!version.has_value()) return absl::InvalidArgumentError("not the head of an .assay file");
  if (*version != kAssayFileVersion) {
    return absl::InvalidArgumentError(fmt::format(
        "the file has version {} and this program reads {}", *version, kAssayFileVersion));
  }
  const std::optional<uint64_t> schema = CountOf(json, "result_schema");
  if (!schema.has_value() || *schema == 0) {
    return absl::InvalidArgumentError("the head names no result schema");
  }
  if (*schema > kResultSchema) {
    return absl::InvalidArgumentError(fmt::format(
        "its results have schema {} and this program knows {}; use one of version {} or "
        "newer",
        *schema, kResultSchema, TextOf(json, "version")));
  }
  run_ = TextOf(json, "run");
  if (!IsUlid(run_)) return absl::InvalidArgumentError("the head names no run");
  any_ = inside_ = true;
  run_seen_ = false;
  specs_.clear();
  counted_.clear();
  attempts_ = 0;
  hash_->Add(line);
  return absl::OkStatus();
}

absl::Status AssayFileReader::TakeRow(const std::string& kind, const std::string& row) {
  const auto other_run = [] { return absl::InvalidArgumentError("a row of another run"); };
  if (kind == "run") {
    ASSAY_ASSIGN_OR_RETURN(RunRow run, RunFromJson(row));
    if (run.id != run_ || run_seen_) return other_run();
    // Here nothing of it will run on: that is for the coordinator that it came from.
    if (!IsEnded(run.state)) {
      run.state = RunState::kDone;
      run.message = "exported before it had ended";
    }
    run_seen_ = true;
    rows_.runs.push_back(std::move(run));
    return absl::OkStatus();
  }
  if (!run_seen_) return absl::InvalidArgumentError("a row before its run");
  if (kind == "spec") {
    ASSAY_ASSIGN_OR_RETURN(Spec spec, SpecFromJsonText(row));
    ASSAY_RETURN_IF_ERROR(CheckSpec(spec));
    if (!specs_.insert(spec.index).second) return absl::InvalidArgumentError("a spec twice");
    rows_.specs.push_back({run_, std::move(spec)});
    return absl::OkStatus();
  }
  if (kind == "cell") return TakeCell(row);
  if (kind == "attempt") return TakeAttempt(row);
  return absl::InvalidArgumentError("a kind of row that this version does not know");
}

absl::Status AssayFileReader::TakeCell(const std::string& row) {
  ASSAY_ASSIGN_OR_RETURN(CellRow cell, CellFromJson(row));
  if (cell.run != run_) return absl::InvalidArgumentError("a row of another run");
  if (cell.cell == 0 || cell.repeat == 0 || !specs_.contains(cell.spec_index)) {
    return absl::InvalidArgumentError("a cell of no spec");
  }
  const Counted counted = {cell.counted_attempt, cell.outcome, cell.counted_attempt.empty()};
  if (counted.found && cell.outcome == Outcome::kOk) {
    return absl::InvalidArgumentError("a cell that is ok by no attempt");
  }
  if (!counted_.try_emplace(cell.cell, counted).second) {
    return absl::InvalidArgumentError("a cell twice");
  }
  rows_.cells.push_back(std::move(cell));
  return absl::OkStatus();
}

// The figures of a cell are those of its counted attempt: that must be one of this cell, and have
// come to the same. Which one counts, the cell says.
absl::Status AssayFileReader::TakeAttempt(const std::string& row) {
  ASSAY_ASSIGN_OR_RETURN(AttemptRow attempt, AttemptFromJson(row));
  if (attempt.run != run_) return absl::InvalidArgumentError("a row of another run");
  if (!IsUlid(attempt.id) || attempt.state != AttemptState::kEnded) {
    return absl::InvalidArgumentError("an attempt without an id or an end");
  }
  const auto cell = counted_.find(attempt.cell);
  if (cell == counted_.end()) return absl::InvalidArgumentError("an attempt of no cell");
  Counted& counted = cell->second;
  attempt.counted = attempt.id == counted.attempt;
  if (attempt.counted) {
    if (attempt.late || attempt.outcome != counted.outcome) {
      return absl::InvalidArgumentError(fmt::format(
          "the attempt that counts for cell {} did not come to what the cell says", attempt.cell));
    }
    counted.found = true;
  }
  ++attempts_;
  rows_.attempts.push_back(std::move(attempt));
  return absl::OkStatus();
}

absl::Status AssayFileReader::TakeEnd(std::string_view line, const std::string& sha256) {
  const Json json = ParseLine(line);
  if (TextOf(json, "sha256") != sha256) {
    return absl::InvalidArgumentError("the check sum is not that of the lines before it");
  }
  if (!run_seen_ || CountOf(json, "specs") != specs_.size() ||
      CountOf(json, "cells") != counted_.size() || CountOf(json, "attempts") != attempts_) {
    return absl::InvalidArgumentError("the counts are not those of the lines before it");
  }
  for (const auto& [cell, counted] : counted_) {
    if (counted.found) continue;
    return absl::InvalidArgumentError(
        fmt::format("the attempt that counts for cell {} is missing", cell));
  }
  inside_ = false;
  return absl::OkStatus();
}

}  // namespace assay
