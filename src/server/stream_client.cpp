#include "server/stream_client.h"

#include <optional>
#include <vector>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "server/connection_stream.h"
#include "server/event_stream.h"

namespace weft {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

}  // namespace

struct StreamClient::State {
  asio::io_context io{1};
  tcp::resolver::results_type addresses;
  std::string host;        // a name or an address
  std::string host_field;  // Host of requests
  std::optional<TlsContext> tls;
  std::vector<std::shared_ptr<Connection>> idle;
};

class StreamClient::Connection : public std::enable_shared_from_this<Connection> {
 public:
  explicit Connection(State& state) : state_(state) {}

  void begin(ClientCall call) {
    call_ = std::move(call);
    is_reused_ = stream_.has_value();
    has_answer_ = false;
    in_.clear();
    events_ = {};
    parser_.emplace();
    parser_->body_limit(boost::none);
    parser_->eager(true);
    out_ = fmt::format("{} {} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n",
                       call_.method, call_.path, state_.host_field, call_.body.size());
    for (const auto& [name, value] : call_.fields) out_ += name + ": " + value + "\r\n";
    out_ += "\r\n" + call_.body;
    written_ = 0;
    if (is_reused_) return write();
    const auto socket = std::make_shared<tcp::socket>(state_.io);
    asio::async_connect(*socket, state_.addresses,
                        [self = shared_from_this(), socket](error_code error, const tcp::endpoint&) {
                          if (error) return self->fail_to_connect(error.message());
                          self->begin_stream(std::move(*socket));
                        });
  }

 private:
  void begin_stream(tcp::socket socket) {
    if (!state_.tls) {
      stream_.emplace(std::move(socket));
      return write();
    }
    stream_.emplace(std::move(socket), state_.tls->client_session(state_.host));
    stream_->handshake([self = shared_from_this()](const std::optional<HandshakeFault>& fault) {
      if (fault) return self->fail_to_connect("TLS: " + fault->reason);
      self->write();
    });
  }

  void write() {
    const auto rest = asio::buffer(out_.data() + written_, out_.size() - written_);
    stream_->write_some(rest, [self = shared_from_this()](error_code error, std::size_t count) {
      if (error) return self->fail("sending: " + error.message());
      self->written_ += count;
      if (self->written_ < self->out_.size()) return self->write();
      self->read();
    });
  }

  void read() {
    stream_->wait_to_read([self = shared_from_this()](error_code error) {
      std::size_t count = 0;
      if (!error) count = self->stream_->read_some(asio::buffer(self->scratch_), error);
      self->take(error, count);
    });
  }

  void take(error_code error, std::size_t count) {
    if (error == asio::error::would_block || error == asio::error::interrupted) return read();
    if (error == asio::error::eof && has_answer_) {
      error_code ignored;
      parser_->put_eof(ignored);
      if (parser_->is_done()) return finish();
    }
    if (error) return fail("receiving: " + error.message());
    has_answer_ = true;
    in_.append(scratch_.data(), count);
    parse();
  }

  void parse() {
    error_code error;
    std::size_t used = 1;
    while (!in_.empty() && used > 0 && !error && !parser_->is_done()) {
      used = parser_->put(asio::const_buffer(in_.data(), in_.size()), error);
      in_.erase(0, used);
      take_events();
    }
    if (error && error != http::error::need_more) return fail("the response is not valid HTTP: " + error.message());
    if (parser_->is_done()) return finish();
    read();
  }

  // What the parser has added to the body is bytes of events, whether or not they came in chunks.
  void take_events() {
    if (!call_.on_event || !parser_->is_header_done()) return;
    const std::string_view type = parser_->get()[http::field::content_type];
    if (!to_lower_ascii(type).starts_with("text/event-stream")) return;
    std::string& body = parser_->get().body();
    events_.take(body, call_.on_event);
    body.clear();
  }

  void finish() {
    const int status = parser_->get().result_int();
    const std::string body = parser_->get().body();
    if (parser_->get().keep_alive()) {
      state_.idle.push_back(shared_from_this());
    } else {
      close();
    }
    const auto on_end = std::move(call_.on_end);
    on_end(status, body);
  }

  void fail_to_connect(const std::string& reason) {
    fail(fmt::format("connecting to {}: {}", state_.host_field, reason));
  }

  void fail(const std::string& reason) {
    close();
    // The server closes idle connections; a request that meets such an end is sent again.
    if (is_reused_ && !has_answer_) return begin(std::move(call_));
    const auto on_end = std::move(call_.on_end);
    on_end(0, reason);
  }

  void close() {
    if (stream_) stream_->close();
    stream_.reset();
  }

  State& state_;
  std::optional<ConnectionStream> stream_;  // while it is connected
  std::size_t written_ = 0;                 // bytes of out_
  ClientCall call_;
  bool is_reused_ = false, has_answer_ = false;
  std::string out_, in_;
  EventStream events_;
  std::string scratch_ = std::string(std::size_t{16} << 10, '\0');
  std::optional<http::response_parser<http::string_body>> parser_;
};

StreamClient::StreamClient(const StreamServer& server) : state_(std::make_unique<State>()) {
  const auto& [host, port, has_tls, is_verified, flag] = server;
  tcp::resolver resolver(state_->io);
  error_code error;
  state_->addresses = resolver.resolve(host, std::to_string(port), error);
  USER_CHECK(!error && !state_->addresses.empty(), "[{}] wanted the address of a server, but {} is unknown", flag,
             quote(host));
  state_->host = host;
  if (has_tls) state_->tls = TlsContext::of_client(is_verified);
  state_->host_field = fmt::format("{}:{}", host.find(':') == std::string::npos ? host : "[" + host + "]", port);
}

StreamClient::~StreamClient() = default;

void StreamClient::send(ClientCall call) {
  std::shared_ptr<Connection> connection;
  if (state_->idle.empty()) {
    connection = std::make_shared<Connection>(*state_);
  } else {
    connection = std::move(state_->idle.back());
    state_->idle.pop_back();
  }
  connection->begin(std::move(call));
}

void StreamClient::after(std::chrono::duration<double> time, std::function<void()> task) {
  const auto timer = std::make_shared<asio::steady_timer>(state_->io);
  timer->expires_after(std::chrono::duration_cast<asio::steady_timer::duration>(time));
  timer->async_wait([timer, task = std::move(task)](error_code error) {
    if (!error) task();
  });
}

void StreamClient::run() { state_->io.run(); }

}  // namespace weft
