#pragma once

// An HTTP client that sends requests at given times over many connections, on one thread, and reports server-sent
// events as they arrive: the client of `weft bench serve`.

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "server/http_message.h"

namespace weft {

struct ClientCall {
  std::string method = "POST";
  std::string path;
  HttpFields fields;
  std::string body = {};
  // The data of an event, in a response of the type text/event-stream.
  std::function<void(std::string_view data)> on_event = {};
  // The end of the response. `body` is that of a response without events. Status 0: there was no whole response, and
  // `body` is the reason.
  std::function<void(int status, const std::string& body)> on_end;
};

struct StreamServer {
  std::string host;
  int port = 0;
  bool has_tls = false;
  bool is_verified = true;      // in TLS: only if an authority of this system has signed its certificate
  std::string flag = "--host";  // that names the host, for errors
};

class StreamClient {
 public:
  // UserError where the host is unknown.
  explicit StreamClient(const StreamServer& server);
  ~StreamClient();

  // Before run(), or in its callbacks. A call takes a connection that is idle, or a new one.
  void send(ClientCall call);
  void after(std::chrono::duration<double> time, std::function<void()> task);
  // Runs until no call and no task is left. An exception of a callback ends it.
  void run();

 private:
  struct State;
  class Connection;
  std::unique_ptr<State> state_;
};

}  // namespace weft
