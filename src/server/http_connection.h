#pragma once

// One connection of an HttpServer: reads requests, one at a time, and writes their responses. Included by two
// sources alone, as Boost.Asio takes long to compile.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/steady_timer.hpp>

#include "server/body_reader.h"
#include "server/connection_stream.h"
#include "server/http_head.h"
#include "server/http_message.h"

namespace weft {

// What the connections of a server share.
struct ConnectionHost {
  HttpHandler* handler = nullptr;
  HttpLimits limits;
  bool is_draining = false;
  std::string scratch = std::string(std::size_t{64} << 10, '\0');  // bytes are read into it
};

class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  // `peer` is the client's address, for the log. `ended` is called when the connection is closed.
  HttpConnection(ConnectionStream stream, std::string peer, ConnectionHost& host,
                 std::function<void(HttpConnection*)> ended);
  ~HttpConnection();

  void start();
  // Closes it if it has no request now; else it closes after the response.
  void drain();
  // Answers a request that has not arrived whole by 503.
  void cut();
  // Closes it now.
  void abandon() { close(); }

  // The response to the current request: HttpReply's calls.
  void add_field(std::string name, std::string value) { fields_.emplace_back(std::move(name), std::move(value)); }
  void send(HttpResponse response);
  void send_event(const std::string& event);
  void end();
  void on_gone(std::function<void()> gone) { gone_ = std::move(gone); }
  // The reply was destroyed before the response was complete.
  void lose_reply() noexcept {
    gone_ = nullptr;  // what it would cancel has ended
    take_failure({500, "the server could not answer this request"});
  }

 private:
  enum class Phase { handshake, head, body, answering, lingering, closed };

  void take_handshake(const std::optional<HandshakeFault>& fault);
  void begin_reading();
  void wait_to_read();
  void watch_for_end();
  void read();
  void take(std::string_view bytes);
  void process();
  void attempt(const std::function<void()>& part);
  void take_failure(const ServerFault& fault);
  void drop_empty_line();
  void process_head();
  void process_body();
  void begin_body(const BodyFraming& framing, std::size_t head_bytes);
  void dispatch();
  void refuse(const HttpFault& fault);
  void limit_body();
  void limit_reading(std::chrono::milliseconds time, std::function<void()> late);
  void write(std::string bytes);
  void write_some();
  void on_written();
  void linger();
  void client_gone();
  void close();
  void log(int status);

  ConnectionStream stream_;
  ConnectionHost& host_;
  std::function<void(HttpConnection*)> ended_;
  boost::asio::steady_timer read_timer_, write_timer_;
  std::uint64_t read_limit_ = 0, write_limit_ = 0;  // how often the timers were set

  Phase phase_ = Phase::head;
  bool is_reading_ = false;  // a wait for bytes is pending
  std::string in_;           // bytes that are not processed
  bool has_begun_ = false;   // the current request has, if only with an empty line
  HeadScanner scanner_;
  std::unique_ptr<BodyReader> body_;
  std::uint64_t body_bytes_ = 0, body_mebibytes_ = 0;  // those that came, and those that its time limit is for
  HttpRequest request_;
  bool is_head_ = false, is_http_10_ = false;  // of the current request
  HttpFields fields_;                          // of its response, besides the response's own
  std::optional<HttpResponse> refusal_;        // to send after a body that is read and dropped
  std::chrono::steady_clock::time_point begun_;
  bool says_close_ = false;     // the head of the response does
  std::uint64_t exchange_ = 0;  // the number of the current request, which a reply must have

  std::string out_;      // bytes for the next write
  std::string written_;  // bytes of the current write
  std::size_t written_bytes_ = 0;
  bool is_writing_ = false;
  bool has_head_ = false;   // of a response of events
  bool is_ended_ = false;   // the response is complete in out_ and written_
  bool closes_ = false;     // after the response
  bool is_unread_ = false;  // the client may still send the body of a refused request
  int status_ = 0;
  std::function<void()> gone_;

  friend class ConnectionReply;
};

}  // namespace weft
