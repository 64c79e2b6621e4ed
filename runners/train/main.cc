// assay-train: one cell of training or inference (docs/protocol.md).
//
// The program itself is small and linked with no framework. It loads the library that is, so that
// library_load_seconds is the time of exactly that: mapping, relocating and initialising LibTorch.
#include <dlfcn.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
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
    const std::string path = LibraryPath();
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      throw std::runtime_error(std::string("LibTorch cannot be loaded: ") + dlerror());
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
