#include "coordinator/store/row_json.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "common/results/json.h"
#include "common/runner_protocol/cell_file.h"
#include "common/status/status.h"

namespace assay {
namespace {

using Json = nlohmann::json;

// A row is at most: matrix text of 1 MiB, or records, log tail and cell file of an attempt.
constexpr int kMaxDepth = 8;

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Parses with a depth budget: the parser of nlohmann keeps no stack of calls, its destructor and
// ours should not get deep trees either.
absl::StatusOr<Json> Parse(std::string_view text) {
  const Json::parser_callback_t shallow = [](int depth, Json::parse_event_t, Json&) {
    return depth <= kMaxDepth;
  };
  Json json = Json::parse(text, shallow, /*allow_exceptions=*/false);
  if (json.is_discarded()) return absl::InvalidArgumentError("not a JSON value");
  return json;
}

// Reads members of one object; the first fault stays.
class Fields {
 public:
  explicit Fields(const Json& object) : object_(object) {
    if (!object.is_object()) status_ = absl::InvalidArgumentError("not a JSON object");
  }

  void Member(const char* name, std::string& out) {
    if (const Json* value = Find(name, &Json::is_string, "a text")) out = value->get<std::string>();
  }
  void Member(const char* name, bool& out) {
    if (const Json* value = Find(name, &Json::is_boolean, "true or false"))
      out = value->get<bool>();
  }
  void Member(const char* name, double& out) {
    if (const Json* value = Find(name, &Json::is_number, "a number")) {
      const double number = value->get<double>();
      if (std::isfinite(number)) out = number;
    }
  }
  template <class Integer>
    requires std::is_integral_v<Integer>
  void Member(const char* name, Integer& out) {
    const Json* value = Find(name, &Json::is_number_integer, "a whole number");
    if (value == nullptr) return;
    // Everything we write fits a signed 64-bit number; so must everything we read.
    const bool huge = value->is_number_unsigned() &&
                      value->get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()};
    if (huge || !std::in_range<Integer>(value->get<int64_t>())) {
      return Fail(fmt::format("'{}' is out of range", name));
    }
    out = static_cast<Integer>(value->get<int64_t>());
  }
  void Member(const char* name, std::optional<Outcome>& out) {
    std::string text;
    Member(name, text);
    if (text.empty()) return;
    out = OutcomeFromName(text);
    if (!out.has_value()) Fail(fmt::format("'{}' is no outcome", name));
  }
  void Member(const char* name, RunState& out) {
    std::string text;
    Member(name, text);
    if (const auto known = RunStateFromName(text)) {
      out = *known;
    } else {
      Fail(fmt::format("'{}' is not known", name));
    }
  }
  void Member(const char* name, Selection& out);
  void Member(const char* name, Labels& out);
  void Member(const char* name, std::vector<MemberRow>& out);
  const Json* Find(const char* name) {
    if (!status_.ok()) return nullptr;
    const auto found = object_.find(name);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  void Fail(const std::string& why) {
    if (status_.ok()) status_ = absl::InvalidArgumentError(why);
  }
  const absl::Status& status() const { return status_; }

 private:
  const Json* Find(const char* name, bool (Json::*is)() const noexcept, const char* what) {
    const Json* value = Find(name);
    if (value == nullptr) return nullptr;
    if (!(value->*is)()) {
      Fail(fmt::format("'{}' is not {}", name, what));
      return nullptr;
    }
    return value;
  }

  const Json& object_;
  absl::Status status_;
};

Json ToJson(const Selection& selection) {
  return {{"all_cards", selection.all_cards},
          {"cards", selection.cards},
          {"placement", std::string(PlacementName(selection.placement))},
          {"wait_seconds", selection.wait_seconds},
          {"include_late", selection.include_late},
          {"run_limit_seconds", selection.run_limit_seconds},
          {"priority", selection.priority}};
}

absl::StatusOr<Selection> ToSelection(const Json& json) {
  Selection selection;
  Fields fields(json);
  fields.Member("all_cards", selection.all_cards);
  fields.Member("wait_seconds", selection.wait_seconds);
  fields.Member("include_late", selection.include_late);
  fields.Member("run_limit_seconds", selection.run_limit_seconds);  // not in older stores
  fields.Member("priority", selection.priority);
  std::string placement;
  fields.Member("placement", placement);
  if (!placement.empty()) {
    if (const auto known = PlacementFromName(placement)) {
      selection.placement = *known;
    } else {
      fields.Fail("'placement' is not known");
    }
  }
  if (const Json* cards = fields.Find("cards")) {
    if (!cards->is_array()) return absl::InvalidArgumentError("'cards' is not a list");
    for (const Json& card : *cards) {
      if (!card.is_string()) return absl::InvalidArgumentError("'cards' holds no texts");
      selection.cards.push_back(card.get<std::string>());
    }
  }
  ASSAY_RETURN_IF_ERROR(fields.status());
  return selection;
}

Json ToJson(const std::vector<MemberRow>& members) {
  Json list = Json::array();
  for (const MemberRow& member : members) {
    list.push_back(
        {{"node", member.node}, {"gpu_uuid", member.gpu_uuid}, {"local_rank", member.local_rank}});
  }
  return list;
}

absl::StatusOr<std::vector<MemberRow>> ToMembers(const Json& json) {
  if (!json.is_array()) return absl::InvalidArgumentError("'members' is not a list");
  std::vector<MemberRow> members;
  for (const Json& item : json) {
    MemberRow member;
    Fields fields(item);
    fields.Member("node", member.node);
    fields.Member("gpu_uuid", member.gpu_uuid);
    fields.Member("local_rank", member.local_rank);
    ASSAY_RETURN_IF_ERROR(fields.status());
    members.push_back(std::move(member));
  }
  return members;
}

absl::StatusOr<Labels> ToLabels(const Json& json) {
  if (!json.is_object()) return absl::InvalidArgumentError("'labels' is not an object");
  Labels labels;
  for (const auto& [name, value] : json.items()) {
    if (!value.is_string()) return absl::InvalidArgumentError("'labels' holds no texts");
    labels[name] = value.get<std::string>();
  }
  ASSAY_RETURN_IF_ERROR(CheckLabels(labels));
  return labels;
}

void Fields::Member(const char* name, Labels& out) {
  const Json* value = Find(name);
  if (value == nullptr) return;
  absl::StatusOr<Labels> labels = ToLabels(*value);
  if (!labels.ok()) return Fail(Message(labels.status()));
  out = *std::move(labels);
}

void Fields::Member(const char* name, Selection& out) {
  const Json* value = Find(name);
  if (value == nullptr) return;
  absl::StatusOr<Selection> selection = ToSelection(*value);
  if (!selection.ok()) return Fail(Message(selection.status()));
  out = *std::move(selection);
}

void Fields::Member(const char* name, std::vector<MemberRow>& out) {
  const Json* value = Find(name);
  if (value == nullptr) return;
  absl::StatusOr<std::vector<MemberRow>> members = ToMembers(*value);
  if (!members.ok()) return Fail(Message(members.status()));
  out = *std::move(members);
}

// Writes members of one object; of the same shape as Fields, so that each kind of row lists its
// members once.
class Writer {
 public:
  template <class T>
  void Member(const char* name, const T& value) {
    object_[name] = value;
  }
  void Member(const char* name, const std::optional<Outcome>& outcome) {
    object_[name] = outcome.has_value() ? Json(std::string(OutcomeName(*outcome))) : Json(nullptr);
  }
  void Member(const char* name, RunState state) {
    object_[name] = std::string(RunStateName(state));
  }
  void Member(const char* name, const Selection& selection) { object_[name] = ToJson(selection); }
  void Member(const char* name, const std::vector<MemberRow>& members) {
    object_[name] = ToJson(members);
  }
  Json& object() { return object_; }

