#include "server/http_connection.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include "server/connection_reply.h"

namespace weft {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// Bytes of later requests that are kept while a response is written.
constexpr std::size_t kMostPipelined = 64 << 10;
// A longer body of a response is written after its head, without a copy.
constexpr std::size_t kMostCopied = 64 << 10;
// A refused request with a longer body ends the connection.
constexpr std::size_t kMostDropped = 64 << 10;
// How often a connection whose bytes are not read is asked whether the client is gone.
constexpr std::chrono::milliseconds kEndInterval{25};

}  // namespace

HttpConnection::HttpConnection(ConnectionStream stream, std::string peer, ConnectionHost& host,
                               std::function<void(HttpConnection*)> ended)
    : stream_(std::move(stream)),
      host_(host),
      ended_(std::move(ended)),
      read_timer_(stream_.get_executor()),
      write_timer_(stream_.get_executor()),
      scanner_(host.limits.head_bytes, host.limits.head_lines) {
  request_.peer = std::move(peer);
}

HttpConnection::~HttpConnection() = default;

void HttpConnection::start() {
  if (!stream_.is_encrypted()) return begin_reading();
  phase_ = Phase::handshake;
  limit_reading(host_.limits.handshake, [this] {
    host_.handler->handshake_failed(request_.peer, "the handshake took too long");
    close();
  });
  stream_.handshake([self = shared_from_this()](const std::optional<HandshakeFault>& fault) {
    if (self->phase_ == Phase::handshake) self->take_handshake(fault);
  });
}

void HttpConnection::take_handshake(const std::optional<HandshakeFault>& fault) {
  if (!fault) {
    phase_ = Phase::head;
    return begin_reading();
  }
  if (fault->kind == HandshakeFault::Kind::plain_http) {
    refuse({400, "this port takes TLS alone: the URL must begin with https://"});
    return wait_to_read();
  }
  if (fault->kind == HandshakeFault::Kind::silent) return close();
  host_.handler->handshake_failed(request_.peer, fault->reason);
  linger();  // the client can read why
}

void HttpConnection::begin_reading() {
  limit_reading(host_.limits.idle, [this] { close(); });
  wait_to_read();
}

void HttpConnection::drain() {
  closes_ = true;
  if (phase_ == Phase::handshake || (phase_ == Phase::head && in_.empty())) close();
  if (phase_ == Phase::lingering && !is_unread_) limit_reading(host_.limits.last_linger, [this] { close(); });
}

void HttpConnection::cut() {
  if (phase_ == Phase::head || phase_ == Phase::body) refuse({503, "the server is shutting down"});
}

void HttpConnection::limit_reading(std::chrono::milliseconds time, std::function<void()> late) {
  read_timer_.expires_after(time);
  // An expired timer whose handler has not run yet can no longer be cancelled; its number shows that it is out of date.
  read_timer_.async_wait([self = shared_from_this(), late = std::move(late), limit = ++read_limit_](error_code error) {
    if (!error && self->read_limit_ == limit && self->phase_ != Phase::closed) self->attempt(late);
  });
}

void HttpConnection::wait_to_read() {
  if (is_reading_ || phase_ == Phase::closed) return;
  if (phase_ == Phase::answering && in_.size() > kMostPipelined) return watch_for_end();
  is_reading_ = true;
  stream_.wait_to_read([self = shared_from_this()](error_code error) {
    self->is_reading_ = false;
    if (error || self->phase_ == Phase::closed) return;
    self->read();
  });
}

// The end of a connection comes after all its bytes, so a wait for bytes does not see it while they are not read.
void HttpConnection::watch_for_end() {
  limit_reading(kEndInterval, [this] {
    if (!is_ended_ && stream_.has_ended()) return client_gone();
    if (phase_ == Phase::answering) watch_for_end();
  });
}

