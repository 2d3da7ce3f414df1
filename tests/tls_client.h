#pragma once

// An HttpClient in TLS.

#include <memory>
#include <string>

#include "tests/http_client.h"

struct ssl_ctx_st;
struct ssl_st;

namespace weft {

struct TlsClientSettings {
  std::string authority = {};              // the file of who must have signed the server's certificate; "": anybody
  std::string certificate = {}, key = {};  // the client's own files
  bool is_old = false;                     // takes TLS 1.2 at most
};

class TlsClient final : public HttpClient {
 public:
  // Throws std::runtime_error if there is no handshake. A server that refuses a client's certificate in TLS 1.3 says so
  // after it: the connection then ends without a response.
  explicit TlsClient(int port, const TlsClientSettings& settings = {});

  std::string version() const;      // TLSv1.2 or TLSv1.3
  std::string server_name() const;  // of its certificate
  // Asks for a new handshake, which TLS 1.2 has; false if the server does not take part in it.
  bool renegotiate();

 protected:
  ssize_t read_some(char* bytes, std::size_t size) override;
  ssize_t write_some(const char* bytes, std::size_t size) override;

 private:
  std::shared_ptr<ssl_ctx_st> context_;
  std::shared_ptr<ssl_st> session_;
};

}  // namespace weft
