#include "common/certs/key_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "common/status/status.h"

namespace assay {
namespace {

absl::Status WriteTo(int fd, const char* data, size_t size, const std::string& path) {
  while (size > 0) {
    const ssize_t written = write(fd, data, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return ErrnoStatus(written < 0 ? errno : ENOSPC, "cannot write " + path);
    data += written;
    size -= static_cast<size_t>(written);
  }
  return absl::OkStatus();
}

absl::Status SyncFolderOf(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const int fd = open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, fmt::format("cannot open {}", folder));
  const int error = fsync(fd) == 0 ? 0 : errno;
  close(fd);
  return error == 0 ? absl::OkStatus() : ErrnoStatus(error, fmt::format("cannot sync {}", folder));
}

enum class Existing { kKeep, kReplace };

// A link is refused where the name is taken, on file systems too that know no RENAME_NOREPLACE.
int PutInPlace(const std::string& temporary, const std::string& path, Existing existing) {
  if (existing == Existing::kReplace) return rename(temporary.c_str(), path.c_str());
  const int linked = link(temporary.c_str(), path.c_str());
  if (linked == 0) unlink(temporary.c_str());
  return linked;
}

// Beside its place under a name of its own, synced, then put into place.
absl::Status WriteFile(const std::string& path, const char* data, size_t size, mode_t mode,
                       Existing existing) {
  const std::string temporary = fmt::format("{}.{}.tmp", path, getpid());
  unlink(temporary.c_str());  // of a process of the same number that was killed
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (fd < 0) return ErrnoStatus(errno, fmt::format("cannot create {}", temporary));
  absl::Status status = WriteTo(fd, data, size, temporary);
  // The umask has no say: a certificate is for everyone, a key for its owner alone.
  if (status.ok() && fchmod(fd, mode) != 0) status = ErrnoStatus(errno, "cannot protect " + path);
  if (status.ok() && fsync(fd) != 0) status = ErrnoStatus(errno, "cannot sync " + temporary);
  close(fd);
  if (status.ok() && PutInPlace(temporary, path, existing) != 0) {
    status = ErrnoStatus(errno, fmt::format("cannot put {} in place", path));
  }
  if (!status.ok()) {
    unlink(temporary.c_str());
    return status;
  }
  return SyncFolderOf(path);
}

}  // namespace

absl::Status WriteNewKey(const std::string& path, EVP_PKEY* key) {
  // Secure memory where the system gives it, wiped in any case.
  const BioPtr bio(BIO_new(BIO_s_secmem()));
  char* data = nullptr;
  if (bio == nullptr ||
      PEM_write_bio_PKCS8PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return OpenSslStatus("cannot write a key");
  }
  const long size = BIO_get_mem_data(bio.get(), &data);
  return WriteFile(path, data, static_cast<size_t>(size), 0600, Existing::kKeep);
}

absl::Status WriteCertificateFile(const std::string& path, const std::string& pem) {
  return WriteFile(path, pem.data(), pem.size(), 0644, Existing::kReplace);
}

}  // namespace assay