void HttpConnection::read() {
  error_code error;
  const std::size_t count = stream_.read_some(asio::buffer(host_.scratch), error);
  if (error == asio::error::would_block || error == asio::error::interrupted) return wait_to_read();
  if (error == asio::error::eof && phase_ == Phase::answering && is_ended_) {
    closes_ = true;  // the client reads the rest of the response and sends no more
    return;
  }
  if (error) return client_gone();
  attempt([&] { take({host_.scratch.data(), count}); });
  wait_to_read();
}

void HttpConnection::take(std::string_view bytes) {
  if (phase_ == Phase::lingering) return;
  const bool is_first = phase_ == Phase::head && in_.empty();
  in_ += bytes;
  if (is_first)
    limit_reading(host_.limits.head, [this] { refuse({408, "the head of the request did not arrive in time"}); });
  process();
}

void HttpConnection::process() {
  if (phase_ == Phase::head) process_head();
  if (phase_ == Phase::body) process_body();
}

// Runs a part of the work on a request. An exception, such as that of memory, ends this connection alone.
void HttpConnection::attempt(const std::function<void()>& part) {
  try {
    part();
  } catch (const std::exception& error) {
    host_.handler->failed(error.what());
    take_failure(fault_of(error));
  }
}

// A connection whose request failed ends, with an answer if none has begun. It must not stay without a read or a write.
void HttpConnection::take_failure(const ServerFault& fault) {
  closes_ = is_unread_ = true;
  if (phase_ == Phase::answering && is_ended_ && is_writing_) return;  // the client gets its answer
  try {
    if (phase_ == Phase::head || phase_ == Phase::body) return refuse({fault.status, fault.message});
    if (phase_ == Phase::answering && !is_ended_ && !has_head_ && !is_writing_)
      return send(host_.handler->fault(request_, fault.status, fault.message));
  } catch (const std::exception& error) {
    host_.handler->failed(error.what());
  }
  close();
}

// RFC 9112, 2.2: old clients send an empty line after a body. A client must not keep a connection by many of them.
void HttpConnection::drop_empty_line() {
  if (has_begun_ || in_.size() < 2) return;
  has_begun_ = true;
  if (!in_.starts_with("\r\n")) return;
  in_.erase(0, 2);
  if (!in_.empty()) return;
  if (closes_ || host_.is_draining) return linger();
  limit_reading(host_.limits.idle, [this] { close(); });
}

void HttpConnection::process_head() {
  drop_empty_line();
  if (in_.empty()) return;
  const std::optional<std::size_t> length = scanner_.scan(in_);
  if (scanner_.fault()) return refuse(*scanner_.fault());
  if (!length) return;
  begun_ = std::chrono::steady_clock::now();
  std::optional<HttpRequest> head = read_head(std::string_view(in_).substr(0, *length));
  if (!head) return refuse({400, "the target must be a path"});
  head->peer = std::move(request_.peer);
  head->arrival = begun_;
  request_ = std::move(*head);
  is_head_ = request_.method == "HEAD";
  is_http_10_ = request_.is_http_10;
  fields_ = host_.handler->fields(request_);
  const BodyFraming framing = framing_of(request_);
  if (framing.fault) return refuse(*framing.fault);
  begin_body(framing, *length);
}

void HttpConnection::begin_body(const BodyFraming& framing, std::size_t head_bytes) {
  const std::uint64_t most = host_.limits.body_bytes;
  if (!framing.is_kept_alive) closes_ = true;
  phase_ = Phase::body;
  refusal_ = host_.handler->check(request_);
  const bool drops = !framing.is_chunked && framing.length <= kMostDropped && !framing.expects_continue;
  if (refusal_ && !drops) {
    closes_ = is_unread_ = true;
    return dispatch();
  }
  if (!refusal_ && framing.length > most)
    return refuse({413, fmt::format("the body must have at most {} bytes, but has {}{}", most, framing.length,
                                    framing.length == BodyFraming::kMostLength ? " or more" : "")});
  body_ = std::make_unique<BodyReader>(most, head_bytes);
  body_->put(std::string_view(in_).substr(0, head_bytes));
  in_.erase(0, head_bytes);
  if (body_->fault()) return refuse(*body_->fault());
  body_mebibytes_ = framing.is_chunked ? 0 : framing.length >> 20;
  body_bytes_ = 0;
  limit_body();
  if (framing.expects_continue && !body_->is_done() && in_.empty()) write("HTTP/1.1 100 Continue\r\n\r\n");
}

