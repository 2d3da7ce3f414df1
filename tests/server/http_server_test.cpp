// Connections: how requests arrive, and how they and the server end.

#include "server/http_server.h"

#include <thread>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/json.h"
#include "tests/http_client.h"
#include "tests/server/metrics_text.h"
#include "tests/server/running_server.h"
#include "tests/thrown_message.h"

namespace weft::http_server_test {

ServerSettings quick_limits() {
  ServerSettings settings;
  settings.limits.body_bytes = 100000;
  settings.limits.head_bytes = 4000;
  settings.limits.head_lines = 20;
  return settings;
}

TEST(HttpServer, ReadsBodiesInEveryForm) {
  RunningServer running(quick_limits());
  const std::string json = R"({"prompt":"abc"})";
  const std::string head = "POST /tokenize HTTP/1.1\r\nHost: a\r\nContent-Type: Application/JSON; charset=utf-8\r\n";
  const std::string whole = head + "Content-Length: 16\r\n\r\n" + json;
  const std::string chunked = head + "Transfer-Encoding: chunked\r\n\r\n6;x=\"y\"\r\n" + json.substr(0, 6) +
                              "\r\n0A\r\n" + json.substr(6) + "\r\n0\r\nTrailer: 1\r\n\r\n";
  for (const std::string& bytes : {whole, chunked}) {
    HttpClient client(running.port());
    client.send(bytes + bytes);  // pipelined
    EXPECT_EQ(parse_json(client.receive().body)["count"], 3);
    EXPECT_EQ(parse_json(client.receive().body)["count"], 3);
    for (const char byte : bytes) client.send({byte});
    EXPECT_EQ(parse_json(client.receive().body)["count"], 3);
    EXPECT_EQ(client.get("/health").status, 200);
  }
  HttpClient waits(running.port());
  waits.send(head + "Expect: 100-continue\r\nContent-Length: 16\r\n\r\n");
  EXPECT_EQ(waits.some_bytes(), "HTTP/1.1 100 Continue\r\n\r\n");
  waits.send(json);
  EXPECT_EQ(parse_json(waits.receive().body)["count"], 3);
  waits.send("HEAD /health HTTP/1.1\r\nHost: a\r\n\r\n");
  const ClientResponse bare = waits.receive(true);
  EXPECT_EQ(bare.status, 200);
  EXPECT_EQ(bare.fields.at("content-length"), "15");
  EXPECT_EQ(waits.get("/health").body, R"({"status":"ok"})");
}

TEST(HttpServer, LimitsTrailers) {
  RunningServer running(quick_limits());
  for (const std::size_t size : {100U, 9000U}) {
    HttpClient client(running.port());
    client.send(
        "POST /tokenize HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        "10\r\n{\"prompt\":\"abc\"}\r\n0\r\nT: " +
        std::string(size, 'x') + "\r\n\r\n");
    EXPECT_EQ(client.receive().status, size < 8192 ? 200 : 400) << size;
  }
}

// A body in chunks has the time that its bytes so far allow.
TEST(HttpServer, EndsABodyInChunksThatStops) {
  ServerSettings settings;
  settings.limits.body = std::chrono::milliseconds(200);
  RunningServer running(std::move(settings));
  HttpClient client(running.port());
  client.send(
      "POST /tokenize HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: "
      "chunked\r\n\r\n5\r\n");
  EXPECT_EQ(client.receive().status, 408);
}

// The answer before it did not say that the connection ends.
TEST(HttpServer, RefusesARequestBehindAStreamWhenTheServerEnds) {
  ServerSettings settings;
  settings.shutdown_timeout = std::chrono::seconds(30);
  RunningServer running(std::move(settings));
  HttpClient client(running.port());
  const std::string json = R"({"prompt":"a","n":100,"temperature":1,"max_tokens":100,"ignore_eos":true,"stream":true})";
  client.send(post_bytes("/v1/completions", json) + "GET /health HTTP/1.1\r\nHost: a\r\n\r\n");
  std::string all = client.some_bytes();  // the head, before the server ends
  running.server().shut_down();
  for (std::string more = all; !more.empty(); all += more) more = client.some_bytes();
  EXPECT_EQ(all.find("connection: close"), all.rfind("connection: close")) << "of the second head alone";
  const std::size_t end = all.find("data: [DONE]\n\n"), second = all.rfind("HTTP/1.1 503");
  ASSERT_NE(second, std::string::npos) << all.substr(end);
  EXPECT_LT(end, second);
  EXPECT_LT(second, all.find("connection: close"));
}

TEST(HttpServer, HasOldClients) {
  RunningServer running;
  HttpClient once(running.port());
  once.send("GET /health HTTP/1.0\r\n\r\n");
  EXPECT_EQ(once.receive().fields.at("connection"), "close");
  EXPECT_TRUE(once.is_closed());
  HttpClient kept(running.port());
  kept.send("GET /health HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(kept.receive().fields.at("connection"), "keep-alive");
  const std::string json = R"({"prompt":"a","max_tokens":2,"stream":true})";
  kept.send("POST /v1/completions HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: " +
            std::to_string(json.size()) + "\r\n\r\n" + json);
  const ClientResponse stream = kept.receive();
  EXPECT_TRUE(stream.chunks.empty());
  EXPECT_TRUE(stream.body.starts_with("data: {"));
  EXPECT_TRUE(stream.body.ends_with("data: [DONE]\n\n"));
}

TEST(HttpServer, EndsConnectionsWhoseBytesAreWrong) {
  RunningServer running(quick_limits());
  const std::string post = "POST /tokenize HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n";
  const std::string chunked = post + "Transfer-Encoding: chunked\r\n\r\n";
  const std::pair<std::string, int> cases[] = {
      {"nonsense\r\n\r\n", 400},
      {"GET /health HTTP/1.1\r\n\r\n", 400},
      {"GET /health HTTP/1.1\nHost: a\n\n", 400},
      {"GET /health HTTP/3.0\r\nHost: a\r\n\r\n", 505},
      {"GET health HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET /health HTTP/1.1\r\nHost: a\r\nA: " + std::string(5000, 'a') + "\r\n\r\n", 431},
      {post + "Content-Length: 3\r\nContent-Length: 4\r\n\r\n{}  ", 400},
      {post + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n{} ", 400},
      {post + "Transfer-Encoding: gzip\r\n\r\n", 501},
      {post + "Expect: more\r\nContent-Length: 2\r\n\r\n{}", 417},
      {post + "Content-Length: 100001\r\n\r\n", 413},
      {post + "Content-Length: 9999999999999999999\r\n\r\n", 413},
      {"\r\n\r\nGET /health HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {chunked + "2\r\n{}x\r\n0\r\n\r\n", 400},
      {chunked + "g\r\n", 400},
      {chunked + "2\n{}\n0\n\n", 400},
      {chunked + "2\r\n{}\n", 400},
      {chunked + "0\r\nA: b\n", 400},
      {chunked + "80000001\r\n", 400},
      {chunked + "ffffffffffffffffff\r\n", 400},
      {chunked + "100000\r\n", 413},
      {chunked + "2;" + std::string(9000, 'x'), 400},
      {chunked + "0\r\nA: " + std::string(9000, 'x'), 400},
  };
  for (const auto& [bytes, status] : cases) {
    HttpClient client(running.port());
    client.send(bytes);
    const ClientResponse response = client.receive();
    EXPECT_EQ(response.status, status) << bytes.substr(0, 200);
    EXPECT_EQ(parse_json(response.body)["error"]["code"], status);
    EXPECT_EQ(response.fields.at("connection"), "close");
    EXPECT_TRUE(client.is_closed());
  }
  EXPECT_EQ(HttpClient(running.port()).get("/health").status, 200);
}

// Old clients send one after a body.
TEST(HttpServer, IgnoresAnEmptyLineBeforeARequest) {
  RunningServer running(quick_limits());
  HttpClient client(running.port());
  const std::string get = "GET /health HTTP/1.1\r\nHost: a\r\n\r\n";
  client.send("\r\n" + get + "\r\n" + get);
  EXPECT_EQ(client.receive().status, 200);
  EXPECT_EQ(client.receive().status, 200);
  for (const char byte : "\r\n" + get) client.send({byte});
  EXPECT_EQ(client.receive().status, 200);
}

// The parser of bodies also reads the head, and must not fail because of it.
TEST(HttpServer, RefusesALargeFieldAtOnce) {
  ServerSettings settings;
  settings.api.cors.origins = {"https://a.b"};
  settings.api.has_id_fields = true;
  RunningServer running(std::move(settings));
  const auto answer = [&](std::size_t size) {
    HttpClient client(running.port());
    return client.get("/health", "A: " + std::string(size, 'x') + "\r\n");
  };
  EXPECT_EQ(answer(65000).status, 200);
  for (const std::size_t size : {65536U, 200000U}) {
    const ClientResponse refused = answer(size);
    EXPECT_EQ(refused.status, 431);
    EXPECT_EQ(refused.fields.at("vary"), "Origin");
    EXPECT_TRUE(refused.fields.contains("x-request-id"));
  }
  HttpClient preflight(running.port());
  preflight.send(
      "OPTIONS /health HTTP/1.1\r\nHost: a\r\nOrigin: https://a.b\r\nX-Request-Id: mine\r\n"
      "Access-Control-Request-Method: GET\r\n\r\n");
  EXPECT_EQ(preflight.receive().fields.at("x-request-id"), "mine");
}

class FailingHandler final : public HttpHandler {
 public:
  std::optional<HttpResponse> check(const HttpRequest&) override { return std::nullopt; }
  void handle(HttpRequest, std::shared_ptr<HttpReply>) override { throw std::runtime_error("no memory"); }
  HttpResponse fault(const HttpRequest&, int status, const std::string& message) override {
    return {.status = status, .body = message};
  }
  void log(const HttpRequest&, int, std::chrono::duration<double>) override {}
  void failed(const std::string& error) override { error_ = error; }
  const std::string& error() const { return error_; }  // once the server has ended

 private:
  std::string error_;
};

TEST(HttpServer, ConcurrentRequestThatFailsGetsAnAnswer) {
  HttpServer server("127.0.0.1", 0, {});
  FailingHandler handler;
  std::thread io([&] { server.run(handler); });
  {
    HttpClient client(server.port());
    const ClientResponse answer = client.get("/health");
    EXPECT_EQ(answer.status, 500);
    EXPECT_EQ(answer.body, "the server could not answer this request");
    EXPECT_TRUE(client.is_closed());
  }
  server.stop();
  io.join();
  EXPECT_EQ(handler.error(), "no memory");
}

TEST(HttpServer, EndsConnectionsThatAreSlow) {
  ServerSettings settings;
  settings.limits.head = settings.limits.body = std::chrono::milliseconds(30);
  RunningServer running(settings);
  HttpClient head(running.port());
  head.send("GET /health");
  EXPECT_EQ(head.receive().status, 408);
  HttpClient body(running.port());
  body.send("POST /tokenize HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\n{");
  EXPECT_EQ(body.receive().status, 408);
  settings = {};
  settings.limits.idle = std::chrono::milliseconds(1000);
  RunningServer patient(settings);
  HttpClient silent(patient.port()), again(patient.port());
  EXPECT_EQ(again.get("/health").status, 200);
  EXPECT_TRUE(again.is_closed());
  EXPECT_TRUE(silent.is_closed());
}

TEST(HttpServer, RefusesMoreConnectionsThanItsLimit) {
  ServerSettings settings;
  settings.limits.connections = 2;
  RunningServer running(std::move(settings));
  HttpClient one(running.port()), two(running.port());
  EXPECT_EQ(one.get("/health").status, 200);
  EXPECT_EQ(two.get("/health").status, 200);
  HttpClient three(running.port());
  EXPECT_EQ(three.receive().status, 503);
  EXPECT_EQ(one.get("/health").status, 200);
}

TEST(HttpServer, NamesAPortThatIsTaken) {
  const HttpServer first("127.0.0.1", 0, {});
  try {
    const HttpServer second("127.0.0.1", first.port(), {});
    ADD_FAILURE() << "two servers at one port";
  } catch (const UserError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("[--port]"), std::string::npos) << message;
    EXPECT_NE(message.find(std::to_string(first.port())), std::string::npos) << message;
  }
  EXPECT_THROW(HttpServer("no such host", 0, {}), UserError);
  // An address for documentation (RFC 5737), which no machine has.
  EXPECT_EQ(message_of([] { HttpServer("192.0.2.1", 0, {}); }),
            "[--host] wanted an address of this machine, but \"192.0.2.1\" is none");
}

// A client that takes nothing for too long is cut off, and what it asked for is cancelled.
TEST(HttpServer, DoesNotWaitForClientsThatDoNotRead) {
  ServerSettings settings;
  settings.limits.stall = std::chrono::milliseconds(200);
  RunningServer running(std::move(settings));
  HttpClient client(running.port());
  client.send(
      post_bytes("/v1/completions", R"({"prompt":"a","n":16384,"max_tokens":120,"ignore_eos":true,"stream":true})"));
  EXPECT_TRUE(running.has_load(1));
  EXPECT_EQ(running.load_at_rest(), 0);
}

constexpr const char* kLong = R"({"prompt":"a","n":4000,"max_tokens":120,"ignore_eos":true,"stream":)";

// Its end comes after bytes that are not read.
TEST(HttpServer, ConcurrentClientThatPipelinesMuchIsSeenToLeave) {
  RunningServer running;
  {
    HttpClient client(running.port());
    std::string pipelined;
    while (pipelined.size() < 100'000) pipelined += "GET /health HTTP/1.1\r\nHost: a\r\n\r\n";
    client.send(post_bytes("/v1/completions", std::string(kLong) + "false}"));
    EXPECT_TRUE(running.has_load(1));
    client.send(pipelined);
  }
  EXPECT_EQ(running.load_at_rest(), 0);
  const auto metrics = read_metrics(HttpClient(running.port()).get("/metrics").body);
  EXPECT_GT(metrics.samples.at(R"(vllm:request_success_total{engine="0",model_name="tiny",finished_reason="abort"})"),
            0);
}

// Preparing a long text takes longer than the server may stay.
TEST(HttpServer, RequestsThatArePreparedAreAnsweredWhenItEnds) {
  ServerSettings settings;
  settings.limits.rest = std::chrono::milliseconds(200);
  RunningServer running(std::move(settings));
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<HttpClient>(running.port()));
    clients.back()->send(post_bytes("/tokenize", R"({"prompt":")" + std::string(3'000'000, 'a') + "\"}"));
  }
  // The server's thread reads some of each body for each of these answers, so it then has all of them.
  HttpClient other(running.port());
  for (int i = 0; i < 200; ++i) EXPECT_EQ(other.get("/health").status, 200);
  running.server().shut_down();
  for (const auto& client : clients) EXPECT_NE(client->receive().status, 0);
}

TEST(HttpServer, ConcurrentAnswersEndWithTheServer) {
  RunningServer running;
  HttpClient idle(running.port()), stream(running.port()), whole(running.port());
  EXPECT_EQ(idle.get("/health").status, 200);
  stream.send(post_bytes("/v1/completions", std::string(kLong) + "true}"));
  const std::string first = stream.some_bytes();
  EXPECT_TRUE(first.starts_with("HTTP/1.1 200")) << first;
  whole.send(post_bytes("/v1/completions", std::string(kLong) + "false}"));
  EXPECT_TRUE(running.has_load(4001)) << "of both";
  std::thread ending([&] { running.shut_down(); });
  std::string rest, part;
  while (!(part = stream.some_bytes()).empty()) rest += part;
  EXPECT_NE(rest.find(R"("finish_reason":"abort")"), std::string::npos);
  EXPECT_TRUE(rest.ends_with("e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")) << rest.substr(rest.size() - 100);
  EXPECT_EQ(whole.receive().status, 503);
  EXPECT_TRUE(idle.is_closed());
  ending.join();
}

// A client that has its answer and keeps the connection.
TEST(HttpServer, DoesNotWaitForIdleClientsAtItsEnd) {
  ServerSettings settings;
  settings.shutdown_timeout = std::chrono::hours(1);
  settings.limits.linger = std::chrono::hours(1);
  RunningServer running(std::move(settings));
  HttpClient before(running.port()), idle(running.port()), stream(running.port());
  EXPECT_EQ(before.get("/health", "Connection: close\r\n").status, 200);
  EXPECT_EQ(idle.get("/health").status, 200);
  stream.send(post_bytes("/v1/completions",
                         R"({"prompt":"a","n":200,"max_tokens":100,"temperature":0,"ignore_eos":true,"stream":true})"));
  std::string all = stream.some_bytes();
  running.server().shut_down();
  while (all.find("data: [DONE]") == std::string::npos) all += stream.some_bytes();
  running.shut_down();  // ends, though all three are still connected
}

TEST(HttpServer, ConcurrentAnswersMayEndByThemselves) {
  ServerSettings settings;
  settings.shutdown_timeout = std::chrono::hours(1);
  RunningServer running(std::move(settings));
  HttpClient client(running.port()), late(running.port());
  late.send("GET /health HTTP/1.1\r\n");
  client.send(post_bytes("/v1/completions",
                         R"({"prompt":"a","n":200,"max_tokens":100,"temperature":0,"ignore_eos":true,"stream":true})"));
  const std::string first = client.some_bytes();
  EXPECT_TRUE(first.starts_with("HTTP/1.1 200")) << first;
  std::thread ending([&] { running.shut_down(); });
  std::string rest, part;
  // The server ends when the last byte is out, not at the timeout.
  late.send("Host: a\r\n\r\n");
  while (!(part = client.some_bytes()).empty()) rest += part;
  EXPECT_EQ(rest.find("abort"), std::string::npos);
  EXPECT_NE(rest.find("data: [DONE]"), std::string::npos);
  late.receive();
  ending.join();
}

}  // namespace weft::http_server_test
