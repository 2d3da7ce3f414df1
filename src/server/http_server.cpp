#include "server/http_server.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <list>
#include <unordered_map>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "server/http_connection.h"

namespace weft {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Protocol = asio::generic::stream_protocol;
using boost::system::error_code;

// How long no accept has failed when the next failure is reported again.
constexpr std::chrono::seconds kBetweenReports{10};

// Each connection has a descriptor, and the usual limit is 1,024.
void allow_many_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

tcp::endpoint endpoint_of(asio::io_context& io, const std::string& host, int port) {
  tcp::resolver resolver(io);
  error_code error;
  const auto found = resolver.resolve(host, std::to_string(port), tcp::resolver::passive, error);
  USER_CHECK(!error && !found.empty(), "[--host] wanted an address of this machine, but {} is unknown", quote(host));
  return *found.begin();
}

tcp::endpoint tcp_endpoint(const Protocol::endpoint& endpoint) {
  tcp::endpoint result;
  std::memcpy(result.data(), endpoint.data(), std::min(endpoint.size(), result.capacity()));
  return result;
}

std::string peer_of(const Protocol::socket& socket) {
  error_code error;
  const Protocol::endpoint peer = socket.remote_endpoint(error);
  if (error) return "?";
  if (peer.data()->sa_family == AF_UNIX) return "unix";
  const tcp::endpoint address = tcp_endpoint(peer);
  return fmt::format("{}:{}", address.address().to_string(), address.port());
}

// Removes a socket file on which no process listens.
void remove_stale_socket(asio::io_context& io, const asio::local::stream_protocol::endpoint& endpoint) {
  struct stat status {};
  if (::lstat(endpoint.path().c_str(), &status) != 0) return;
  USER_CHECK(S_ISSOCK(status.st_mode), "[--uds] wanted a socket or no file at {}, but there is another file",
             quote(endpoint.path()));
  error_code error;
  asio::local::stream_protocol::socket(io).connect(endpoint, error);
  USER_CHECK(error == asio::error::connection_refused, "[--uds] wanted a socket that is free, but at {} {}",
             quote(endpoint.path()), error ? error.message() : "another server listens");
  ::unlink(endpoint.path().c_str());
}

}  // namespace

std::size_t descriptor_limit() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

struct HttpServer::State {
  // One thread runs it.
  asio::io_context io{1};
  asio::basic_socket_acceptor<Protocol> acceptor{io};
  std::list<asio::signal_set> signals;
  asio::steady_timer accept_again{io};
  bool is_accept_lost = false;                         // nothing waits for connections
  std::chrono::steady_clock::time_point silent_until;  // failures to accept are reported from then on
  ConnectionHost host;
  std::string name;  // the host
  std::optional<TlsContext> tls;
  std::string socket_path;  // "" of TCP
  std::unordered_map<HttpConnection*, std::shared_ptr<HttpConnection>> connections;

  ~State() { remove_socket(); }

  void remove_socket() {
    if (!socket_path.empty()) ::unlink(socket_path.c_str());
  }

  // Returns a copy, because a connection that ends removes itself from `connections`.
  std::vector<std::shared_ptr<HttpConnection>> all_connections() const {
    std::vector<std::shared_ptr<HttpConnection>> all;
    for (const auto& [address, connection] : connections) all.push_back(connection);
    return all;
  }

  // If the endpoint is in use, the error names it as `address`.
  void listen(const Protocol::endpoint& endpoint, const std::string& address) {
    allow_many_descriptors();
    std::signal(SIGPIPE, SIG_IGN);
    error_code error;
    acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
    USER_CHECK(error != boost::system::errc::address_not_available,
               "[--host] wanted an address of this machine, but {} is none", quote(name));
    USER_CHECK(!error, "{} to be free, but: {}", address, error.message());
  }

  void accept() {
    acceptor.async_accept([this](error_code error, Protocol::socket socket) {
      if (!acceptor.is_open() || error == asio::error::operation_aborted) return;
      if (error) return accept_later(error);
      accept();
      if (connections.size() >= host.limits.connections) {
        refuse(socket);
      } else {
        begin(std::move(socket));
      }
    });
  }

  // No descriptors are left; a connection that ends frees one.
  void accept_later(const error_code& reason) {
    accept_again.expires_after(std::chrono::milliseconds(100));
    accept_again.async_wait([this](error_code error) {
      if (!error && acceptor.is_open()) accept();
    });
    const auto now = std::chrono::steady_clock::now();
    if (now >= silent_until)
      host.handler->cannot_accept(
          fmt::format("{} (the process may have {} open files: ulimit -n)", reason.message(), descriptor_limit()));
    silent_until = now + kBetweenReports;
  }

  // After an exception, which may be that of the accept. Without memory the end of a connection does it again.
  void accept_anew() {
    try {
      is_accept_lost = acceptor.is_open();
      if (!is_accept_lost) return;
      accept_again.cancel();
      acceptor.cancel();
      accept();
      is_accept_lost = false;
    } catch (const std::exception& error) {
      host.handler->failed(error.what());
    }
  }

