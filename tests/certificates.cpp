#include "tests/certificates.h"

#include <stdexcept>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

namespace weft {
namespace {

constexpr long kDay = 24 * 60 * 60;

void check(bool is_good) {
  if (!is_good) throw std::runtime_error("OpenSSL cannot make a certificate");
}

std::shared_ptr<EVP_PKEY> new_key() {
  std::shared_ptr<EVP_PKEY> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  check(key != nullptr);
  return key;
}

void add_extension(X509* certificate, int kind, const char* value) {
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value);
  check(extension != nullptr && X509_add_ext(certificate, extension, -1) == 1);
  X509_EXTENSION_free(extension);
}

// Not signed yet.
std::shared_ptr<X509> new_certificate(const std::string& name, EVP_PKEY* key) {
  std::shared_ptr<X509> certificate(X509_new(), X509_free);
  std::uint32_t serial = 0;
  check(RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial) == 1);
  X509_set_version(certificate.get(), X509_VERSION_3);
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate.get()), serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -kDay);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), kDay);
  check(X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate.get()), "CN", MBSTRING_UTF8,
                                   reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0) == 1);
  check(X509_set_pubkey(certificate.get(), key) == 1);
  return certificate;
}

template <class Write>
void write_file(const std::string& path, const char* mode, Write write) {
  BIO* file = BIO_new_file(path.c_str(), mode);
  check(file != nullptr && write(file) == 1);
  BIO_free(file);
}

}  // namespace

CertificateAuthority::CertificateAuthority(const std::string& name) : key_(new_key()) {
  certificate_ = new_certificate(name, key_.get());
  X509_set_issuer_name(certificate_.get(), X509_get_subject_name(certificate_.get()));
  add_extension(certificate_.get(), NID_basic_constraints, "critical,CA:TRUE");
  add_extension(certificate_.get(), NID_key_usage, "critical,keyCertSign,cRLSign");
  check(X509_sign(certificate_.get(), key_.get(), EVP_sha256()) != 0);
}

void CertificateAuthority::write(const std::string& path) const {
  write_file(path, "w", [&](BIO* file) { return PEM_write_bio_X509(file, certificate_.get()); });
}

void CertificateAuthority::sign(const std::string& name, const std::string& certificate_path,
                                const std::string& key_path, const CertificateSettings& settings) const {
  const std::string& passphrase = settings.passphrase;
  const std::shared_ptr<EVP_PKEY> key = new_key();
  const std::shared_ptr<X509> certificate = new_certificate(name, key.get());
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(certificate_.get()));
  add_extension(certificate.get(), NID_basic_constraints, "CA:FALSE");
  add_extension(certificate.get(), NID_subject_alt_name, settings.hosts.c_str());
  check(X509_sign(certificate.get(), key_.get(), EVP_sha256()) != 0);
  write_file(certificate_path, "w", [&](BIO* file) { return PEM_write_bio_X509(file, certificate.get()); });
  write_file(key_path, certificate_path == key_path ? "a" : "w", [&](BIO* file) {
    const EVP_CIPHER* cipher = passphrase.empty() ? nullptr : EVP_aes_256_cbc();
    const auto* secret = reinterpret_cast<const unsigned char*>(passphrase.data());
    return PEM_write_bio_PrivateKey(file, key.get(), cipher, passphrase.empty() ? nullptr : secret,
                                    static_cast<int>(passphrase.size()), nullptr, nullptr);
  });
}

}  // namespace weft
