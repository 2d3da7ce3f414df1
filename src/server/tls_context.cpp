#include "server/tls_context.h"

#include <utility>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace weft {
namespace {

constexpr const char* kCertificateFlag = "--ssl-certfile";
constexpr const char* kKeyFlag = "--ssl-keyfile";
constexpr const char* kAuthoritiesFlag = "--ssl-ca-certs";
// All authorities of a system are a quarter of it.
constexpr std::size_t kMostFileBytes = std::size_t{1} << 20;

template <auto free>
struct FreeBy {
  template <class T>
  void operator()(T* object) const {
    free(object);
  }
};
using Certificate = std::unique_ptr<X509, FreeBy<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, FreeBy<EVP_PKEY_free>>;
using Bytes = std::unique_ptr<BIO, FreeBy<BIO_free>>;

// The cause of the last failure of OpenSSL, whose queue of errors is empty afterwards.
std::string failure() {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  std::string text = reason == nullptr ? "no reason is known" : reason;
  ERR_clear_error();
  return text;
}

std::string file_text(const std::string& path, const char* flag) {
  try {
    return read_file(path, kMostFileBytes);
  } catch (const UserError& error) {
    fail_user("[{}] wanted a PEM file: {}", flag, error.what());
  }
}

Bytes bytes_of(const std::string& text) { return Bytes(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))); }

// Without a callback OpenSSL would ask on the terminal.
int refuse_passphrase(char*, int, int, void* is_asked) {
  *static_cast<bool*>(is_asked) = true;
  return -1;
}

// The certificates of a file, at least one. Other entries, such as a key, are passed over.
std::vector<Certificate> certificates_of(const std::string& text, const std::string& path, const char* flag) {
  std::vector<Certificate> certificates;
  const Bytes bytes = bytes_of(text);
  ERR_clear_error();
  while (X509* certificate = PEM_read_bio_X509(bytes.get(), nullptr, nullptr, nullptr))
    certificates.emplace_back(certificate);
  const bool is_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  const std::string reason = failure();
  USER_CHECK(is_end, "[{}] wanted certificates in PEM, but {} has a wrong one: {}", flag, quote(path), reason);
  USER_CHECK(!certificates.empty(), "[{}] wanted a certificate in PEM, but {} has none", flag, quote(path));
  return certificates;
}

Key key_of(const std::string& text, const std::string& path) {
  bool is_asked = false;
  ERR_clear_error();
  Key key(PEM_read_bio_PrivateKey(bytes_of(text).get(), nullptr, refuse_passphrase, &is_asked));
  USER_CHECK(!is_asked, "[{}] wanted a key without a passphrase, but that in {} has one", kKeyFlag, quote(path));
  const std::string reason = failure();
  // OpenSSL has one reason for no key and for one that it cannot read.
  USER_CHECK(key != nullptr || text.find("PRIVATE KEY-----") != std::string::npos,
             "[{}] wanted a key in PEM, but {} has none", kKeyFlag, quote(path));
  USER_CHECK(key != nullptr, "[{}] wanted a key in PEM, but that in {} is wrong: {}", kKeyFlag, quote(path), reason);
  return key;
}

void take_certificate(SSL_CTX* context, const TlsFiles& files) {
  const std::string text = file_text(files.certificate, kCertificateFlag);
  const std::vector<Certificate> chain = certificates_of(text, files.certificate, kCertificateFlag);
  const std::string& key_path = files.key.empty() ? files.certificate : files.key;
  const Key key = key_of(files.key.empty() ? text : file_text(files.key, kKeyFlag), key_path);
  if (SSL_CTX_use_certificate(context, chain[0].get()) != 1)
    fail_user("[{}] the certificate in {} cannot be used: {}", kCertificateFlag, quote(files.certificate), failure());
  for (std::size_t i = 1; i < chain.size(); ++i)
    if (SSL_CTX_add1_chain_cert(context, chain[i].get()) != 1)
      fail_user("[{}] certificate {} in {} cannot be used: {}", kCertificateFlag, i + 1, quote(files.certificate),
                failure());
  USER_CHECK(X509_check_private_key(chain[0].get(), key.get()) == 1,
             "[{}] wanted the key of the certificate in {}, but that in {} is another one", kKeyFlag,
             quote(files.certificate), quote(key_path));
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1)
    fail_user("[{}] the key in {} cannot be used: {}", kKeyFlag, quote(key_path), failure());
}

