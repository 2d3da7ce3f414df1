#include "server/connection_stream.h"

#include <utility>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/error.hpp>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>

namespace weft {
namespace {

namespace asio = boost::asio;

bool has_to_wait(int kind) { return kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE; }

}  // namespace

ConnectionStream::ConnectionStream(Socket socket, TlsSession session)
    : socket_(std::move(socket)), session_(std::move(session)) {
  ErrorCode ignored;
  socket_.non_blocking(true, ignored);
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  if (session_ != nullptr) SSL_set_fd(session_.get(), socket_.native_handle());
}

// Of a call of OpenSSL that failed just now and need not be repeated.
ConnectionStream::ErrorCode ConnectionStream::error_of(int result) const {
  const int kind = SSL_get_error(session_.get(), result);
  if (kind == SSL_ERROR_ZERO_RETURN) return asio::error::eof;
  if (kind == SSL_ERROR_SYSCALL)
    return errno == 0 ? ErrorCode(asio::error::eof) : ErrorCode(errno, boost::system::system_category());
  return ErrorCode(static_cast<int>(ERR_get_error()), asio::error::get_ssl_category());
}

void ConnectionStream::wait_for(int kind, std::function<void(ErrorCode)> ready) {
  socket_.async_wait(kind == SSL_ERROR_WANT_WRITE ? Socket::wait_write : Socket::wait_read, std::move(ready));
}

void ConnectionStream::handshake(std::function<void(const std::optional<HandshakeFault>&)> done) {
  ERR_clear_error();
  errno = 0;
  const int result = SSL_do_handshake(session_.get());
  const int kind = SSL_get_error(session_.get(), result);
  if (has_to_wait(kind))
    return wait_for(kind, [this, done = std::move(done)](ErrorCode error) mutable {
      if (error || session_ == nullptr) return done(HandshakeFault{.reason = "the connection was closed"});
      handshake(std::move(done));
    });
  if (result == 1) {
    is_established_ = true;
    return done(std::nullopt);
  }
  const HandshakeFault fault = handshake_fault(result);
  session_.reset();
  done(fault);
}

HandshakeFault ConnectionStream::handshake_fault(int result) const {
  using Kind = HandshakeFault::Kind;
  if (BIO_number_read(SSL_get_rbio(session_.get())) == 0) return {Kind::silent, "the other side disconnected"};
  const unsigned long first = ERR_peek_error();
  if (ERR_GET_LIB(first) == ERR_LIB_SSL && ERR_GET_REASON(first) == SSL_R_HTTP_REQUEST)
    return {Kind::plain_http, "a request without TLS came"};
  const ErrorCode error = error_of(result);
  if (const long verified = SSL_get_verify_result(session_.get()); verified != X509_V_OK)
    return {Kind::failed, std::string("the certificate: ") + X509_verify_cert_error_string(verified)};
  return {Kind::failed, error == asio::error::eof ? "the other side disconnected" : error.message()};
}

void ConnectionStream::wait_to_read(std::function<void(ErrorCode)> ready) {
  if (session_ != nullptr && SSL_has_pending(session_.get()) == 1)
    return asio::post(get_executor(), [ready = std::move(ready)] { ready({}); });
  socket_.async_wait(reads_by_writing_ ? Socket::wait_write : Socket::wait_read, std::move(ready));
}

bool ConnectionStream::has_ended() {
  pollfd asked{.fd = socket_.native_handle(), .events = POLLRDHUP, .revents = 0};
  return ::poll(&asked, 1, 0) > 0;
}

std::size_t ConnectionStream::read_some(asio::mutable_buffer bytes, ErrorCode& error) {
  if (session_ == nullptr) return socket_.read_some(bytes, error);
  error = {};
  ERR_clear_error();
  errno = 0;
  std::size_t count = 0;
  const int result = SSL_read_ex(session_.get(), bytes.data(), bytes.size(), &count);
  if (result == 1) return count;
  const int kind = SSL_get_error(session_.get(), result);
  reads_by_writing_ = kind == SSL_ERROR_WANT_WRITE;
  const bool is_ended = (SSL_get_shutdown(session_.get()) & SSL_RECEIVED_SHUTDOWN) != 0;
  if (is_ended) {
    error = asio::error::eof;
  } else if (has_to_wait(kind)) {
    error = asio::error::would_block;
  } else {
    error = error_of(result);
  }
  return 0;
}

void ConnectionStream::write_some(asio::const_buffer bytes, std::function<void(ErrorCode, std::size_t)> done) {
  if (session_ == nullptr) return socket_.async_write_some(bytes, std::move(done));
  ERR_clear_error();
  errno = 0;
  std::size_t count = 0;
  const int result = SSL_write_ex(session_.get(), bytes.data(), bytes.size(), &count);
  const int kind = SSL_get_error(session_.get(), result);
  if (has_to_wait(kind))
    return wait_for(kind, [this, bytes, done = std::move(done)](ErrorCode error) mutable {
      if (error) return done(error, 0);
      write_some(bytes, std::move(done));
    });
  const ErrorCode error = result == 1 ? ErrorCode() : error_of(result);
  // Later, as the caller is not prepared for the end of its write within the call.
  asio::post(get_executor(), [error, count, done = std::move(done)] { done(error, count); });
}

void ConnectionStream::end_writing() {
  if (session_ != nullptr && is_established_) {
    ERR_clear_error();
    SSL_shutdown(session_.get());
  }
  ErrorCode ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
}

void ConnectionStream::close() {
  if (session_ != nullptr && is_established_ && socket_.is_open()) {
    ERR_clear_error();
    SSL_shutdown(session_.get());
  }
  // The number of the socket may soon be that of another one, which the session must not use.
  session_.reset();
  ErrorCode ignored;
  socket_.close(ignored);
}

void ConnectionStream::reset() {
  ErrorCode ignored;
  socket_.set_option(asio::socket_base::linger(true, 0), ignored);
  session_.reset();
  socket_.close(ignored);
}

}  // namespace weft
