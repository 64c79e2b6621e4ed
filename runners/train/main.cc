// assay-train: one cell of training or inference (docs/protocol.md).
//
// The program itself is small and linked with no framework. It loads the library that is, so that
// library_load_seconds is the time of exactly that: mapping, relocating and initialising LibTorch.
#include <dlfcn.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include "common/version.h"
#include "runners/common/process_start.h"
#include "runners/common/runner_main.h"

namespace assay {
namespace {

// Beside this program in an install folder and in a build folder alike.
std::string LibraryPath() {
  char path[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof(path));
  if (size <= 0) throw std::runtime_error("/proc/self/exe cannot be read");
  const std::string program(path, static_cast<size_t>(size));
  return program.substr(0, program.rfind('/')) + "/../lib/libassay-train.so";
}

std::string VersionOf(const std::string& libtorch) {
  for (const char* name : {"/version.py", "/build-version"}) {
    std::ifstream file(libtorch + name);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const size_t begin = text.find_first_of("0123456789");
    if (begin != std::string::npos) {
      return text.substr(begin, text.find_first_not_of("0123456789.", begin) - begin);
    }
  }
  return "of an unknown version";
}

// LibTorch is looked for where this program was built against it, which the loader does by itself,
// and then in ASSAY_LIBTORCH, here: once these are loaded, the loader finds them by their names.
void LoadLibTorch(const std::string& error) {
  const char* folder = getenv("ASSAY_LIBTORCH");
  if (folder == nullptr || *folder == 0) {
    throw std::runtime_error("LibTorch " ASSAY_LIBTORCH_VERSION
                             " is not where assay-train was built "
                             "with it: set ASSAY_LIBTORCH to a folder with its lib/ "
                             "(cmake/fetch_libtorch.py prints one); " +
                             error);
  }
  if (VersionOf(folder) != ASSAY_LIBTORCH_VERSION) {
    throw std::runtime_error("LibTorch in ASSAY_LIBTORCH=" + std::string(folder) + " is " +
                             VersionOf(folder) +
                             ", and assay-train was built with " ASSAY_LIBTORCH_VERSION);
  }
  for (const char* name : {"libc10.so", "libtorch_cpu.so", "libc10_cuda.so", "libtorch_cuda.so"}) {
    const std::string path = std::string(folder) + "/lib/" + name;
    if (access(path.c_str(), F_OK) != 0) continue;
    if (dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr)
      throw std::runtime_error(dlerror());
  }
}

// libgomp reads it when it is loaded. By default its threads spin for milliseconds at the end of
// each parallel loop, hundreds of times a step: where another process wants the core, all wait for
// the one that spins instead of working, and a step takes ten times as long. Figures:
// docs/method.md.
void SpinBriefly() {
  if (getenv("OMP_WAIT_POLICY") == nullptr) setenv("GOMP_SPINCOUNT", "1000", /*overwrite=*/0);
}

class LoadedRunner final : public Runner {
 public:
  std::string Name() const override { return "assay-train"; }
  std::string Version() const override { return kVersion; }
  nlohmann::json StackInfo() override { return Loaded().StackInfo(); }
  std::vector<std::string> Models() const override { return Loaded().Models(); }
  nlohmann::json Describe(const std::string& model) override { return Loaded().Describe(model); }

  RunnerResult Run(const CellFile& cell, RecordWriter& records) override {
    records.Phase("load");
    const int64_t start = BootNowNanoseconds();
    Runner& runner = Loaded();
    const double seconds = static_cast<double>(BootNowNanoseconds() - start) * 1e-9;
    RunnerResult result = runner.Run(cell, records);
    result.fields["library_load_seconds"] = seconds;
    return result;
  }

 private:
  static Runner& Loaded() {
    static Runner* const runner = Load();
    return *runner;
  }

  static Runner* Load() {
    SpinBriefly();
    const std::string path = LibraryPath();
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      const std::string error = dlerror();
      if (access(path.c_str(), R_OK) != 0) throw std::runtime_error(error);
      LoadLibTorch(error);
      library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (library == nullptr) throw std::runtime_error(dlerror());
    }
    const auto entry = reinterpret_cast<Runner* (*)()>(dlsym(library, "AssayTrainRunner"));
    if (entry == nullptr) throw std::runtime_error(path + " is not of this assay-train");
    return entry();
  }
};

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  const int64_t main_at_boot_ns = assay::BootNowNanoseconds();
  assay::LoadedRunner runner;
  return assay::RunnerMain(argc, argv, main_at_boot_ns, runner);
}
