// assay-peaks: one ceiling of a card (docs/protocol.md, docs/adr/0003-peaks.md).
#include "runners/common/process_start.h"
#include "runners/common/runner_main.h"
#include "runners/peaks/peaks_runner.h"

int main(int argc, char** argv) {
  const int64_t main_at_boot_ns = assay::BootNowNanoseconds();
  assay::peaks::PeaksRunner runner;
  return assay::RunnerMain(argc, argv, main_at_boot_ns, runner);
}
