#include <cstdio>

#include "runners/common/bad_input.h"
#include "runners/common/process_start.h"
#include "runners/common/runner_main.h"
#include "runners/simulate/behaviour.h"
#include "runners/simulate/simulate_runner.h"

int main(int argc, char** argv) {
  const int64_t main_at_boot_ns = assay::BootNowNanoseconds();
  try {
    assay::simulate::SimulateRunner runner(assay::simulate::RulesFromEnvironment());
    return assay::RunnerMain(argc, argv, main_at_boot_ns, runner);
  } catch (const assay::BadInput& error) {
    std::fprintf(stderr, "assay-simulate: %s\n", error.what());
    return 2;
  }
}
