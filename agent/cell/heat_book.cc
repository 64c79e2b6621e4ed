#include "agent/cell/heat_book.h"

namespace assay {

void HeatBook::Arrive(const std::vector<std::string>& uuids, BootTime now) {
  for (const std::string& uuid : uuids) {
    One& gpu = gpus_[uuid];
    if (!gpu.loaded_until || now - *gpu.loaded_until > kMostIdle) gpu.settled.reset();
  }
}

void HeatBook::NoteLoad(const std::vector<std::string>& uuids, BootTime now) {
  for (const std::string& uuid : uuids) gpus_[uuid].loaded_until = now;
}

void HeatBook::NoteSettled(const std::vector<std::string>& uuids, bool settled) {
  for (const std::string& uuid : uuids) gpus_[uuid].settled = settled;
}

std::optional<bool> HeatBook::Settled(const std::vector<std::string>& uuids) const {
  bool all = true;
  for (const std::string& uuid : uuids) {
    const auto gpu = gpus_.find(uuid);
    if (gpu == gpus_.end() || !gpu->second.settled) return std::nullopt;
    all = all && *gpu->second.settled;
  }
  return all;
}

}  // namespace assay