 private:
  Json object_ = Json::object();
};

template <class Members, class Row>
void RunMembers(Members& members, Row& run) {
  members.Member("id", run.id);
  members.Member("request_id", run.request_id);
  members.Member("name", run.name);
  members.Member("digest", run.digest);
  members.Member("yaml", run.yaml);
  members.Member("file_name", run.file_name);
  members.Member("baseline", run.baseline);
  members.Member("select", run.select);
  members.Member("repeat", run.repeat);
  members.Member("specs", run.specs);
  members.Member("seed", run.seed);
  members.Member("state", run.state);
  members.Member("message", run.message);
  members.Member("binding_closed", run.binding_closed);
  members.Member("cells", run.cells);
  members.Member("generation", run.generation);
  members.Member("rerun_request_id", run.rerun_request_id);
  members.Member("submitted_by", run.submitted_by);
  members.Member("labels", run.labels);
  members.Member("slice", run.slice.index);
  members.Member("slices", run.slice.count);
  members.Member("slice_id", run.slice.id);
  members.Member("submitted_at_unix_ms", run.submitted_at_unix_ms);
  members.Member("started_at_unix_ms", run.started_at_unix_ms);
  members.Member("ended_at_unix_ms", run.ended_at_unix_ms);
}

template <class Members, class Row>
void CellMembers(Members& members, Row& cell) {
  members.Member("run", cell.run);
  members.Member("cell", cell.cell);
  members.Member("spec_index", cell.spec_index);
  members.Member("repeat", cell.repeat);
  members.Member("target", cell.target);
  members.Member("simulated", cell.simulated);
  members.Member("order", cell.order);
  members.Member("admitted", cell.admitted);
  members.Member("attempts", cell.attempts);
  members.Member("first_attempt", cell.first_attempt);
  members.Member("outcome", cell.outcome);
  members.Member("reason", cell.reason);
  members.Member("message", cell.message);
  members.Member("counted_attempt", cell.counted_attempt);
}

template <class Members, class Row>
void AttemptMembers(Members& members, Row& attempt) {
  members.Member("id", attempt.id);
  members.Member("run", attempt.run);
  members.Member("cell", attempt.cell);
  members.Member("number", attempt.number);
  members.Member("node", attempt.node);
  members.Member("card", attempt.card);
  members.Member("stack", attempt.stack);
  members.Member("runner", attempt.runner);
  members.Member("members", attempt.members);
  members.Member("simulated", attempt.simulated);
  members.Member("seed", attempt.seed);
  members.Member("started_at_unix_ms", attempt.started_at_unix_ms);
  members.Member("seconds", attempt.seconds);
  members.Member("outcome", attempt.outcome);
  members.Member("reason", attempt.reason);
  members.Member("message", attempt.message);
  members.Member("counted", attempt.counted);
  members.Member("late", attempt.late);
  members.Member("reported", attempt.reported);
  members.Member("log_tail", attempt.log_tail);
  members.Member("cell_file", attempt.cell_file);
}

}  // namespace

std::string SelectionJson(const Selection& selection) { return Dump(ToJson(selection)); }

absl::StatusOr<Selection> SelectionFromJson(std::string_view json) {
  ASSAY_ASSIGN_OR_RETURN(const Json parsed, Parse(json));
  return ToSelection(parsed);
}

std::string LabelsJson(const Labels& labels) { return Dump(Json(labels)); }

absl::StatusOr<Labels> LabelsFromJson(std::string_view json) {
  ASSAY_ASSIGN_OR_RETURN(const Json parsed, Parse(json));
  return ToLabels(parsed);
}

std::string SpecJson(const Spec& spec) { return Dump(SpecToJson(spec)); }

absl::StatusOr<Spec> SpecFromJsonText(std::string_view json) {
  ASSAY_ASSIGN_OR_RETURN(const Json parsed, Parse(json));
  if (!parsed.is_object()) return absl::InvalidArgumentError("not a JSON object");
  try {
    return SpecFromJson(parsed);
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(fmt::format("not a spec: {}", error.what()));
  }
}

std::string MembersJson(const std::vector<MemberRow>& members) { return Dump(ToJson(members)); }

absl::StatusOr<std::vector<MemberRow>> MembersFromJson(std::string_view json) {
  ASSAY_ASSIGN_OR_RETURN(const Json parsed, Parse(json));
  return ToMembers(parsed);
}

std::string RunJson(const RunRow& run) {
  Writer writer;
  RunMembers(writer, run);
  return Dump(writer.object());
}

absl::StatusOr<RunRow> RunFromJson(std::string_view json) {
  ASSAY_ASSIGN_OR_RETURN(const Json parsed, Parse(json));
  RunRow run;
  Fields fields(parsed);
  RunMembers(fields, run);
  ASSAY_RETURN_IF_ERROR(fields.status());
  ASSAY_RETURN_IF_ERROR(CheckSlice(run.slice));
  return run;
}

std::string CellJson(const CellRow& cell) {
  Writer writer;
  CellMembers(writer, cell);
  return Dump(writer.object());
}

absl::StatusOr<CellRow> CellFromJson(std::string_view json) {
  ASSAY_ASSIGN_OR_RETURN(const Json parsed, Parse(json));
  CellRow cell;
  Fields fields(parsed);
  CellMembers(fields, cell);
  ASSAY_RETURN_IF_ERROR(fields.status());
  return cell;
}

std::string AttemptJson(const AttemptRow& attempt) {
  Writer writer;
  AttemptMembers(writer, attempt);
  writer.Member("ended", attempt.state == AttemptState::kEnded);
  writer.object()["record"] = Json::parse(RecordToCompactJson(attempt.record), nullptr, false);
  return Dump(writer.object());
}

absl::StatusOr<AttemptRow> AttemptFromJson(std::string_view json) {
  ASSAY_ASSIGN_OR_RETURN(const Json parsed, Parse(json));
  AttemptRow attempt;
  Fields fields(parsed);
  AttemptMembers(fields, attempt);
  bool ended = false;
  fields.Member("ended", ended);
  attempt.state = ended ? AttemptState::kEnded : AttemptState::kStarted;
  if (const Json* record = fields.Find("record")) {
    ASSAY_ASSIGN_OR_RETURN(attempt.record, RecordFromJson(Dump(*record)));
  }
  ASSAY_RETURN_IF_ERROR(fields.status());
  return attempt;
}

}  // namespace assay
