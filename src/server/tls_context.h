#pragma once

// Certificates and keys for connections in TLS 1.2 and later, by OpenSSL.

#include <memory>
#include <string>

struct ssl_ctx_st;
struct ssl_st;

namespace weft {

// Whether a client must show a certificate. The values are those of Python's ssl module and of --ssl-cert-reqs.
enum class ClientCertificates { none = 0, optional = 1, required = 2 };

struct TlsFiles {
  std::string certificate;  // PEM: the server's certificate, then those that lead from it to an authority
  std::string key;          // PEM without a passphrase; "": in the file of the certificate
  std::string authorities;  // PEM: who may sign certificates of clients
  ClientCertificates clients = ClientCertificates::none;
};

struct FreeTlsSession {
  void operator()(ssl_st* session) const;
};
// The state of one connection.
using TlsSession = std::unique_ptr<ssl_st, FreeTlsSession>;

// Immutable: sessions of several contexts exist side by side after the files were read again.
class TlsContext {
 public:
  // Reads the files. UserError with the flag and the name of a file that is wrong.
  static TlsContext of_server(const TlsFiles& files);
  // For connections to servers. `verifies`: only to those whose certificate an authority of this system has signed.
  static TlsContext of_client(bool verifies);

  TlsSession server_session() const;
  // `host` is a name or an address, which the server's certificate must have if it is verified.
  TlsSession client_session(const std::string& host) const;

 private:
  explicit TlsContext(std::shared_ptr<ssl_ctx_st> context) : context_(std::move(context)) {}

  std::shared_ptr<ssl_ctx_st> context_;
};

}  // namespace weft
