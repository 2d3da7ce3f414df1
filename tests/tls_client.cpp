#include "tests/tls_client.h"

#include <csignal>
#include <stdexcept>

#include <openssl/err.h>
#include <openssl/ssl.h>

namespace weft {
namespace {

void check(bool is_good) {
  if (is_good) return;
  const char* reason = ERR_reason_error_string(ERR_peek_error());
  ERR_clear_error();
  throw std::runtime_error(reason == nullptr ? "the connection ended" : reason);
}

}  // namespace

TlsClient::TlsClient(int port, const TlsClientSettings& settings)
    : HttpClient(port), context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free) {
  std::signal(SIGPIPE, SIG_IGN);
  ERR_clear_error();
  SSL_CTX* context = context_.get();
  if (settings.is_old) check(SSL_CTX_set_max_proto_version(context, TLS1_2_VERSION) == 1);
  if (!settings.authority.empty()) {
    check(SSL_CTX_load_verify_file(context, settings.authority.c_str()) == 1);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  }
  if (!settings.certificate.empty()) {
    check(SSL_CTX_use_certificate_file(context, settings.certificate.c_str(), SSL_FILETYPE_PEM) == 1);
    check(SSL_CTX_use_PrivateKey_file(context, settings.key.c_str(), SSL_FILETYPE_PEM) == 1);
  }
  session_ = std::shared_ptr<SSL>(SSL_new(context), SSL_free);
  check(SSL_set1_host(session_.get(), "localhost") == 1 && SSL_set_fd(session_.get(), socket()) == 1);
  check(SSL_connect(session_.get()) == 1);
}

std::string TlsClient::version() const { return SSL_get_version(session_.get()); }

std::string TlsClient::server_name() const {
  char name[256] = "";
  X509_NAME_get_text_by_NID(X509_get_subject_name(SSL_get0_peer_certificate(session_.get())), NID_commonName, name,
                            sizeof name);
  return name;
}

bool TlsClient::renegotiate() {
  ERR_clear_error();
  return SSL_renegotiate(session_.get()) == 1 && SSL_do_handshake(session_.get()) == 1;
}

ssize_t TlsClient::read_some(char* bytes, std::size_t size) {
  ERR_clear_error();
  return SSL_read(session_.get(), bytes, static_cast<int>(size));
}

ssize_t TlsClient::write_some(const char* bytes, std::size_t size) {
  ERR_clear_error();
  return SSL_write(session_.get(), bytes, static_cast<int>(size));
}

}  // namespace weft
