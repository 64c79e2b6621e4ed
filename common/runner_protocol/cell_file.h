// The cell file: what a runner is given, as one JSON object (docs/protocol.md).
//
//   {"protocol":1, "attempt":"01J...", "run":"01J...", "cell":7, "repeat":1, "stack":"...",
//    "spec":{...every axis...,"stop":{...},"limits":{...}},
//    "rank":0, "local_rank":0, "world_size":1, "endpoint":"host:port",
//    "device":{"kind":"cuda|cpu|simulated","uuid":"GPU-...","ordinal":0,"card":"RTX 3090"},
//    "seed":1, "spawned_at_boot_ns":0, "purpose":"measure|settle|sentinel", "trial_steps":0}
//
// `purpose`: "measure" the cell itself; "settle" a load that brings the device to its temperature,
// without an end of its own and with no figure wanted of it; "sentinel" the fixed cell by which a
// device is compared with itself, of which the throughput alone is wanted. A runner may treat all
// alike.
//
// Header-only and free of gRPC, protobuf, abseil and fmt, since runners link none of them.
#ifndef ASSAY_COMMON_RUNNER_PROTOCOL_CELL_FILE_H_
#define ASSAY_COMMON_RUNNER_PROTOCOL_CELL_FILE_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "common/matrix/spec.h"

namespace assay {

struct CellFile {
  int protocol = 1;
  std::string attempt, run;
  uint64_t cell = 0;
  uint32_t repeat = 1;
  std::string stack;
  Spec spec;
  int rank = 0;
  int local_rank = 0;
  int world_size = 1;
  std::string endpoint;  // of rank 0; empty where world_size is 1
  std::string device_kind = "cpu";
  std::string device_uuid;
  int device_ordinal = 0;
  std::string card;  // the catalogue's name; the simulator needs it
  uint64_t seed = 1;
  int64_t spawned_at_boot_ns = 0;  // CLOCK_BOOTTIME at spawn; 0 by hand
  std::string purpose = "measure";
  // Above 0: take so many steps, measure nothing, and say with fields trial_used_bytes and
  // trial_capacity_bytes what memory it took. A runner asks it of its own copies for `batch: max`.
  int64_t trial_steps = 0;
};

inline nlohmann::json SpecToJson(const Spec& s) {
  return {
      {"key", s.key},
      {"index", s.index},
      {"stack", s.stack},
      {"model", s.model},
      {"mode", s.mode},
      {"precision", s.precision},
      {"batch", s.batch},
      {"lane", s.lane},
      {"layout", s.layout},
      {"accumulate", s.accumulate},
      {"scaling", s.scaling},
      {"image", s.image},
      {"gpus", s.gpus},
      {"nodes", s.nodes},
      {"thermal", s.thermal},
      {"colocate", s.colocate},
      {"data", s.data},
      {"stop",
       {{"confidence", s.stop.confidence},
        {"min_seconds", s.stop.min_seconds},
        {"max_seconds", s.stop.max_seconds}}},
      {"limits",
       {{"cell_seconds", s.limits.cell_seconds}, {"no_step_seconds", s.limits.no_step_seconds}}}};
}

// Keys that are absent keep the default. Throws nlohmann::json::exception for a wrong type: a
// runner catches it in main and exits 2 with the sentence; control-plane programs catch it where
// they call.
inline Spec SpecFromJson(const nlohmann::json& j) {
  Spec s;
  s.key = j.value("key", s.key);
  s.index = j.value("index", s.index);
  s.stack = j.value("stack", s.stack);
  s.model = j.value("model", s.model);
  s.mode = j.value("mode", s.mode);
  s.precision = j.value("precision", s.precision);
  s.batch = j.value("batch", s.batch);
  s.lane = j.value("lane", s.lane);
  s.layout = j.value("layout", s.layout);
  s.accumulate = j.value("accumulate", s.accumulate);
  s.scaling = j.value("scaling", s.scaling);
  s.image = j.value("image", s.image);
  s.gpus = j.value("gpus", s.gpus);
  s.nodes = j.value("nodes", s.nodes);
  s.thermal = j.value("thermal", s.thermal);
  s.colocate = j.value("colocate", s.colocate);
  s.data = j.value("data", s.data);
  if (const auto stop = j.find("stop"); stop != j.end()) {
    s.stop.confidence = stop->value("confidence", s.stop.confidence);
    s.stop.min_seconds = stop->value("min_seconds", s.stop.min_seconds);
    s.stop.max_seconds = stop->value("max_seconds", s.stop.max_seconds);
  }
  if (const auto limits = j.find("limits"); limits != j.end()) {
    s.limits.cell_seconds = limits->value("cell_seconds", s.limits.cell_seconds);
    s.limits.no_step_seconds = limits->value("no_step_seconds", s.limits.no_step_seconds);
  }
  return s;
}

inline nlohmann::json CellFileToJson(const CellFile& c) {
  return {{"protocol", c.protocol},
          {"attempt", c.attempt},
          {"run", c.run},
          {"cell", c.cell},
          {"repeat", c.repeat},
          {"stack", c.stack},
          {"spec", SpecToJson(c.spec)},
          {"rank", c.rank},
          {"local_rank", c.local_rank},
          {"world_size", c.world_size},
          {"endpoint", c.endpoint},
          {"device",
           {{"kind", c.device_kind},
            {"uuid", c.device_uuid},
            {"ordinal", c.device_ordinal},
            {"card", c.card}}},
          {"seed", c.seed},
          {"spawned_at_boot_ns", c.spawned_at_boot_ns},
          {"purpose", c.purpose},
          {"trial_steps", c.trial_steps}};
}

// Throws as SpecFromJson does.
inline CellFile CellFileFromJson(const nlohmann::json& j) {
  CellFile c;
  c.protocol = j.value("protocol", c.protocol);
  c.attempt = j.value("attempt", c.attempt);
  c.run = j.value("run", c.run);
  c.cell = j.value("cell", c.cell);
  c.repeat = j.value("repeat", c.repeat);
  c.stack = j.value("stack", c.stack);
  if (const auto spec = j.find("spec"); spec != j.end()) c.spec = SpecFromJson(*spec);
  c.rank = j.value("rank", c.rank);
  c.local_rank = j.value("local_rank", c.local_rank);
  c.world_size = j.value("world_size", c.world_size);
  c.endpoint = j.value("endpoint", c.endpoint);
  if (const auto device = j.find("device"); device != j.end()) {
    c.device_kind = device->value("kind", c.device_kind);
    c.device_uuid = device->value("uuid", c.device_uuid);
    c.device_ordinal = device->value("ordinal", c.device_ordinal);
    c.card = device->value("card", c.card);
  }
  c.seed = j.value("seed", c.seed);
  c.spawned_at_boot_ns = j.value("spawned_at_boot_ns", c.spawned_at_boot_ns);
  c.purpose = j.value("purpose", c.purpose);
  c.trial_steps = j.value("trial_steps", c.trial_steps);
  return c;
}

}  // namespace assay

#endif  // ASSAY_COMMON_RUNNER_PROTOCOL_CELL_FILE_H_
