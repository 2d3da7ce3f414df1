#pragma once

// The bytes of one connection, as they are or in TLS. No call waits: what waits calls a handler later, which must keep
// the stream alive. All calls are made on one thread. Included by few sources, as Boost.Asio takes long to compile.

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>

#include "server/tls_context.h"

namespace weft {

// Why a handshake failed. The stream is a plain one from then on.
struct HandshakeFault {
  enum class Kind {
    failed,     // the reason says why
    silent,     // the other side disconnected before it sent anything
    plain_http  // a client does not use TLS
  };
  Kind kind = Kind::failed;
  std::string reason;
};

class ConnectionStream {
 public:
  // Of TCP or of a Unix socket.
  using Socket = boost::asio::generic::stream_protocol::socket;
  using ErrorCode = boost::system::error_code;

  explicit ConnectionStream(Socket socket, TlsSession session = nullptr);

  Socket::executor_type get_executor() { return socket_.get_executor(); }
  bool is_encrypted() const { return session_ != nullptr; }
  bool is_open() const { return socket_.is_open(); }

  // Of a stream in TLS, before all else. nullopt: it succeeded.
  void handshake(std::function<void(const std::optional<HandshakeFault>&)> done);
  // `ready` is called when read_some() may have bytes, with an error if the stream was closed.
  void wait_to_read(std::function<void(ErrorCode)> ready);
  // Whether the other side has ended its side of the connection, or reset it, even if bytes before it are not read.
  bool has_ended();
  // The error would_block if there are no bytes yet, eof at their end.
  std::size_t read_some(boost::asio::mutable_buffer bytes, ErrorCode& error);
  // Writes at least a byte, then calls `done`. The bytes must stay until then.
  void write_some(boost::asio::const_buffer bytes, std::function<void(ErrorCode, std::size_t)> done);

  // Says to the other side that nothing more is written.
  void end_writing();
  void close();
  // Closes it with a reset: what is unsent is dropped.
  void reset();

 private:
  ErrorCode error_of(int result) const;
  HandshakeFault handshake_fault(int result) const;
  void wait_for(int kind, std::function<void(ErrorCode)> ready);

  Socket socket_;
  TlsSession session_;
  bool is_established_ = false;    // the handshake is complete
  bool reads_by_writing_ = false;  // the next bytes to read need room to write
};

}  // namespace weft
