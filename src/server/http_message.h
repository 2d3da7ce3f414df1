#pragma once

// HTTP requests and responses as values, and the two interfaces between a connection and the program that answers. They
// need no socket, so that the API is tested without one.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft {

using HttpFields = std::vector<std::pair<std::string, std::string>>;

// The body of a request in blocks, because a text of many MiB would be moved again and again while it grows.
class HttpBody {
 public:
  void append(std::string_view bytes);
  // The blocks as one text. They end with this call.
  std::string take_text();

 private:
  std::vector<std::string> blocks_;
};

struct HttpRequest {
  std::string method;
  std::string path;   // decoded once; without the query
  std::string query;  // as sent
  bool is_http_10 = false;
  HttpFields fields;  // names in lower case, values without white space at both ends
  HttpBody body;
  std::string peer;                               // its address, for the log
  std::chrono::steady_clock::time_point arrival;  // of its head

  // The value of the first field with this name, which is in lower case.
  std::optional<std::string_view> field(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
  HttpFields fields = {};
  bool closes = false;  // the connection ends after it
};

// The answer to one request. All calls are made on the I/O thread, and so is the destruction. The calls after the
// client is gone do nothing. If the reply of a connection is destroyed before its response is complete, because an
// exception ended the work on the request, the client gets status 500, or the end of the connection.
class HttpReply {
 public:
  virtual ~HttpReply() = default;
  // A field of the response's head. Before send() and send_event().
  virtual void add_field(std::string name, std::string value) = 0;
  // A response in one piece.
  virtual void send(HttpResponse response) = 0;
  // A part of a response of server-sent events. The first part sends the head of status 200, so until then send() is
  // still possible. Each part is one HTTP chunk.
  virtual void send_event(const std::string& event) = 0;
  // The end of the events.
  virtual void end() = 0;
  // `gone` is called once if the client disconnects, or takes nothing for too long, before the response is complete.
  virtual void on_gone(std::function<void()> gone) = 0;
};

// What answers. All calls are made on the I/O thread.
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  // Called with a request without its body. A response refuses it, and the body is not read.
  virtual std::optional<HttpResponse> check(const HttpRequest& head) = 0;
  // Fields that every response to this request has, whether it is refused or not.
  virtual HttpFields fields(const HttpRequest&) { return {}; }
  virtual void handle(HttpRequest request, std::shared_ptr<HttpReply> reply) = 0;
  // The response to bytes that are not a valid request. `head` is empty unless it was read before.
  virtual HttpResponse fault(const HttpRequest& head, int status, const std::string& message) = 0;
  // Called when the response is complete or the client is gone.
  virtual void log(const HttpRequest& request, int status, std::chrono::duration<double> time) = 0;
  // Called when a client and the server cannot agree on TLS; the connection ends.
  virtual void handshake_failed(const std::string& /*peer*/, const std::string& /*reason*/) {}
  // Called when connections cannot be accepted; they are accepted later.
  virtual void cannot_accept(const std::string& /*reason*/) {}
  // Called after an exception, which ends nothing but the task that threw it. Must not throw for lack of memory.
  virtual void failed(const std::string& error) = 0;
};

struct HttpLimits {
  std::size_t head_bytes = std::size_t{4} << 20;
  std::size_t head_lines = 256;
  std::uint64_t body_bytes = std::uint64_t{64} << 20;
  std::size_t connections = 10000;
  std::chrono::milliseconds handshake{10000};  // of TLS, from the accept to its end
  std::chrono::milliseconds idle{5000};        // before the first byte of a request
  std::chrono::milliseconds head{10000};       // from the first byte of a request to the end of its head
  std::chrono::milliseconds body{60000};       // and a second for each MiB
  std::chrono::milliseconds stall{60000};      // in which a client must take a byte
  std::chrono::milliseconds linger{2000};      // in which what a client still sends is read after the last response
  std::chrono::milliseconds last_linger{100};  // the same while the server ends, after a request that was read whole
  std::chrono::milliseconds rest{5000};        // in which clients must take what is left of their responses after cut()
};

// The response up to its body. `framing` is its last field line: the length of the body, or how it is encoded.
std::string response_head(int status, const HttpFields& fields, const std::string& framing);

}  // namespace weft
