// How keys and certificates get onto the disk.
//
// Thread rule: any thread. Errors name the path.
#ifndef ASSAY_COMMON_CERTS_KEY_FILE_H_
#define ASSAY_COMMON_CERTS_KEY_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "common/certs/openssl.h"

namespace assay {

// PEM (PKCS #8, no passphrase) of mode 0600. Never overwrites: AlreadyExists where `path` is there.
absl::Status WriteNewKey(const std::string& path, EVP_PKEY* key);

// Mode 0644, in place of an older one.
absl::Status WriteCertificateFile(const std::string& path, const std::string& pem);

}  // namespace assay

#endif  // ASSAY_COMMON_CERTS_KEY_FILE_H_
