#pragma once

// An asynchronous HTTP server on one thread (Boost.Asio). Its limits and timeouts are in HttpLimits.

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/http_message.h"
#include "server/tls_context.h"

namespace weft {

// The most files and connections that the process may have open. An HttpServer raises it to what the system allows.
std::size_t descriptor_limit();

class HttpServer {
 public:
  // Binds and listens, so that clients can connect from now on; run() answers them, in TLS if there is a context of it.
  // Port 0 is any free port. UserError where the port is taken or the host is unknown.
  HttpServer(const std::string& host, int port, const HttpLimits& limits, std::optional<TlsContext> tls = {});
  // Listens on a Unix socket, a file that only its owner may use and that ends with the server. A socket file on which
  // no process listens is replaced. UserError for any other file, and if another server listens on it.
  HttpServer(const std::string& socket_path, const HttpLimits& limits);
  ~HttpServer();

  int port() const;         // 0 of a Unix socket
  std::string url() const;  // http://127.0.0.1:8000, https://127.0.0.1:8000 or unix:PATH

  // Answers requests on the calling thread, the I/O thread, until stop(), or until the last connection ends after
  // drain().
  void run(HttpHandler& handler);

  // Any thread may call these.
  void post(std::function<void()> task);  // runs the task on the I/O thread
  void stop();

  // On the I/O thread, or before run().
  void after(std::chrono::milliseconds time, std::function<void()> task);
  void on_signals(const std::vector<int>& signals, std::function<void(int signal)> take);
  // Of connections from now on.
  void set_tls(TlsContext tls);
  // Accepts no more connections, closes idle ones, and the others after their current response.
  void drain();
  // After drain(): what has not arrived by now is answered by 503, and the server ends soon, whatever clients do.
  void cut();
  // Leaves no file where the process ends without the destructor.
  void remove_socket();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weft
