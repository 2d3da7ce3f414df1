#pragma once

// Certificates for tests of TLS, made when they are needed, so that none expires.

#include <memory>
#include <string>

struct evp_pkey_st;
struct x509_st;

namespace weft {

struct CertificateSettings {
  std::string passphrase = {};  // of the key's file; "" for none
  std::string hosts = "DNS:localhost,IP:127.0.0.1";
};

// Signs certificates that are valid today.
class CertificateAuthority {
 public:
  explicit CertificateAuthority(const std::string& name);

  // Its own certificate, which a program that trusts it reads.
  void write(const std::string& path) const;
  // A new key, and a certificate for it with this name. Both may be one file.
  void sign(const std::string& name, const std::string& certificate_path, const std::string& key_path,
            const CertificateSettings& settings = {}) const;

 private:
  std::shared_ptr<evp_pkey_st> key_;
  std::shared_ptr<x509_st> certificate_;
};

}  // namespace weft