  void refuse(Protocol::socket& socket) {
    if (tls) return;  // no answer can be sent before the handshake
    const HttpResponse response = host.handler->fault({}, 503, "too many connections");
    const std::string head =
        response_head(503, {{"content-type", response.content_type}, {"connection", "close"}, {"retry-after", "1"}},
                      fmt::format("content-length: {}", response.body.size()));
    error_code ignored;
    socket.non_blocking(true, ignored);
    socket.write_some(asio::buffer(head + response.body), ignored);
  }

  void begin(Protocol::socket socket) {
    std::string peer = peer_of(socket);
    ConnectionStream stream(std::move(socket), tls ? tls->server_session() : nullptr);
    const auto connection =
        std::make_shared<HttpConnection>(std::move(stream), std::move(peer), host, [this](HttpConnection* ended) {
          connections.erase(ended);
          if (is_accept_lost) accept_anew();
          end_if_drained();
        });
    connections.emplace(connection.get(), connection);
    connection->start();
  }

  void end_if_drained() {
    if (host.is_draining && connections.empty()) io.stop();
  }

  void wait_for_signal(asio::signal_set& set, const std::function<void(int)>& take) {
    set.async_wait([this, &set, take](error_code error, int signal) {
      if (error) return;
      wait_for_signal(set, take);
      take(signal);
    });
  }
};

HttpServer::HttpServer(const std::string& host, int port, const HttpLimits& limits, std::optional<TlsContext> tls)
    : state_(std::make_unique<State>()) {
  state_->host.limits = limits;
  state_->tls = std::move(tls);
  state_->name = host.find(':') == std::string::npos ? host : "[" + host + "]";
  state_->listen(endpoint_of(state_->io, host, port), fmt::format("[--port] wanted {}:{}", state_->name, port));
}

HttpServer::HttpServer(const std::string& socket_path, const HttpLimits& limits) : state_(std::make_unique<State>()) {
  state_->host.limits = limits;
  USER_CHECK(socket_path.size() < sizeof(sockaddr_un::sun_path), "[--uds] must be a path below {} bytes, but has {}",
             sizeof(sockaddr_un::sun_path), socket_path.size());
  const asio::local::stream_protocol::endpoint endpoint(socket_path);
  remove_stale_socket(state_->io, endpoint);
  // bind() makes the file, with this mode from its beginning.
  const mode_t mask = ::umask(0177);
  try {
    state_->listen(endpoint, fmt::format("[--uds] wanted {}", quote(socket_path)));
  } catch (...) {
    ::umask(mask);
    throw;
  }
  ::umask(mask);
  state_->socket_path = socket_path;
}

HttpServer::~HttpServer() = default;

int HttpServer::port() const {
  return state_->socket_path.empty() ? tcp_endpoint(state_->acceptor.local_endpoint()).port() : 0;
}

std::string HttpServer::url() const {
  if (!state_->socket_path.empty()) return "unix:" + state_->socket_path;
  return fmt::format("{}://{}:{}", state_->tls ? "https" : "http", state_->name, port());
}

void HttpServer::run(HttpHandler& handler) {
  state_->host.handler = &handler;
  state_->accept();
  for (bool runs = true; runs;) {
    try {
      state_->io.run();
      runs = false;
    } catch (const std::exception& error) {
      handler.failed(error.what());
      state_->accept_anew();
    }
  }
  // Connections refer to the handler, so none may remain when this function returns.
  while (!state_->connections.empty()) state_->connections.begin()->second->abandon();
}

void HttpServer::post(std::function<void()> task) { asio::post(state_->io, std::move(task)); }

void HttpServer::stop() { state_->io.stop(); }

void HttpServer::after(std::chrono::milliseconds time, std::function<void()> task) {
  const auto timer = std::make_shared<asio::steady_timer>(state_->io, time);
  timer->async_wait([timer, task = std::move(task)](error_code error) {
    if (!error) task();
  });
}

void HttpServer::on_signals(const std::vector<int>& signals, std::function<void(int signal)> take) {
  asio::signal_set& set = state_->signals.emplace_back(state_->io);
  for (const int signal : signals) set.add(signal);
  state_->wait_for_signal(set, take);
}

void HttpServer::set_tls(TlsContext tls) { state_->tls = std::move(tls); }

void HttpServer::drain() {
  State& state = *state_;
  if (state.host.is_draining) return;
  state.host.is_draining = true;
  error_code ignored;
  state.acceptor.close(ignored);
  state.accept_again.cancel();
  for (const auto& connection : state.all_connections()) connection->drain();
  state.end_if_drained();
}

void HttpServer::cut() {
  for (const auto& connection : state_->all_connections()) connection->cut();
  after(state_->host.limits.rest, [this] { stop(); });
}

void HttpServer::remove_socket() { state_->remove_socket(); }

}  // namespace weft
