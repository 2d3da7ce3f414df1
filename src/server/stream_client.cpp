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
  std::string host;  // as in the field Host
  std::vector<std::shared_ptr<Connection>> idle;
};

class StreamClient::Connection : public std::enable_shared_from_this<Connection> {
 public:
  explicit Connection(State& state) : state_(state), socket_(state.io) {
    on_chunk_ = [this](std::uint64_t, boost::beast::string_view data, error_code&) {
      take_events({data.data(), data.size()});
      return data.size();
    };
  }

  void begin(ClientCall call) {
    call_ = std::move(call);
    is_reused_ = socket_.is_open();
    has_answer_ = false;
    in_.clear();
    events_.clear();
    parser_.emplace();
    parser_->body_limit(boost::none);
    parser_->eager(true);
    parser_->on_chunk_body(on_chunk_);
    out_ = fmt::format("POST {} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n",
                       call_.path, state_.host, call_.body.size());
    for (const auto& [name, value] : call_.fields) out_ += name + ": " + value + "\r\n";
    out_ += "\r\n" + call_.body;
    if (is_reused_) return write();
    asio::async_connect(socket_, state_.addresses, [self = shared_from_this()](error_code error, const tcp::endpoint&) {
      if (error) return self->fail("connecting: " + error.message());
      error_code ignored;
      self->socket_.set_option(tcp::no_delay(true), ignored);
      self->write();
    });
  }

 private:
  void write() {
    asio::async_write(socket_, asio::buffer(out_), [self = shared_from_this()](error_code error, std::size_t) {
      if (error) return self->fail("sending: " + error.message());
      self->read();
    });
  }

  void read() {
    socket_.async_read_some(asio::buffer(scratch_), [self = shared_from_this()](error_code error, std::size_t count) {
      if (error == asio::error::eof && self->has_answer_) {
        error_code ignored;
        self->parser_->put_eof(ignored);
        if (self->parser_->is_done()) return self->finish();
      }
      if (error) return self->fail("receiving: " + error.message());
      self->has_answer_ = true;
      self->in_.append(self->scratch_.data(), count);
      self->parse();
    });
  }

  void parse() {
    error_code error;
    std::size_t used = 1;
    while (!in_.empty() && used > 0 && !error && !parser_->is_done()) {
      used = parser_->put(asio::const_buffer(in_.data(), in_.size()), error);
      in_.erase(0, used);
    }
    if (error && error != http::error::need_more) return fail("the response is not valid HTTP: " + error.message());
    if (parser_->is_done()) return finish();
    read();
  }

  void take_events(std::string_view data) {
    events_ += data;
    std::size_t begin = 0;
    for (std::size_t end = events_.find("\n\n"); end != std::string::npos; end = events_.find("\n\n", begin)) {
      const std::string_view event = std::string_view(events_).substr(begin, end - begin);
      static constexpr std::string_view kData = "data:";
      if (event.starts_with(kData) && call_.on_event) call_.on_event(trim(event.substr(kData.size())));
      begin = end + 2;
    }
    events_.erase(0, begin);
  }

  void finish() {
    const int status = parser_->get().result_int();
    const std::string body = parser_->get().body();
    error_code ignored;
    if (parser_->get().keep_alive()) {
      state_.idle.push_back(shared_from_this());
    } else {
      socket_.close(ignored);
    }
    const auto on_end = std::move(call_.on_end);
    on_end(status, body);
  }

  void fail(const std::string& reason) {
    error_code ignored;
    socket_.close(ignored);
    // The server closes idle connections; a request that meets such an end is sent again.
    if (is_reused_ && !has_answer_) return begin(std::move(call_));
    const auto on_end = std::move(call_.on_end);
    on_end(0, reason);
  }

  State& state_;
  tcp::socket socket_;
  ClientCall call_;
  bool is_reused_ = false, has_answer_ = false;
  std::string out_, in_, events_;
  std::string scratch_ = std::string(std::size_t{16} << 10, '\0');
  std::optional<http::response_parser<http::string_body>> parser_;
  std::function<std::size_t(std::uint64_t, boost::beast::string_view, error_code&)> on_chunk_;
};

StreamClient::StreamClient(const std::string& host, int port) : state_(std::make_unique<State>()) {
  tcp::resolver resolver(state_->io);
  error_code error;
  state_->addresses = resolver.resolve(host, std::to_string(port), error);
  USER_CHECK(!error && !state_->addresses.empty(), "[--host] wanted the address of a server, but {} is unknown",
             quote(host));
  state_->host = fmt::format("{}:{}", host.find(':') == std::string::npos ? host : "[" + host + "]", port);
}

StreamClient::~StreamClient() = default;

void StreamClient::post(ClientCall call) {
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
