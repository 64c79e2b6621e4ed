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

  void Read(const char* name, std::string& out) {
    if (const Json* value = Find(name, &Json::is_string, "a text")) out = value->get<std::string>();
  }
  void Read(const char* name, bool& out) {
    if (const Json* value = Find(name, &Json::is_boolean, "true or false"))
      out = value->get<bool>();
  }
  void Read(const char* name, double& out) {
    if (const Json* value = Find(name, &Json::is_number, "a number")) {
      const double number = value->get<double>();
      if (std::isfinite(number)) out = number;
    }
  }
  template <class Integer>
    requires std::is_integral_v<Integer>
  void Read(const char* name, Integer& out) {
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
  void Read(const char* name, std::optional<Outcome>& out) {
    std::string text;
    Read(name, text);
    if (text.empty()) return;
    out = OutcomeFromName(text);
    if (!out.has_value()) Fail(fmt::format("'{}' is no outcome", name));
  }
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

Json OutcomeToJson(const std::optional<Outcome>& outcome) {
  return outcome.has_value() ? Json(std::string(OutcomeName(*outcome))) : Json(nullptr);
}

Json ToJson(const Selection& selection) {
  return {{"all_cards", selection.all_cards},
          {"cards", selection.cards},
          {"placement", std::string(PlacementName(selection.placement))},
          {"wait_seconds", selection.wait_seconds},
          {"include_late", selection.include_late}};
}

absl::StatusOr<Selection> ToSelection(const Json& json) {
  Selection selection;
  Fields fields(json);
  fields.Read("all_cards", selection.all_cards);
  fields.Read("wait_seconds", selection.wait_seconds);
  fields.Read("include_late", selection.include_late);
  std::string placement;
  fields.Read("placement", placement);
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
    fields.Read("node", member.node);
    fields.Read("gpu_uuid", member.gpu_uuid);
    fields.Read("local_rank", member.local_rank);
    ASSAY_RETURN_IF_ERROR(fields.status());
    members.push_back(std::move(member));
  }
  return members;
}

}  // namespace

std::string SelectionJson(const Selection& selection) { return Dump(ToJson(selection)); }

absl::StatusOr<Selection> SelectionFromJson(std::string_view json) {
  ASSAY_ASSIGN_OR_RETURN(const Json parsed, Parse(json));
  return ToSelection(parsed);
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
  return Dump({{"id", run.id},
               {"request_id", run.request_id},
               {"name", run.name},
               {"digest", run.digest},
               {"yaml", run.yaml},
               {"file_name", run.file_name},
               {"baseline", run.baseline},
               {"select", ToJson(run.select)},
               {"repeat", run.repeat},
               {"specs", run.specs},
               {"seed", run.seed},
               {"state", std::string(RunStateName(run.state))},
               {"message", run.message},
               {"binding_closed", run.binding_closed},
               {"cells", run.cells},
               {"generation", run.generation},
               {"rerun_request_id", run.rerun_request_id},
               {"submitted_at_unix_ms", run.submitted_at_unix_ms},
               {"started_at_unix_ms", run.started_at_unix_ms},
               {"ended_at_unix_ms", run.ended_at_unix_ms}});
}

absl::StatusOr<RunRow> RunFromJson(std::string_view json) {
  ASSAY_ASSIGN_OR_RETURN(const Json parsed, Parse(json));
  RunRow run;
  Fields fields(parsed);
  fields.Read("id", run.id);
  fields.Read("request_id", run.request_id);
  fields.Read("name", run.name);
  fields.Read("digest", run.digest);
  fields.Read("yaml", run.yaml);
  fields.Read("file_name", run.file_name);
  fields.Read("baseline", run.baseline);
  fields.Read("repeat", run.repeat);
  fields.Read("specs", run.specs);
  fields.Read("seed", run.seed);
  std::string state;
  fields.Read("state", state);
  if (const auto known = RunStateFromName(state)) {
    run.state = *known;
  } else {
    fields.Fail("'state' is not known");
  }
  fields.Read("message", run.message);
  fields.Read("binding_closed", run.binding_closed);
  fields.Read("cells", run.cells);
  fields.Read("generation", run.generation);
  fields.Read("rerun_request_id", run.rerun_request_id);
  fields.Read("submitted_at_unix_ms", run.submitted_at_unix_ms);
  fields.Read("started_at_unix_ms", run.started_at_unix_ms);
  fields.Read("ended_at_unix_ms", run.ended_at_unix_ms);
  if (const Json* select = fields.Find("select")) {
    ASSAY_ASSIGN_OR_RETURN(run.select, ToSelection(*select));
  }
  ASSAY_RETURN_IF_ERROR(fields.status());
  return run;
}