// A second for each MiB: of a body in chunks, for each that came.
void HttpConnection::limit_body() {
  const auto end = begun_ + host_.limits.body + std::chrono::seconds(body_mebibytes_);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
  limit_reading(left, [this] { refuse({408, "the body of the request did not arrive in time"}); });
}

void HttpConnection::process_body() {
  if (!body_->is_done()) {
    if (in_.empty()) return;
    const std::size_t used = body_->put(in_);
    in_.erase(0, used);
    body_bytes_ += used;
    if (body_bytes_ >> 20 > body_mebibytes_) {
      body_mebibytes_ = body_bytes_ >> 20;
      limit_body();
    }
    if (body_->fault()) return refuse(*body_->fault());
  }
  if (!body_->is_done()) return;
  request_.body = body_->take_body();
  body_.reset();
  dispatch();
}

void HttpConnection::dispatch() {
  phase_ = Phase::answering;
  read_timer_.cancel();
  ++read_limit_;
  is_ended_ = has_head_ = false;
  gone_ = nullptr;
  ++exchange_;
  if (refusal_) {
    HttpResponse response = std::move(*refusal_);
    refusal_.reset();
    return send(std::move(response));
  }
  HttpRequest request = std::move(request_);
  request_ = {.method = request.method, .path = request.path, .peer = request.peer};  // for the log
  host_.handler->handle(std::move(request), std::make_shared<ConnectionReply>(weak_from_this(), exchange_));
}

void HttpConnection::refuse(const HttpFault& fault) {
  if (phase_ == Phase::answering || phase_ == Phase::lingering || phase_ == Phase::closed) return;
  closes_ = is_unread_ = true;
  if (request_.method.empty()) begun_ = std::chrono::steady_clock::now();
  in_.clear();
  if (fields_.empty()) fields_ = host_.handler->fields(request_);  // the head was not read
  refusal_ = host_.handler->fault(request_, fault.status, fault.message);
  dispatch();
}

void HttpConnection::send(HttpResponse response) {
  if (response.closes || host_.is_draining) closes_ = true;
  HttpFields fields = std::exchange(fields_, {});
  for (auto& field : response.fields) fields.push_back(std::move(field));
  fields.emplace_back("content-type", response.content_type);
  says_close_ = closes_;
  if (closes_) fields.emplace_back("connection", "close");
  if (!closes_ && is_http_10_) fields.emplace_back("connection", "keep-alive");
  status_ = response.status;
  std::string bytes = response_head(response.status, fields, fmt::format("content-length: {}", response.body.size()));
  const bool is_copied = response.body.size() <= kMostCopied;
  if (!is_head_ && is_copied) bytes += response.body;
  write(std::move(bytes));
  if (!is_head_ && !is_copied) write(std::move(response.body));
  is_ended_ = true;
}

void HttpConnection::send_event(const std::string& event) {
  std::string bytes;
  if (!has_head_) {
    has_head_ = true;
    status_ = 200;
    HttpFields fields = std::exchange(fields_, {});
    fields.emplace_back("content-type", "text/event-stream; charset=utf-8");
    fields.emplace_back("cache-control", "no-cache");
    if (host_.is_draining || is_http_10_) closes_ = true;
    says_close_ = closes_;
    if (closes_ && !is_http_10_) fields.emplace_back("connection", "close");
    // HTTP/1.0 has no chunks: the end of the connection ends the response.
    bytes = response_head(200, fields, is_http_10_ ? "connection: close" : "transfer-encoding: chunked");
  }
  bytes += is_http_10_ ? event : fmt::format("{:x}\r\n{}\r\n", event.size(), event);
  write(std::move(bytes));
}

