// The client of weft bench serve: server-sent events in each form that the HTML standard allows, however they arrive.

#include "server/stream_client.h"

#include <thread>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/event_stream.h"

namespace weft::stream_client_test {

using Events = std::vector<std::string>;

Events events_of(const Events& parts) {
  EventStream stream;
  Events events;
  for (const std::string& part : parts) stream.take(part, [&](std::string_view data) { events.emplace_back(data); });
  return events;
}

// However the bytes are split: in two at each offset, and into parts of each length.
void expect_events(const std::string& bytes, const Events& wanted) {
  EXPECT_EQ(events_of({bytes}), wanted) << bytes;
  for (std::size_t at = 0; at <= bytes.size(); ++at)
    EXPECT_EQ(events_of({bytes.substr(0, at), bytes.substr(at)}), wanted) << bytes << "\nat " << at;
  for (std::size_t length = 1; length <= 4; ++length) {
    Events parts;
    for (std::size_t at = 0; at < bytes.size(); at += length) parts.push_back(bytes.substr(at, length));
    EXPECT_EQ(events_of(parts), wanted) << bytes << "\nin parts of " << length;
  }
}

TEST(EventStream, LinesEndInEachWay) {
  for (const std::string end : {"\n", "\r\n", "\r"}) {
    const std::string text = "data: {\"a\": 1}" + end + end + "data: b" + end + end + end + "data: [DONE]" + end + end;
    expect_events(text, {"{\"a\": 1}", "b", "[DONE]"});
  }
  expect_events("data: a\r\n\ndata: b\n\r\ndata: c\r\rdata: d\n\n", {"a", "b", "c", "d"});
}

TEST(EventStream, ReadsFieldsAsTheStandardSays) {
  expect_events(": a comment\n\nevent: delta\nid: 7\nretry: 5\ndata: a\n\n", {"a"});
  expect_events("data: a\nevent: delta\n:\ndata: b\n\n", {"a\nb"});
  expect_events("data\n\ndata\ndata\n\ndata:\n\n", {"", "\n", ""});
  expect_events("data:a\n\ndata:  b \n\n", {"a", " b "});
  expect_events("database: a\ndat: b\n data: c\n\n", {});
  expect_events("data: a: b\r\n\r\n", {"a: b"});
  expect_events(
      "\xEF\xBB\xBF"
      "data: a\n\n",
      {"a"});
  expect_events("data: a\n\ndata: an event that does not end\n", {"a"});
  expect_events("", {});
}

// Sends these bytes to one client after its request, then ends the connection.
class OneAnswer {
 public:
  OneAnswer(std::string bytes, std::size_t part) : listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(listener_, 1) != 0)
      throw std::runtime_error("no port");
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this, bytes = std::move(bytes), part] { answer(bytes, part); });
  }
  ~OneAnswer() {
    thread_.join();
    ::close(listener_);
  }
  int port() const { return port_; }

 private:
  void answer(const std::string& bytes, std::size_t part) const {
    const int client = ::accept(listener_, nullptr, nullptr);
    std::string request;
    char some[4096];
    while (!request.ends_with("\r\n\r\nbody")) {
      const ssize_t count = ::recv(client, some, sizeof(some), 0);
      if (count <= 0) break;
      request.append(some, static_cast<std::size_t>(count));
    }
    for (std::size_t at = 0; at < bytes.size(); at += part) {
      const std::string piece = bytes.substr(at, part);
      ::send(client, piece.data(), piece.size(), MSG_NOSIGNAL);
    }
    ::shutdown(client, SHUT_WR);
    ::recv(client, some, sizeof(some), 0);
    ::close(client);
  }

  int listener_, port_ = 0;
  std::thread thread_;
};

struct Outcome {
  Events events;
  int status = -1;
  std::string body;
};

Outcome asked(const std::string& answer, std::size_t part) {
  const OneAnswer server(answer, part);
  Outcome outcome;
  StreamClient client({.host = "127.0.0.1", .port = server.port()});
  client.send({.path = "/",
               .body = "body",
               .on_event = [&](std::string_view data) { outcome.events.emplace_back(data); },
               .on_end =
                   [&](int status, const std::string& body) {
                     outcome.status = status;
                     outcome.body = body;
                   }});
  client.run();
  return outcome;
}

std::string in_chunks(const std::string& body, std::size_t length) {
  std::string text;
  for (std::size_t at = 0; at < body.size(); at += length) {
    const std::string chunk = body.substr(at, length);
    char size[20];
    std::snprintf(size, sizeof(size), "%zx\r\n", chunk.size());
    text += size + chunk + "\r\n";
  }
  return text + "0\r\n\r\n";
}

constexpr const char* kEventHead = "HTTP/1.1 200 OK\r\nContent-Type: Text/Event-Stream; charset=utf-8\r\n";

TEST(StreamClient, ReadsEventsInEachForm) {
  for (const std::string end : {"\n", "\r\n", "\r"}) {
    const std::string body = "data: a" + end + end + ": b" + end + end + "data: [DONE]" + end + end;
    const std::string length = "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
    const Events answers = {kEventHead + ("Transfer-Encoding: chunked\r\n\r\n" + in_chunks(body, 5)),
                            kEventHead + ("Transfer-Encoding: chunked\r\n\r\n" + in_chunks(body, 1000)),
                            kEventHead + ("Connection: close\r\n\r\n" + body), kEventHead + (length + body)};
    for (const std::string& answer : answers)
      for (const std::size_t part : {std::size_t{1}, std::size_t{7}, answer.size()}) {
        const Outcome outcome = asked(answer, part);
        EXPECT_EQ(outcome.events, (Events{"a", "[DONE]"})) << answer << "\nin parts of " << part;
        EXPECT_EQ(outcome.status, 200) << answer << outcome.body;
        EXPECT_EQ(outcome.body, "");
      }
  }
}

TEST(StreamClient, ReturnsTheBodyOfAResponseWithoutEvents) {
  const std::string head = "HTTP/1.1 500 No\r\nContent-Type: application/json\r\n",
                    body = "{\"error\": \"data: a\"}\n\n";
  for (const std::string& answer :
       {head + "Transfer-Encoding: chunked\r\n\r\n" + in_chunks(body, 3), head + "Connection: close\r\n\r\n" + body}) {
    const Outcome outcome = asked(answer, 4);
    EXPECT_EQ(outcome.status, 500);
    EXPECT_EQ(outcome.body, body);
    EXPECT_TRUE(outcome.events.empty());
  }
}

TEST(StreamClient, ReportsAStreamThatIsCutOff) {
  const std::string answer = kEventHead + std::string("Transfer-Encoding: chunked\r\n\r\n9\r\ndata: a\n\n\r\n");
  const Outcome outcome = asked(answer, answer.size());
  EXPECT_EQ(outcome.events, Events{"a"});
  EXPECT_EQ(outcome.status, 0);
}

}  // namespace weft::stream_client_test
