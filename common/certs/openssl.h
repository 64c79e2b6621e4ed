// OpenSSL's objects with owners, for the .cc files of this folder.
//
// Thread rule: as OpenSSL's own: an object belongs to one thread at a time.
#ifndef ASSAY_COMMON_CERTS_OPENSSL_H_
#define ASSAY_COMMON_CERTS_OPENSSL_H_

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>

#include "absl/status/status.h"

namespace assay {

template <auto kFree>
struct OpenSslFree {
  template <class T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using BioPtr = std::unique_ptr<BIO, OpenSslFree<BIO_free_all>>;
using BignumPtr = std::unique_ptr<BIGNUM, OpenSslFree<BN_free>>;
using EvpKeyPtr = std::unique_ptr<EVP_PKEY, OpenSslFree<EVP_PKEY_free>>;
using SslContextPtr = std::unique_ptr<SSL_CTX, OpenSslFree<SSL_CTX_free>>;
using SslPtr = std::unique_ptr<SSL, OpenSslFree<SSL_free>>;
using X509Ptr = std::unique_ptr<X509, OpenSslFree<X509_free>>;
using X509ExtensionPtr = std::unique_ptr<X509_EXTENSION, OpenSslFree<X509_EXTENSION_free>>;
using X509StorePtr = std::unique_ptr<X509_STORE, OpenSslFree<X509_STORE_free>>;
using X509StoreContextPtr = std::unique_ptr<X509_STORE_CTX, OpenSslFree<X509_STORE_CTX_free>>;
using GeneralNamesPtr = std::unique_ptr<GENERAL_NAMES, OpenSslFree<GENERAL_NAMES_free>>;

// "<what>: <OpenSSL's latest reason>" as Internal; empties OpenSSL's queue of this thread.
absl::Status OpenSslStatus(const std::string& what);

}  // namespace assay

#endif  // ASSAY_COMMON_CERTS_OPENSSL_H_