void take_authorities(SSL_CTX* context, const TlsFiles& files) {
  if (files.authorities.empty()) {
    USER_CHECK(files.clients == ClientCertificates::none,
               "[--ssl-cert-reqs] {} wants certificates of clients, so {} must name the authorities that sign them",
               static_cast<int>(files.clients), kAuthoritiesFlag);
    return;
  }
  const std::string text = file_text(files.authorities, kAuthoritiesFlag);
  for (const Certificate& authority : certificates_of(text, files.authorities, kAuthoritiesFlag)) {
    // The second is the list from which a client chooses a certificate.
    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(context), authority.get()) != 1 ||
        SSL_CTX_add_client_CA(context, authority.get()) != 1)
      fail_user("[{}] a certificate in {} cannot be used: {}", kAuthoritiesFlag, quote(files.authorities), failure());
  }
  if (files.clients == ClientCertificates::none) return;
  const bool is_required = files.clients == ClientCertificates::required;
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | (is_required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0), nullptr);
}

// OpenSSL refuses renegotiation, and reads on within one call while a client asks for it again and again. That ends the
// connection, as if the client had ended it.
void end_at_renegotiation(const SSL* session, int where, int value) {
  if ((where & SSL_CB_WRITE_ALERT) != SSL_CB_WRITE_ALERT || (value & 0xFF) != SSL_AD_NO_RENEGOTIATION) return;
  SSL_set_shutdown(const_cast<SSL*>(session), SSL_get_shutdown(session) | SSL_RECEIVED_SHUTDOWN);
}

std::shared_ptr<SSL_CTX> new_context(const SSL_METHOD* method) {
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(method), SSL_CTX_free);
  if (context == nullptr || SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) != 1)
    fail_device("[tls] OpenSSL has no context for TLS 1.2: {}", failure());
  // Idle connections have no buffers. A call handles at most one message that has no data of HTTP.
  SSL_CTX_set_mode(context.get(),
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_clear_mode(context.get(), SSL_MODE_AUTO_RETRY);
  return context;
}

}  // namespace

void FreeTlsSession::operator()(ssl_st* session) const { SSL_free(session); }

TlsContext TlsContext::of_server(const TlsFiles& files) {
  std::shared_ptr<SSL_CTX> context = new_context(TLS_server_method());
  // HTTP says where a body ends, so a client that leaves without a word of TLS cuts nothing short.
  SSL_CTX_set_options(context.get(),
                      SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_info_callback(context.get(), end_at_renegotiation);
  // Clients keep the state of sessions that they resume (tickets). OpenSSL wants a name for sessions with certificates.
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  static constexpr unsigned char kName[] = {'w', 'e', 'f', 't'};
  SSL_CTX_set_session_id_context(context.get(), kName, sizeof kName);
  take_certificate(context.get(), files);
  take_authorities(context.get(), files);
  return TlsContext(std::move(context));
}

TlsContext TlsContext::of_client(bool verifies) {
  std::shared_ptr<SSL_CTX> context = new_context(TLS_client_method());
  if (verifies && SSL_CTX_set_default_verify_paths(context.get()) != 1)
    fail_device("[tls] the certificates of this system cannot be read: {}", failure());
  SSL_CTX_set_verify(context.get(), verifies ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  return TlsContext(std::move(context));
}

TlsSession TlsContext::server_session() const {
  TlsSession session(SSL_new(context_.get()));
  if (session == nullptr) fail_device("[tls] a connection cannot be made: {}", failure());
  SSL_set_accept_state(session.get());
  return session;
}

TlsSession TlsContext::client_session(const std::string& host) const {
  TlsSession session(SSL_new(context_.get()));
  if (session == nullptr) fail_device("[tls] a connection cannot be made: {}", failure());
  SSL_set_connect_state(session.get());
  if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session.get()), host.c_str()) == 1) return session;
  // Not an address.
  ERR_clear_error();
  if (SSL_set1_host(session.get(), host.c_str()) != 1 || SSL_set_tlsext_host_name(session.get(), host.c_str()) != 1)
    fail_user("[--base-url] wanted a host's name or address, but {} is none: {}", quote(host), failure());
  return session;
}

}  // namespace weft
