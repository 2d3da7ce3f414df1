#pragma once

// Takes an answer without a connection.

#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "server/answer_json.h"
#include "server/http_message.h"

namespace weft {

class RecordedReply final : public HttpReply {
 public:
  void add_field(std::string, std::string) override {}
  void send(HttpResponse response) override { body = std::move(response.body); }
  void send_event(const std::string& event) override {
    if (event.starts_with(":") || event == kLastEvent) return;
    const std::size_t data = event.find("data: ");
    const bool has_name = event.starts_with("event: ");
    ASSERT_TRUE(has_name ? data != std::string::npos : data == 0) << event;
    names.push_back(has_name ? event.substr(7, data - 8) : "");
    events.push_back(parse_json(event.substr(data + 6)));
  }
  void end() override { has_ended = true; }
  void on_gone(std::function<void()>) override {}

  std::string body;
  std::vector<std::string> names;  // of the events; "" for one without
  std::vector<Json> events;        // without the last one, which is no JSON, and without comments
  bool has_ended = false;
};

}  // namespace weft
