#include "agent/conformance/trial_cells.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/catalog/workload_catalog.h"

namespace assay {
namespace {

// `wanted` where it is listed, else the first; "" of an empty list.
std::string Pick(const std::vector<std::string>& listed, const std::string& wanted) {
  if (listed.empty() || std::find(listed.begin(), listed.end(), wanted) != listed.end()) {
    return listed.empty() ? "" : wanted;
  }
  return listed.front();
}

std::string Changed(const CellFile& cell, const char* key, const nlohmann::json& value,
                    bool in_spec = true) {
  nlohmann::json json = CellFileToJson(cell);
  (in_spec ? json["spec"] : json)[key] = value;
  return json.dump();
}

}  // namespace

CellFile SmallCell(const Stack& stack, const Device& device, const std::string& card) {
  CellFile cell;
  cell.attempt = cell.run = "00000000000000000000000000";
  cell.cell = 1;
  cell.stack = stack.name;
  Spec& spec = cell.spec;
  spec.key = "0000000000000000";
  spec.stack = stack.name;
  spec.model = Pick(stack.models, "resnet50");
  spec.mode = Pick(stack.modes, "train");
  spec.precision = Pick(stack.precisions, "fp32");
  spec.lane = Pick(stack.lanes, "eager");
  spec.layout = Pick(stack.layouts, "contiguous");
  spec.batch = 2;
  const Workload* workload = BuiltinWorkloads().Find(spec.model);
  if (workload != nullptr) spec.image = workload->default_image;
  if (spec.model == "resnet50") spec.image = "64x64";
  spec.stop = {0.05, 0.2, 0.5};
  cell.device_kind = stack.simulated ? "simulated" : device.kind == "cpu" ? "cpu" : "cuda";
  cell.device_uuid = device.uuid;
  cell.device_ordinal = device.physical_index;
  cell.card = card;
  return cell;
}

CellFile LongCell(CellFile cell) {
  cell.spec.stop = {0, 30, 30};
  return cell;
}

std::string WithUnknownKeys(const CellFile& cell) {
  nlohmann::json json = CellFileToJson(cell);
  const nlohmann::json odd = {{"of", {"a", "later", "version"}}};
  for (nlohmann::json* object :
       {&json, &json["spec"], &json["spec"]["stop"], &json["spec"]["limits"], &json["device"]}) {
    (*object)["key_of_a_later_version"] = odd;
  }
  return json.dump();
}

std::vector<std::pair<std::string, std::string>> WrongCells(const CellFile& cell) {
  const std::string good = CellFileToJson(cell).dump();
  nlohmann::json without_spec = CellFileToJson(cell);
  without_spec.erase("spec");
  return {{"is cut off in the middle", good.substr(0, good.size() / 2)},
          {"is empty", ""},
          {"has no 'spec'", without_spec.dump()},
          {"is of protocol 99", Changed(cell, "protocol", 99, false)},
          {"has batch -1", Changed(cell, "batch", -1)},
          {"has a text as batch", Changed(cell, "batch", "many")},
          {"has accumulate 3, which does not divide batch 2", Changed(cell, "accumulate", 3)}};
}

Record PlanFields(const CellFile& cell) {
  Record record;
  record.SetText(Field::kOutcome, "ok");
  record.SetText(Field::kMode, cell.spec.mode);
  record.SetText(Field::kPrecision, cell.spec.precision);
  record.SetText(Field::kScaling, cell.spec.scaling);
  for (const auto& [field, value] :
       {std::pair(Field::kBatch, cell.spec.batch), std::pair(Field::kGpus, cell.spec.gpus),
        std::pair(Field::kNodes, cell.spec.nodes)}) {
    record.Set(field, value).IgnoreError();  // an integer fits each of them
  }
  return record;
}

}  // namespace assay
