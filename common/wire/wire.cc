#include "common/wire/wire.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <variant>

#include "common/text/utf8.h"

namespace assay::wire {
namespace {

constexpr std::string_view kCutNote = " [cut]";
constexpr size_t kMaxDroppedNames = 32;

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

double Finite(double value) { return std::isfinite(value) ? value : 0; }

std::string Name(const std::string& text) { return CleanText(text, kMaxNameBytes); }
std::string Sentence(const std::string& text) { return CleanText(text, kMaxSentenceBytes); }

using Texts = google::protobuf::RepeatedPtrField<std::string>;

std::vector<std::string> List(const Texts& texts, size_t item_bytes) {
  std::vector<std::string> out;
  for (const std::string& text : texts) {
    if (out.size() == kMaxListItems) break;
    out.push_back(CleanText(text, item_bytes));
  }
  return out;
}

void SetList(const std::vector<std::string>& texts, size_t item_bytes, Texts* out) {
  out->Clear();
  for (const std::string& text : texts) {
    if (static_cast<size_t>(out->size()) == kMaxListItems) break;
    *out->Add() = CleanText(text, item_bytes);
  }
}

}  // namespace

std::string CleanText(std::string_view text, size_t limit) {
  // Nothing beyond the limit can be kept, whatever scrubbing does.
  std::string clean = ScrubUtf8(text.substr(0, Utf8Boundary(text, limit)));
  if (clean.size() <= limit && text.size() <= limit) return clean;
  const bool note = limit > kCutNote.size();
  clean.resize(Utf8Boundary(clean, std::min(clean.size(), note ? limit - kCutNote.size() : limit)));
  if (note) clean += kCutNote;
  return clean;
}

std::string CleanTail(std::string_view text, size_t limit) {
  if (text.size() > limit) {
    text.remove_prefix(text.size() - limit);
    while (!text.empty() && IsContinuation(text.front())) text.remove_prefix(1);
  }
  std::string clean = ScrubUtf8(text);
  if (clean.size() <= limit) return clean;
  size_t from = clean.size() - limit;
  while (from < clean.size() && IsContinuation(clean[from])) ++from;
  return clean.substr(from);
}

void ToProto(const Spec& spec, v1::Spec* out) {
  out->set_key(Name(spec.key));
  out->set_index(spec.index);
  out->set_stack(Name(spec.stack));
  out->set_model(Name(spec.model));
  out->set_mode(Name(spec.mode));
  out->set_precision(Name(spec.precision));
  out->set_batch(spec.batch);
  out->set_lane(Name(spec.lane));
  out->set_layout(Name(spec.layout));
  out->set_accumulate(spec.accumulate);
  out->set_scaling(Name(spec.scaling));
  out->set_image(Name(spec.image));
  out->set_gpus(spec.gpus);
  out->set_nodes(spec.nodes);
  out->set_thermal(Name(spec.thermal));
  out->set_colocate(Name(spec.colocate));
  out->set_data(Name(spec.data));
  out->mutable_stop()->set_confidence(spec.stop.confidence);
  out->mutable_stop()->set_min_seconds(spec.stop.min_seconds);
  out->mutable_stop()->set_max_seconds(spec.stop.max_seconds);
  out->mutable_limits()->set_cell_seconds(spec.limits.cell_seconds);
  out->mutable_limits()->set_no_step_seconds(spec.limits.no_step_seconds);
}

Spec FromProto(const v1::Spec& spec) {
  Spec out;
  out.key = Name(spec.key());
  out.index = spec.index();
  out.stack = Name(spec.stack());
  out.model = Name(spec.model());
  out.mode = Name(spec.mode());
  out.precision = Name(spec.precision());
  out.batch = spec.batch();
  out.lane = Name(spec.lane());
  out.layout = Name(spec.layout());
  out.accumulate = spec.accumulate();
  out.scaling = Name(spec.scaling());
  out.image = Name(spec.image());
  out.gpus = spec.gpus();
  out.nodes = spec.nodes();
  out.thermal = Name(spec.thermal());
  out.colocate = Name(spec.colocate());
  out.data = Name(spec.data());
  if (spec.has_stop()) {
    out.stop.confidence = Finite(spec.stop().confidence());
    out.stop.min_seconds = Finite(spec.stop().min_seconds());
    out.stop.max_seconds = Finite(spec.stop().max_seconds());
  }
  if (spec.has_limits()) {
    out.limits.cell_seconds = Finite(spec.limits().cell_seconds());
    out.limits.no_step_seconds = Finite(spec.limits().no_step_seconds());
  }
  return out;
}

void ToProto(const Device& device, v1::Device* out) {
  out->set_uuid(Name(device.uuid));
  out->set_kind(Name(device.kind));
  out->set_raw_name(Name(device.raw_name));
  out->set_memory_total_bytes(device.memory_total_bytes);
  out->set_cc_major(device.cc_major);
  out->set_cc_minor(device.cc_minor);
  out->set_sm_count(device.sm_count);
  out->set_physical_index(device.physical_index);
  out->set_pci_bus_id(Name(device.pci_bus_id));
  out->set_numa_node(device.numa_node);
  SetList(device.warnings, kMaxSentenceBytes, out->mutable_warnings());
  out->set_simulated(device.simulated);
  out->set_usable(device.usable);
  out->set_driver_version(Name(device.driver_version));
}

Device FromProto(const v1::Device& device) {
  Device out;
  out.uuid = Name(device.uuid());
  out.kind = Name(device.kind());
  out.raw_name = Name(device.raw_name());
  out.memory_total_bytes = device.memory_total_bytes();
  out.cc_major = device.cc_major();
  out.cc_minor = device.cc_minor();
  out.sm_count = device.sm_count();
  out.physical_index = device.physical_index();
  out.pci_bus_id = Name(device.pci_bus_id());
  out.numa_node = device.numa_node();
  out.warnings = List(device.warnings(), kMaxSentenceBytes);
  out.simulated = device.simulated();
  out.usable = device.usable();
  out.driver_version = Name(device.driver_version());
  return out;
}

void ToProto(const Stack& stack, v1::Stack* out) {
  out->set_name(Name(stack.name));
  out->set_runner(Name(stack.runner));
  out->clear_versions();
  for (const auto& [name, version] : stack.versions) {
    if (static_cast<size_t>(out->versions().size()) == kMaxListItems) break;
    (*out->mutable_versions())[Name(name)] = Name(version);
  }
  SetList(stack.models, kMaxNameBytes, out->mutable_models());
  SetList(stack.modes, kMaxNameBytes, out->mutable_modes());
  SetList(stack.precisions, kMaxNameBytes, out->mutable_precisions());
  SetList(stack.lanes, kMaxNameBytes, out->mutable_lanes());
  SetList(stack.layouts, kMaxNameBytes, out->mutable_layouts());
  SetList(stack.arch_list, kMaxNameBytes, out->mutable_arch_list());
  SetList(stack.device_kinds, kMaxNameBytes, out->mutable_device_kinds());
  out->set_max_world_size(stack.max_world_size);
  out->set_simulated(stack.simulated);
  out->set_digest(Name(stack.digest));
  out->set_unusable_reason(Sentence(stack.unusable_reason));
}

Stack FromProto(const v1::Stack& stack) {
  Stack out;
  out.name = Name(stack.name());
  out.runner = Name(stack.runner());
  for (const auto& [name, version] : stack.versions()) {
    if (out.versions.size() == kMaxListItems) break;
    out.versions[Name(name)] = Name(version);
  }
  out.models = List(stack.models(), kMaxNameBytes);
  out.modes = List(stack.modes(), kMaxNameBytes);
  out.precisions = List(stack.precisions(), kMaxNameBytes);
  out.lanes = List(stack.lanes(), kMaxNameBytes);
  out.layouts = List(stack.layouts(), kMaxNameBytes);
  out.arch_list = List(stack.arch_list(), kMaxNameBytes);
  out.device_kinds = List(stack.device_kinds(), kMaxNameBytes);
  out.max_world_size = stack.max_world_size();
  out.simulated = stack.simulated();
  out.digest = Name(stack.digest());
  out.unusable_reason = Sentence(stack.unusable_reason());
  return out;
}

void ToProto(const NodeInventory& inventory, v1::NodeInventory* out) {
  out->Clear();
  out->set_node(Name(inventory.node));
  out->set_machine_id(Name(inventory.machine_id));
  out->set_boot_id(Name(inventory.boot_id));
  out->set_agent_version(Name(inventory.agent_version));
  out->set_cpu_model(Name(inventory.cpu_model));
  out->set_cpu_count(inventory.cpu_count);
  out->set_memory_bytes(inventory.memory_bytes);
  out->set_os(Name(inventory.os));
  for (const Device& device : inventory.devices) {
    if (static_cast<size_t>(out->devices_size()) == kMaxDevices) break;
    ToProto(device, out->add_devices());
  }
  for (const Stack& stack : inventory.stacks) {
    if (static_cast<size_t>(out->stacks_size()) == kMaxStacks) break;
    ToProto(stack, out->add_stacks());
  }
  SetList(inventory.warnings, kMaxSentenceBytes, out->mutable_warnings());
}

NodeInventory FromProto(const v1::NodeInventory& inventory) {
  NodeInventory out;
  out.node = Name(inventory.node());
  out.machine_id = Name(inventory.machine_id());
  out.boot_id = Name(inventory.boot_id());
  out.agent_version = Name(inventory.agent_version());
  out.cpu_model = Name(inventory.cpu_model());
  out.cpu_count = inventory.cpu_count();
  out.memory_bytes = inventory.memory_bytes();
  out.os = Name(inventory.os());
  for (const v1::Device& device : inventory.devices()) {
    if (out.devices.size() == kMaxDevices) break;
    out.devices.push_back(FromProto(device));
  }
  for (const v1::Stack& stack : inventory.stacks()) {
    if (out.stacks.size() == kMaxStacks) break;
    out.stacks.push_back(FromProto(stack));
  }
  out.warnings = List(inventory.warnings(), kMaxSentenceBytes);
  return out;
}

void ToProto(const DoctorReport& report, v1::DoctorReport* out) {
  out->set_node(CleanText(report.node, kMaxNameBytes));
  out->set_version(CleanText(report.version, kMaxNameBytes));
  for (const DoctorCheck& check : report.checks) {
    if (static_cast<size_t>(out->checks_size()) == kMostDoctorChecks) break;
    v1::DoctorCheck* to = out->add_checks();
    to->set_name(CleanText(check.name, kMaxNameBytes));
    to->set_state(std::string(CheckStateName(check.state)));
    to->set_finding(CleanText(check.finding, kMaxSentenceBytes));
    to->set_remedy(CleanText(check.remedy, kMaxSentenceBytes));
  }
}

DoctorReport FromProto(const v1::DoctorReport& in) {
  DoctorReport report;
  report.node = CleanText(in.node(), kMaxNameBytes);
  report.version = CleanText(in.version(), kMaxNameBytes);
  for (const v1::DoctorCheck& check : in.checks()) {
    if (report.checks.size() == kMostDoctorChecks) break;
    report.checks.push_back({CleanText(check.name(), kMaxNameBytes),
                             CheckStateFromName(check.state()).value_or(CheckState::kUnknown),
                             CleanText(check.finding(), kMaxSentenceBytes),
                             CleanText(check.remedy(), kMaxSentenceBytes)});
  }
  return report;
}

v1::Outcome ToProto(Outcome outcome) {
  // The numbers of the two enums are the same; a test walks them.
  const int number = static_cast<int>(outcome);
  return v1::Outcome_IsValid(number) ? static_cast<v1::Outcome>(number) : v1::OUTCOME_UNSPECIFIED;
}

v1::Outcome ToProto(const std::optional<Outcome>& outcome) {
  return outcome.has_value() ? ToProto(*outcome) : v1::OUTCOME_UNSPECIFIED;
}

std::optional<Outcome> FromProto(v1::Outcome outcome) {
  const int number = static_cast<int>(outcome);
  if (number < static_cast<int>(Outcome::kOk) || number > static_cast<int>(Outcome::kCancelled)) {
    return std::nullopt;
  }
  return static_cast<Outcome>(number);
}

void ToProto(const Record& record, google::protobuf::RepeatedPtrField<v1::FieldValue>* out) {
  out->Clear();
  for (const FieldInfo& info : AllFields()) {
    const Value& value = record.Get(info.field);
    if (std::holds_alternative<std::monostate>(value)) continue;
    v1::FieldValue* field = out->Add();
    field->set_name(std::string(info.name));
    if (const auto* text = std::get_if<std::string>(&value)) {
      field->set_text(CleanText(*text, kMaxFieldTextBytes));
    } else if (const auto* integer = std::get_if<int64_t>(&value)) {
      field->set_integer(*integer);
    } else if (const auto* number = std::get_if<double>(&value)) {
      field->set_number(*number);
    } else if (const auto* flag = std::get_if<bool>(&value)) {
      field->set_flag(*flag);
    }
  }
}

void ToProto(const Record& record, v1::Record* out) { ToProto(record, out->mutable_fields()); }

Record FromProto(const google::protobuf::RepeatedPtrField<v1::FieldValue>& fields,
                 std::vector<std::string>* dropped) {
  Record record;
  for (const v1::FieldValue& value : fields) {
    const std::optional<Field> field = FieldByName(value.name());
    bool taken = false;
    if (field.has_value()) {
      switch (value.value_case()) {
        case v1::FieldValue::kNumber:
          taken = record.Set(*field, value.number()).ok();
          break;
        case v1::FieldValue::kInteger:
          taken = record.Set(*field, value.integer()).ok();
          break;
        case v1::FieldValue::kText:
          taken = record.Set(*field, CleanText(value.text(), kMaxFieldTextBytes)).ok();
          break;
        case v1::FieldValue::kFlag:
          taken = record.Set(*field, value.flag()).ok();
          break;
        case v1::FieldValue::VALUE_NOT_SET:
          break;
      }
    }
    if (!taken && dropped != nullptr && dropped->size() < kMaxDroppedNames) {
      dropped->push_back(CleanText(value.name(), 64));
    }
  }
  return record;
}

Record FromProto(const v1::Record& record) { return FromProto(record.fields()); }

}  // namespace assay::wire
