#pragma once

// `weft serve` without its command line: an HTTP server that answers while a model loads, and then serves the model.
//
// Threads: the I/O thread has the sockets and writes answers, two threads parse and tokenize, and the thread that calls
// serve() runs the engine.

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "server/api_server.h"
#include "server/http_server.h"

namespace weft {

struct ServerSettings {
  std::string host = "127.0.0.1";
  int port = 8000;
  std::string socket_path;      // listens on this Unix socket instead, unless it is ""
  std::optional<TlsFiles> tls;  // not with a Unix socket
  HttpLimits limits;
  ApiSettings api;
  std::chrono::milliseconds shutdown_timeout{0};     // in which answers may end by themselves
  std::chrono::milliseconds keep_alive_interval{0};  // after which a silent stream gets a comment; 0: never
  // SIGINT and SIGTERM end the server. SIGHUP reads the files of TLS again; without them it changes nothing. It ends
  // the server if its terminal is gone, unless SIGHUP was ignored at the start, as nohup does.
  bool takes_signals = false;
};

class Server {
 public:
  // Binds the port and answers from now on, 503 to what needs the model. UserError where the port is taken. Several
  // threads call `log`.
  Server(ServerSettings settings, ApiServer::Log log);
  ~Server();

  int port() const { return http_.port(); }
  std::string url() const { return http_.url(); }

  // Serves the model on the calling thread, which becomes that of the engine, until the server is ended. `ready` is
  // called when requests are answered.
  void serve(Engine& engine, const ServedModel& model, const std::function<void()>& ready = {});
  // Ends the server as SIGTERM does. Any thread may call it.
  void shut_down();
  // Reads the files of TLS again, for connections from then on. Wrong ones change nothing and are logged. Any thread
  // may call it.
  void renew_tls();

 private:
  void take_signal(int signal);
  void take_hang_up();
  void drain();        // on the I/O thread
  void end_answers();  // on the I/O thread
  [[noreturn]] void exit_now(int status);
  void repeat(std::chrono::milliseconds interval, const std::function<void()>& task);  // on the I/O thread
  void end_io();

  ServerSettings settings_;
  ApiServer::Log log_;
  HttpServer http_;
  ApiServer api_;
  EngineLoop* loop_ = nullptr;  // of the I/O thread
  std::mutex mutex_;            // of the next two
  EngineLoop* running_ = nullptr;
  bool is_ended_ = false;  // the I/O thread serves no more
  bool is_draining_ = false;
  bool ends_with_terminal_ = false;
  std::thread io_;
};

}  // namespace weft
