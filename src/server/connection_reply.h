#pragma once

// What answers write into: the reply of one request of a connection.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "server/http_connection.h"

namespace weft {

// The reply of a request; later requests of the connection are not its own.
class ConnectionReply final : public HttpReply {
 public:
  ConnectionReply(std::weak_ptr<HttpConnection> connection, std::uint64_t exchange)
      : connection_(std::move(connection)), exchange_(exchange) {}
  ~ConnectionReply() override {
    if (const auto connection = current()) connection->lose_reply();
  }
  ConnectionReply(const ConnectionReply&) = delete;
  ConnectionReply& operator=(const ConnectionReply&) = delete;
  void add_field(std::string name, std::string value) override {
    if (const auto connection = current()) connection->add_field(std::move(name), std::move(value));
  }
  void send(HttpResponse response) override {
    if (const auto connection = current()) connection->send(std::move(response));
  }
  void send_event(const std::string& event) override {
    if (const auto connection = current()) connection->send_event(event);
  }
  void end() override {
    if (const auto connection = current()) connection->end();
  }
  void on_gone(std::function<void()> gone) override {
    if (const auto connection = current()) connection->on_gone(std::move(gone));
  }

 private:
  std::shared_ptr<HttpConnection> current() const {
    std::shared_ptr<HttpConnection> connection = connection_.lock();
    const bool is_current = connection && connection->phase_ == HttpConnection::Phase::answering &&
                            connection->exchange_ == exchange_ && !connection->is_ended_;
    return is_current ? connection : nullptr;
  }

  std::weak_ptr<HttpConnection> connection_;
  std::uint64_t exchange_;
};

}  // namespace weft
