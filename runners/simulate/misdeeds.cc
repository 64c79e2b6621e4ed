#include "runners/simulate/misdeeds.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <stdexcept>
#include <string>

namespace assay::simulate {
namespace {

using std::string_literals::operator""s;

[[noreturn]] void HangForEver() {
  for (;;) pause();
}

[[noreturn]] void Crash(int signal) {
  // As an agent's children do; by hand no core file is left behind either.
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  std::signal(signal, SIG_DFL);
  raise(signal);
  _exit(128 + signal);  // a signal whose default is to do nothing
}

// A child in a session of its own that ignores TERM and holds its parent's descriptors: what a data
// loader that was left behind looks like.
void LeaveGrandchild() {
  if (fork() != 0) return;
  setsid();
  std::signal(SIGTERM, SIG_IGN);
  HangForEver();
}

}  // namespace

void BeforeJoin(const Behaviour& behaviour) {
  if (behaviour.ignore_term) std::signal(SIGTERM, SIG_IGN);
  if (behaviour.grandchild) LeaveGrandchild();
  if (behaviour.hang_before_join) HangForEver();
}

void WhileMeasuring(const Behaviour& behaviour, RecordWriter& records) {
  if (behaviour.flood) {
    const std::string line(1023, 'x');
    for (int i = 0; i < 4096; ++i) std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  }
  if (behaviour.garbage) records.WriteRaw("\xff\xfe not a record {[\0\0\n"s);
  if (behaviour.huge_line) records.WriteRaw(std::string((1 << 20) + 16, 'y') + "\n");
  if (behaviour.close_records) records.Close();
  if (behaviour.crash_signal) Crash(*behaviour.crash_signal);
  if (behaviour.exit_code) _exit(*behaviour.exit_code);
  if (behaviour.hang) HangForEver();
  if (behaviour.error) throw std::runtime_error("simulated error of the framework");
}

void Misreport(const Behaviour& behaviour, int64_t steps, nlohmann::json& fields) {
  if (behaviour.wrong_device_steps) fields["device_steps"] = steps - 1;
  if (behaviour.timer) {
    const double seconds = fields["seconds"].get<double>() * 0.9;
    fields["seconds"] = seconds;
    fields["throughput"] = fields["samples"].get<double>() / seconds;
  }
  if (behaviour.early_clock) fields["host_seconds"] = fields["seconds"].get<double>() * 0.1;
  if (behaviour.constant_inputs) fields["loss_last"] = fields.value("loss_first", 0.0);
}

}  // namespace assay::simulate
