// What the agent's sampler costs a cell: one runner process trains without an end while the sampler
// is on and off in alternating windows (on off off on ...). Of each window the rate of steps
// between its first and its last progress record, which follow finished steps; of each pair of
// neighbours the share that the sampler took. Prints every pair, the mean and its 95 % interval as
// JSON.
//
//   telemetry_cost --runner build/release/bin/assay-train --gpu GPU-... --batch 64 [--lane eager]
//
// --bound R: exit code 1 where the upper end of the interval is above R. --devices FILE: a captured
// NVML in place of the driver, to try the bench itself with the simulator.
#include <absl/cleanup/cleanup.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "agent/cell/record_lines.h"
#include "agent/inventory/gpu_devices.h"
#include "agent/inventory/local_inventory.h"
#include "agent/process/spawn.h"
#include "agent/process/unique_fd.h"
#include "agent/telemetry/deadline_nvml.h"
#include "agent/telemetry/fake_nvml.h"
#include "agent/telemetry/nvml_library.h"
#include "agent/telemetry/sampling_session.h"
#include "common/catalog/card_catalog.h"
#include "common/measure/interval.h"
#include "common/measure/moments.h"
#include "common/runner_protocol/cell_file.h"
#include "common/runner_protocol/record_parser.h"
#include "common/status/status.h"

