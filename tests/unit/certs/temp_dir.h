// A folder of one test, removed with it.
#ifndef ASSAY_TESTS_UNIT_CERTS_TEMP_DIR_H_
#define ASSAY_TESTS_UNIT_CERTS_TEMP_DIR_H_

#include <stdlib.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "common/certs/authority.h"

namespace assay {

class TempDir {
 public:
  TempDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "assay-certs-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// 2026-06-01T00:00:00Z: tests do not look at the real clock.
inline constexpr CertificateTime kNow{std::chrono::seconds(1'780'272'000)};

inline CertificateRequest RequestFor(Identity::Kind kind, const std::string& name = "",
                                     Role role = Role::kView) {
  CertificateRequest request;
  request.identity = {kind, name, role};
  if (kind == Identity::Kind::kCoordinator) request.hosts = {"gpu.example.com", "10.1.2.3", "::1"};
  return request;
}

}  // namespace assay

#endif  // ASSAY_TESTS_UNIT_CERTS_TEMP_DIR_H_
