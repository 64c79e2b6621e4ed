#include "agent/telemetry/device_health.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>
#include <type_traits>

#include "common/results/outcome.h"

namespace assay {
namespace {

template <class T>
void SetKnown(Record& record, Field field, const std::optional<T>& value) {
  if (!value) return;
  if constexpr (std::is_same_v<T, uint64_t> || std::is_same_v<T, int>) {
    record.Set(field, static_cast<int64_t>(*value)).IgnoreError();
  } else {
    record.Set(field, *value).IgnoreError();
  }
}

// `figure` of every device, joined two by two; nothing where one device lacks it.
template <class T, class Devices, class Figure, class Join>
std::optional<T> JoinAll(const Devices& devices, Figure figure, Join join) {
  std::optional<T> joined;
  for (const auto& device : devices) {
    const std::optional<T> value = figure(device);
    if (!value) return std::nullopt;
    joined = joined ? join(*joined, *value) : *value;
  }
  return joined;
}

template <class T>
T Least(T a, T b) {
  return std::min(a, b);
}

}  // namespace

void DeviceHealth::Before(size_t device, const absl::StatusOr<NvmlState>& state) {
  if (device < devices_.size() && state.ok()) devices_[device].before = *state;
}

void DeviceHealth::After(size_t device, const absl::StatusOr<NvmlState>& state) {
  if (device < devices_.size() && state.ok()) devices_[device].after = *state;
}

void DeviceHealth::Link(size_t index, const absl::StatusOr<NvmlLink>& link) {
  if (index >= devices_.size() || !link.ok()) return;
  One& device = devices_[index];
  if (link->generation) {
    device.generation = std::max(device.generation.value_or(*link->generation), *link->generation);
  }
  if (link->width) device.width = std::min(device.width.value_or(*link->width), *link->width);
}

void DeviceHealth::Xids(size_t index, const absl::StatusOr<std::vector<int64_t>>& xids) {
  if (index >= devices_.size()) return;
  One& device = devices_[index];
  if (!xids.ok()) {
    device.xids_lost = true;
    return;
  }
  if (!device.xids) device.xids.emplace();
  device.xids->insert(device.xids->end(), xids->begin(), xids->end());
}

void DeviceHealth::FillSettings(Record& record) const {
  const auto set = [&](Field field, auto member, auto join) {
    using T = typename std::invoke_result_t<decltype(member), const NvmlState&>::value_type;
    SetKnown(record, field,
             JoinAll<T>(
                 devices_,
                 [&](const One& device) {
                   return device.before ? member(*device.before) : std::optional<T>();
                 },
                 join));
  };
  const std::plus<double> sum;
  const auto least = Least<double>;
  const auto fewest = Least<int>;
  const std::logical_and<bool> both;
  set(Field::kPowerLimitWatts, [](const auto& s) { return s.power_limits.enforced_watts; }, sum);
  set(
      Field::kPowerLimitDefaultWatts, [](const auto& s) { return s.power_limits.default_watts; },
      sum);
  set(Field::kSmClockMaxHertz, [](const auto& s) { return s.sm_clock_max_hertz; }, least);
  set(
      Field::kSmClockApplicationHertz, [](const auto& s) { return s.sm_clock_application_hertz; },
      least);
  set(
      Field::kSmClockApplicationDefaultHertz,
      [](const auto& s) { return s.sm_clock_application_default_hertz; }, least);
  set(
      Field::kMemoryClockApplicationHertz,
      [](const auto& s) { return s.memory_clock_application_hertz; }, least);
  set(
      Field::kMemoryClockApplicationDefaultHertz,
      [](const auto& s) { return s.memory_clock_application_default_hertz; }, least);
  set(Field::kPersistence, [](const auto& s) { return s.persistence; }, both);
  set(Field::kEccEnabled, [](const auto& s) { return s.ecc_enabled; }, both);
  set(Field::kPcieGenerationMax, [](const auto& s) { return s.pcie_generation_max; }, fewest);
  set(Field::kPcieWidthMax, [](const auto& s) { return s.pcie_width_max; }, fewest);
}

void DeviceHealth::Fill(Record& record) const {
  if (devices_.empty()) return;
  FillSettings(record);
  const auto count = [&](Field field, auto reading, auto member) {
    SetKnown(record, field,
             JoinAll<uint64_t>(
                 devices_,
                 [&](const One& device) {
                   const std::optional<NvmlState>& state = device.*reading;
                   return state ? (*state).*member : std::optional<uint64_t>();
                 },
                 std::plus<uint64_t>()));
  };
  count(Field::kEccCorrectedBefore, &One::before, &NvmlState::ecc_corrected);
  count(Field::kEccCorrectedAfter, &One::after, &NvmlState::ecc_corrected);
  count(Field::kEccUncorrectedBefore, &One::before, &NvmlState::ecc_uncorrected);
  count(Field::kEccUncorrectedAfter, &One::after, &NvmlState::ecc_uncorrected);
  count(Field::kRemappedRowsBefore, &One::before, &NvmlState::remapped_rows);
  count(Field::kRemappedRowsAfter, &One::after, &NvmlState::remapped_rows);
  SetKnown(record, Field::kRemapPending,
           JoinAll<bool>(
               devices_,
               [](const One& device) {
                 return device.after ? device.after->remap_pending : std::optional<bool>();
               },
               std::logical_or<bool>()));
  const auto fewest = [&](Field field, auto member) {
    SetKnown(record, field,
             JoinAll<int>(devices_, [&](const One& device) { return device.*member; }, Least<int>));
  };
  fewest(Field::kPcieGeneration, &One::generation);
  fewest(Field::kPcieWidth, &One::width);
  std::vector<std::string> xids;
  for (const One& device : devices_) {
    if (!device.xids || device.xids_lost) return;
    for (const int64_t xid : *device.xids) xids.push_back(std::to_string(xid));
  }
  record.SetList(Field::kXids, xids).IgnoreError();
}

uint64_t DeviceHealth::NewUncorrected(const One& device) {
  if (!device.before || !device.after || !device.before->ecc_uncorrected ||
      !device.after->ecc_uncorrected) {
    return 0;
  }
  const uint64_t before = *device.before->ecc_uncorrected, after = *device.after->ecc_uncorrected;
  return after > before ? after - before : 0;
}

DeviceFault DeviceHealth::FaultOf(size_t index, const std::string& uuid) const {
  if (index >= devices_.size()) return {};
  const One& device = devices_[index];
  if (const uint64_t errors = NewUncorrected(device); errors > 0) {
    return {uuid, reason::kEccError,
            fmt::format("{} uncorrected ECC errors on {} during the attempt: reset the GPU, look "
                        "for a pending row remap, distrust earlier results",
                        errors, uuid)};
  }
  for (const int64_t xid : device.xids.value_or(std::vector<int64_t>())) {
    if (xid == 48 || xid == 94 || xid == 95) {
      return {uuid, reason::kEccError,
              fmt::format("the driver reported Xid {}, an uncorrected memory error, on {} during "
                          "the attempt: reset the GPU",
                          xid, uuid)};
    }
    if (xid == 79) {
      return {
          uuid, reason::kGpuGone,
          fmt::format("the driver reported Xid 79 on {}: the GPU has fallen off the bus", uuid)};
    }
  }
  return {};
}

}  // namespace assay
