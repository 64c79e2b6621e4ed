#include "runners/peaks/peer.h"

#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>

namespace assay::peaks {
namespace {

using nlohmann::json;

// A line that says that steps go on, between the loan and the result.
constexpr const char* kStillMeasuring = ".";
constexpr std::chrono::seconds kTellEvery{1};

std::string Line(TcpBarrier& ranks, int rank) {
  std::optional<std::string> line = ranks.ReceiveLine(rank);
  if (!line) {
    throw std::runtime_error("rank " + std::to_string(rank) + " left before the copy was measured");
  }
  return *std::move(line);
}

}  // namespace

RunnerResult LendToPeer(const Gpu& gpu, TcpBarrier& ranks, uint64_t seed, RecordWriter& records) {
  const CudaDriver& driver = gpu.driver();
  const NormalBlock values(Number::kFloat32, seed);
  DeviceBuffer memory(gpu, CopySizes(gpu.FreeBytes() / 2, 1).front());
  memory.FillWith(values.data(), values.bytes());
  cuda_api::IpcMemory handle{};
  driver.Check(driver->IpcGetMemHandle(&handle, memory.pointer()), "cuIpcGetMemHandle");
  ranks.SendLine(
      json{{"bytes", memory.bytes()},
           {"handle", std::vector<int>(handle.bytes, handle.bytes + sizeof(handle.bytes))}}
          .dump());
  records.Phase("warmup");
  std::string line = Line(ranks, 0);
  for (uint64_t told = 1; line == kStillMeasuring; ++told) {
    if (told == 1) records.Phase("measure");
    records.Progress(told, 0, 0);
    line = Line(ranks, 0);
  }
  const json said = json::parse(line);
  return {said.at("outcome"), said.at("reason"), said.at("message"), said.at("fields")};
}

PeerCopies::PeerCopies(const Gpu& gpu, TcpBarrier& ranks, uint64_t seed)
    : gpu_(gpu), ranks_(ranks) {
  const json lent = json::parse(Line(ranks, 1));
  const auto bytes = lent.at("handle").get<std::vector<int>>();
  cuda_api::IpcMemory handle{};
  for (size_t i = 0; i < sizeof(handle.bytes) && i < bytes.size(); ++i) {
    handle.bytes[i] = static_cast<unsigned char>(bytes[i]);
  }
  memory_.bytes = lent.at("bytes").get<uint64_t>();
  const CudaDriver& driver = gpu_.driver();
  try {
    driver.Check(driver->IpcOpenMemHandle(&memory_.pointer, handle, cuda_api::kIpcLazyPeerAccess),
                 "cuIpcOpenMemHandle");
  } catch (const CudaError& error) {
    throw NoPeerAccess(error.what());
  }
  copies_ = std::make_unique<Copies>(gpu, CopyKind::kPeer, seed, memory_);
}

PeerCopies::~PeerCopies() { gpu_.driver()->IpcCloseMemHandle(memory_.pointer); }

std::vector<Candidate> PeerCopies::Candidates() const {
  std::vector<Candidate> candidates = copies_->Candidates();
  auto told = std::make_shared<std::chrono::steady_clock::time_point>();
  for (Candidate& candidate : candidates) {
    candidate.queue = [this, told, queue = candidate.queue] {
      queue();
      const auto now = std::chrono::steady_clock::now();
      if (now - *told < kTellEvery) return;
      *told = now;
      ranks_.SendLine(kStillMeasuring);
    };
  }
  return candidates;
}

void PeerCopies::Tell(const RunnerResult& result) const {
  ranks_.SendLine(json{
      {"outcome", result.outcome},
      {"reason", result.reason},
      {"message", result.message},
      {"fields",
       result.fields}}.dump());
}

}  // namespace assay::peaks