namespace assay {
namespace {

using Seconds = std::chrono::duration<double>;

struct Options {
  std::string runner, gpu, devices, model = "resnet50", precision = "amp-fp16", lane = "eager";
  int64_t batch = 64;
  int pairs = 60;
  double window_seconds = 2;
  double bound = 0;
  std::string card;
};

// One runner and the steps that it has told.
class Load {
 public:
  ~Load() {
    if (pid_ <= 0) return;
    ::kill(-pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  absl::Status Start(const Options& options, bool simulated) {
    CellFile cell;
    cell.attempt = cell.run = "bench";
    cell.spec.model = options.model;
    cell.spec.precision = options.precision;
    cell.spec.batch = options.batch;
    cell.spec.lane = options.lane;
    cell.spec.stop = {0, 3600, 3600};
    cell.device_kind = simulated ? "simulated" : "cuda";
    cell.device_uuid = options.gpu;
    cell.card = options.card;
    const std::string path = fmt::format("/tmp/telemetry_cost.{}.json", ::getpid());
    const absl::Cleanup remove = [&path] { ::unlink(path.c_str()); };  // read long before
    std::ofstream(path) << CellFileToJson(cell).dump() << "\n";
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "cannot make a pipe");
    records_ = UniqueFd(ends[0]);
    UniqueFd write_end(ends[1]);
    const UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    std::map<std::string, std::string> environment = ProcessEnvironment();
    if (!simulated) {
      environment["CUDA_VISIBLE_DEVICES"] = options.gpu;
      environment["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";
    }
    ASSAY_ASSIGN_OR_RETURN(
        pid_, SpawnSessionLeader(options.runner, {"--cell", path, "--records", "fd:3"}, environment,
                                 {null.get(), STDERR_FILENO, STDERR_FILENO, write_end.get()}));
    write_end.Reset();  // or the end of the runner would not be seen
    while (!measuring_) ASSAY_RETURN_IF_ERROR(Collect(BootClock::now() + std::chrono::seconds(1)));
    return absl::OkStatus();
  }

  // Reads until `until`.
  absl::Status Collect(BootTime until) {
    for (;;) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(until - BootClock::now()).count();
      if (left <= 0) return absl::OkStatus();
      pollfd item{records_.get(), POLLIN, 0};
      if (::poll(&item, 1, static_cast<int>(left)) <= 0) continue;
      char buffer[4096];
      const ssize_t got = ::read(records_.get(), buffer, sizeof buffer);
      if (got <= 0) return absl::UnavailableError("the runner ended");
      const BootTime now = BootClock::now();
      lines_.Append({buffer, static_cast<size_t>(got)},
                    [&](std::string_view line) { OnLine(line, now); });
      if (!failure_.empty()) return absl::InternalError(failure_);
    }
  }

  // Steps a second between the first and the last record of the time span.
  std::optional<double> RateIn(BootTime from, BootTime to) const {
    const auto first = std::lower_bound(told_.begin(), told_.end(), from,
                                        [](const Told& told, BootTime at) { return told.at < at; });
    auto last = first;
    for (auto it = first; it != told_.end() && it->at <= to; ++it) last = it;
    if (first == told_.end() || last == first) return std::nullopt;
    return static_cast<double>(last->step - first->step) / Seconds(last->at - first->at).count();
  }

 private:
  struct Told {
    BootTime at;
    int64_t step;
  };

  void OnLine(std::string_view line, BootTime now) {
    const record::ParseResult parsed = record::ParseRecordLine(line);
    if (!parsed.record) {
      failure_ = parsed.error;
    } else if (const auto* phase = std::get_if<record::Phase>(&*parsed.record)) {
      measuring_ = phase->phase == "measure";
    } else if (const auto* progress = std::get_if<record::Progress>(&*parsed.record)) {
      if (measuring_) told_.push_back({now, progress->step});
    } else if (const auto* result = std::get_if<record::Result>(&*parsed.record)) {
      failure_ = result->outcome + ": " + result->message;
    }
  }

  pid_t pid_ = -1;
  UniqueFd records_;
  RecordLines lines_;
  std::vector<Told> told_;
  bool measuring_ = false;
  std::string failure_;
};

struct Pair {
  double on = 0, off = 0;
  double Cost() const { return 1 - on / off; }
};

absl::StatusOr<std::vector<Pair>> Measure(const Options& options, Nvml& nvml, Load& load) {
  const SystemClock clock;
  const auto window =
      std::chrono::duration_cast<std::chrono::nanoseconds>(Seconds(options.window_seconds));
  Device device;
  device.uuid = options.gpu;
  std::vector<Pair> pairs(static_cast<size_t>(options.pairs));
  for (size_t i = 0; i < 2 * pairs.size(); ++i) {
    const bool on = i % 4 == 0 || i % 4 == 3;
    std::optional<SamplingSession> session;
    if (on) {
      session.emplace(&nvml, &clock, TelemetryOptions(), std::vector<Device>{device}, Record());
      session->WindowBegin();
    }
    const BootTime begin = BootClock::now();
    ASSAY_RETURN_IF_ERROR(load.Collect(begin + window));
    const std::optional<double> rate = load.RateIn(begin, begin + window);
    if (!rate) return absl::InternalError("a window has fewer than two records: make it longer");
    (on ? pairs[i / 2].on : pairs[i / 2].off) = *rate;
  }
  return pairs;
}

int Print(const Options& options, const std::vector<Pair>& pairs) {
  std::vector<double> costs;
  for (const Pair& pair : pairs) costs.push_back(pair.Cost());
  const auto interval = measure::MeanInterval(costs);
  fmt::print(
      "{{\"gpu\": \"{}\", \"model\": \"{}\", \"precision\": \"{}\", \"batch\": {}, "
      "\"lane\": \"{}\", \"window_seconds\": {},\n",
      options.card, options.model, options.precision, options.batch, options.lane,
      options.window_seconds);
  fmt::print(
      " \"cost_mean_ratio\": {:.6f}, \"cost_low_ratio\": {:.6f}, \"cost_high_ratio\": "
      "{:.6f},\n \"steps_per_second_on_off\": [",
      measure::Moments(costs).mean(), interval ? interval->low : 0, interval ? interval->high : 0);
  for (size_t i = 0; i < pairs.size(); ++i) {
    fmt::print("{}[{:.4f}, {:.4f}]", i == 0 ? "" : ", ", pairs[i].on, pairs[i].off);
  }
  fmt::print("]}}\n");
  if (options.bound <= 0) return 0;
  return interval && interval->high <= options.bound ? 0 : 1;
}

absl::StatusOr<int> Run(Options options) {
  const bool simulated = !options.devices.empty();
  std::unique_ptr<Nvml> nvml;
  if (simulated) {
    ASSAY_ASSIGN_OR_RETURN(nvml, FakeNvml::Load(options.devices));
  } else {
    nvml = std::make_unique<DeadlineNvml>(std::make_unique<NvmlLibrary>());
  }
  ASSAY_ASSIGN_OR_RETURN(const NvmlSystem system, nvml->Describe());
  std::vector<std::string> warnings;
  for (const Device& device : GpuDevices(system, simulated, "/sys", warnings)) {
    if (!device.usable || (!options.gpu.empty() && device.uuid != options.gpu)) continue;
    options.gpu = device.uuid;
    options.card = IdentifyDevice(device).name;
    break;
  }
  if (options.card.empty()) return absl::NotFoundError("there is no such GPU");
  Load load;
  ASSAY_RETURN_IF_ERROR(load.Start(options, simulated));
  ASSAY_ASSIGN_OR_RETURN(const std::vector<Pair> pairs, Measure(options, *nvml, load));
  return Print(options, pairs);
}

int Main(int argc, char** argv) {
  CLI::App app("What the agent's sampler costs a cell", "telemetry_cost");
  Options options;
  app.add_option("--runner", options.runner, "Absolute path of the runner program")->required();
  app.add_option("--gpu", options.gpu, "UUID; the first GPU without it");
  app.add_option("--devices", options.devices, "Captured NVML, for the simulator");
  app.add_option("--model", options.model);
  app.add_option("--precision", options.precision);
  app.add_option("--lane", options.lane);
  app.add_option("--batch", options.batch);
  app.add_option("--pairs", options.pairs)->check(CLI::Range(2, 10000));
  app.add_option("--window", options.window_seconds)->check(CLI::Range(0.1, 600.0));
  app.add_option("--bound", options.bound, "Most of the upper end, as a ratio");
  CLI11_PARSE(app, argc, argv);
  const absl::StatusOr<int> code = Run(options);
  if (code.ok()) return *code;
  std::fprintf(stderr, "telemetry_cost: %s\n", Message(code.status()).c_str());
  return 2;
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) { return assay::Main(argc, argv); }