void HttpConnection::end() {
  if (!is_http_10_) write("0\r\n\r\n");
  is_ended_ = true;
  if (is_http_10_ && !is_writing_) on_written();
}

void HttpConnection::write(std::string bytes) {
  if (out_.empty()) {
    out_ = std::move(bytes);
  } else {
    out_ += bytes;
  }
  if (is_writing_ || phase_ == Phase::closed) return;
  written_.clear();
  written_.swap(out_);
  written_bytes_ = 0;
  is_writing_ = true;
  write_some();
}

// What is written in several calls has a new time limit after each.
void HttpConnection::write_some() {
  write_timer_.expires_after(host_.limits.stall);
  write_timer_.async_wait([self = shared_from_this(), limit = ++write_limit_](error_code error) {
    if (!error && self->write_limit_ == limit && self->phase_ != Phase::closed) self->client_gone();
  });
  const auto rest = asio::buffer(written_.data() + written_bytes_, written_.size() - written_bytes_);
  stream_.write_some(rest, [self = shared_from_this()](error_code error, std::size_t count) {
    if (self->phase_ == Phase::closed) return;
    if (error) return self->client_gone();
    self->written_bytes_ += count;
    if (self->written_bytes_ < self->written_.size()) return self->write_some();
    self->write_timer_.cancel();
    ++self->write_limit_;
    self->is_writing_ = false;
    if (!self->out_.empty()) return self->write({});
    if (self->is_ended_) self->attempt([&] { self->on_written(); });
  });
}

void HttpConnection::on_written() {
  if (phase_ != Phase::answering) return;
  gone_ = nullptr;
  log(status_);
  // A request that came before the server was ended, and after an answer that did not say so, is refused.
  if (says_close_ || ((closes_ || host_.is_draining) && in_.empty())) return linger();
  phase_ = Phase::head;
  scanner_ = HeadScanner(host_.limits.head_bytes, host_.limits.head_lines);
  request_ = {.peer = std::move(request_.peer)};
  is_ended_ = has_head_ = has_begun_ = false;
  if (in_.empty()) {
    limit_reading(host_.limits.idle, [this] { close(); });
  } else {
    limit_reading(host_.limits.head, [this] { refuse({408, "the head of the request did not arrive in time"}); });
  }
  // The next request may be in in_; the stack of calls must not grow with each. Bytes may be read before this runs.
  asio::post(stream_.get_executor(), [self = shared_from_this()] {
    self->attempt([&] { self->process(); });
    self->wait_to_read();
  });
}

// If bytes of the client are unread when a socket is closed, the system sends a reset, which may destroy the response.
void HttpConnection::linger() {
  phase_ = Phase::lingering;
  in_.clear();
  stream_.end_writing();
  // The process must not wait for clients that keep an idle connection.
  const bool is_last = host_.is_draining && !is_unread_;
  limit_reading(is_last ? host_.limits.last_linger : host_.limits.linger, [this] { close(); });
  wait_to_read();
}

void HttpConnection::client_gone() {
  if (phase_ == Phase::answering) {
    log(is_ended_ || has_head_ ? status_ : 499);
    if (is_writing_) stream_.reset();
  }
  close();
}

void HttpConnection::close() {
  if (phase_ == Phase::closed) return;
  const auto self = shared_from_this();
  const bool was_answering = phase_ == Phase::answering;
  phase_ = Phase::closed;
  read_timer_.cancel();
  write_timer_.cancel();
  stream_.close();
  const auto gone = std::move(gone_);
  gone_ = nullptr;
  ended_(this);
  if (was_answering && gone) gone();
}

void HttpConnection::log(int status) {
  host_.handler->log(request_, status, std::chrono::steady_clock::now() - begun_);
}

}  // namespace weft