std::string CellJson(const CellRow& cell) {
  return Dump({{"run", cell.run},
               {"cell", cell.cell},
               {"spec_index", cell.spec_index},
               {"repeat", cell.repeat},
               {"target", cell.target},
               {"simulated", cell.simulated},
               {"order", cell.order},
               {"admitted", cell.admitted},
               {"attempts", cell.attempts},
               {"first_attempt", cell.first_attempt},
               {"outcome", OutcomeToJson(cell.outcome)},
               {"reason", cell.reason},
               {"message", cell.message},
               {"counted_attempt", cell.counted_attempt}});
}

absl::StatusOr<CellRow> CellFromJson(std::string_view json) {
  ASSAY_ASSIGN_OR_RETURN(const Json parsed, Parse(json));
  CellRow cell;
  Fields fields(parsed);
  fields.Read("run", cell.run);
  fields.Read("cell", cell.cell);
  fields.Read("spec_index", cell.spec_index);
  fields.Read("repeat", cell.repeat);
  fields.Read("target", cell.target);
  fields.Read("simulated", cell.simulated);
  fields.Read("order", cell.order);
  fields.Read("admitted", cell.admitted);
  fields.Read("attempts", cell.attempts);
  fields.Read("first_attempt", cell.first_attempt);
  fields.Read("outcome", cell.outcome);
  fields.Read("reason", cell.reason);
  fields.Read("message", cell.message);
  fields.Read("counted_attempt", cell.counted_attempt);
  ASSAY_RETURN_IF_ERROR(fields.status());
  return cell;
}

std::string AttemptJson(const AttemptRow& attempt) {
  Json json = {{"id", attempt.id},
               {"run", attempt.run},
               {"cell", attempt.cell},
               {"number", attempt.number},
               {"ended", attempt.state == AttemptState::kEnded},
               {"node", attempt.node},
               {"card", attempt.card},
               {"stack", attempt.stack},
               {"runner", attempt.runner},
               {"members", ToJson(attempt.members)},
               {"simulated", attempt.simulated},
               {"seed", attempt.seed},
               {"started_at_unix_ms", attempt.started_at_unix_ms},
               {"seconds", attempt.seconds},
               {"outcome", OutcomeToJson(attempt.outcome)},
               {"reason", attempt.reason},
               {"message", attempt.message},
               {"counted", attempt.counted},
               {"late", attempt.late},
               {"reported", attempt.reported},
               {"log_tail", attempt.log_tail},
               {"cell_file", attempt.cell_file}};
  json["record"] = Json::parse(RecordToCompactJson(attempt.record), nullptr, false);
  return Dump(json);
}

absl::StatusOr<AttemptRow> AttemptFromJson(std::string_view json) {
  ASSAY_ASSIGN_OR_RETURN(const Json parsed, Parse(json));
  AttemptRow attempt;
  Fields fields(parsed);
  fields.Read("id", attempt.id);
  fields.Read("run", attempt.run);
  fields.Read("cell", attempt.cell);
  fields.Read("number", attempt.number);
  bool ended = false;
  fields.Read("ended", ended);
  attempt.state = ended ? AttemptState::kEnded : AttemptState::kStarted;
  fields.Read("node", attempt.node);
  fields.Read("card", attempt.card);
  fields.Read("stack", attempt.stack);
  fields.Read("runner", attempt.runner);
  fields.Read("simulated", attempt.simulated);
  fields.Read("seed", attempt.seed);
  fields.Read("started_at_unix_ms", attempt.started_at_unix_ms);
  fields.Read("seconds", attempt.seconds);
  fields.Read("outcome", attempt.outcome);
  fields.Read("reason", attempt.reason);
  fields.Read("message", attempt.message);
  fields.Read("counted", attempt.counted);
  fields.Read("late", attempt.late);
  fields.Read("reported", attempt.reported);
  fields.Read("log_tail", attempt.log_tail);
  fields.Read("cell_file", attempt.cell_file);
  if (const Json* members = fields.Find("members")) {
    ASSAY_ASSIGN_OR_RETURN(attempt.members, ToMembers(*members));
  }
  if (const Json* record = fields.Find("record")) {
    ASSAY_ASSIGN_OR_RETURN(attempt.record, RecordFromJson(Dump(*record)));
  }
  ASSAY_RETURN_IF_ERROR(fields.status());
  return attempt;
}

}  // namespace assay
