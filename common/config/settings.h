// Settings: what a program was told, and by whom. One list and one checker for all programs.
//
// A flag beats ASSAY_*, which beats the file, which beats the default. The file is a flat YAML map
// that the programs of one state directory share (DIR/config.yaml, or --config FILE): a key of
// another program is checked and left alone, a key that no program knows is refused.
//
// Thread rule: one owner. Errors: InvalidArgument, a line for each fault.
#ifndef ASSAY_COMMON_CONFIG_SETTINGS_H_
#define ASSAY_COMMON_CONFIG_SETTINGS_H_

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "common/net/transport.h"

namespace assay {

enum class Program : unsigned { kCli = 1, kCoordinator = 2, kAgent = 4 };

class Settings {
 public:
  // Gives a variable or null.
  using Environment = std::function<const char*(const char*)>;

  Settings(Program program, Environment environment);

  // A flag of the command line; `name` is in the list. "config" names the file.
  void SetFlag(const std::string& name, std::vector<std::string> values);

  // Takes the environment and, where `with_file`, the file; checks every value.
  absl::Status Resolve(bool with_file = true);

  // Empty where nobody set it and there is no default.
  std::string Text(std::string_view name) const;
  bool Flag(std::string_view name) const;
  double Seconds(std::string_view name, double otherwise) const;
  const std::vector<std::string>& List(std::string_view name) const;

  // "--state", "ASSAY_STATE", "FILE:3" or "default".
  std::string Source(std::string_view name) const;
  // The file that was read; empty: none.
  const std::string& file() const { return file_; }

  // Every setting of this program with its source, as a file that could be read back.
  std::string Printed() const;

 private:
  struct Value {
    std::vector<std::string> values;
    std::string source;
  };

  absl::Status TakeFile(const std::string& path, bool is_default);
  const Value* Find(std::string_view name) const;

  Program program_;
  Environment environment_;
  std::map<std::string, Value, std::less<>> values_;
  std::string file_;
};

// The settings tls-ca, tls-cert, tls-key and insecure.
Transport TransportOf(const Settings& settings);

}  // namespace assay

#endif  // ASSAY_COMMON_CONFIG_SETTINGS_H_
