// How weft serve ends at SIGTERM, whatever it is doing.

#include <csignal>
#include <filesystem>
#include <thread>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/json.h"
#include "builtin/models.h"
#include "tests/cli/child_program.h"
#include "tests/http_client.h"
#include "tests/sample_checkpoint.h"

namespace weft::serve_end_test {

constexpr const char* kHead = "POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n";

// It listens on a Unix socket, whose path is known before the start line.
class ServeEnd : public ::testing::Test {
 protected:
  std::vector<std::string> words(const std::vector<std::string>& more) const {
    std::vector<std::string> words{WEFT_PROGRAM, "serve", model_, "--uds", socket_};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  // A client, once the program listens.
  std::unique_ptr<HttpClient> client_of(const ChildProgram& program) const {
    while (program.is_running()) {
      try {
        return std::make_unique<HttpClient>(socket_);
      } catch (const std::runtime_error&) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
    }
    return nullptr;
  }

  // Waits until this many sequences run or wait.
  bool has_load(int least) const {
    HttpClient client(socket_);
    for (int i = 0; i < 6000; ++i) {
      if (parse_json(client.get("/load").body)["server_load"].get<int>() >= least) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

  static std::string rest_of(HttpClient& client) {
    std::string rest, part;
    while (!(part = client.some_bytes()).empty()) rest += part;
    return rest;
  }

  static std::string request(bool streams) {
    return post_bytes("/v1/completions", std::string(R"({"prompt":[1,2],"n":4000,"max_tokens":50,"ignore_eos":true,)") +
                                             R"("stream":)" + (streams ? "true}" : "false}"));
  }

  const TemporaryFolder folder_;
  const std::string socket_ = folder_ / "weft.sock";
  const std::string model_ =
      SampleCheckpoint(make_model_registry().find("llama", "test")).write_folder(folder_, "model", DType::bf16);
};

// The chat template is read last of all, and this one is a pipe into which nobody writes.
TEST_F(ServeEnd, WhileTheModelLoads) {
  const std::string pipe = folder_ / "template";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  ChildProgram program(words({"--chat-template", pipe}), {});
  const auto client = client_of(program);
  ASSERT_NE(client, nullptr) << program.errors();
  const ClientResponse health = client->get("/health");
  EXPECT_EQ(health.status, 503);
  EXPECT_EQ(parse_json(health.body)["error"]["message"], "Loading model");
  EXPECT_EQ(health.fields.at("retry-after"), "1");
  const ClientResponse models = client->get("/v1/models");
  EXPECT_EQ(models.status, 503);
  EXPECT_EQ(parse_json(models.body)["error"]["type"], "Service Unavailable");
  EXPECT_EQ(models.fields.at("retry-after"), "1");
  EXPECT_EQ(client->post("/v1/completions", R"({"prompt":[1]})").status, 503);
  EXPECT_EQ(client->get("/nothing").status, 404);
  EXPECT_EQ(client->get("/version").status, 200);
  program.send_signal(SIGTERM);
  EXPECT_EQ(program.wait().status, 0);
  EXPECT_FALSE(std::filesystem::exists(socket_));
}

TEST_F(ServeEnd, WithRequestsInEveryState) {
  ChildProgram program(words({"--max-num-seqs", "1"}), {});
  ASSERT_TRUE(program.has_written("serving ")) << program.errors();
  HttpClient idle(socket_), stream(socket_), waiting_stream(socket_), waiting(socket_), head(socket_), body(socket_),
      chunks(socket_);
  EXPECT_EQ(idle.get("/health").status, 200);
  stream.send(request(true));
  EXPECT_TRUE(stream.some_bytes().starts_with("HTTP/1.1 200"));
  waiting_stream.send(request(true));
  waiting.send(request(false));
  EXPECT_TRUE(has_load(8001)) << "all three";
  head.send("GET /hea");
  body.send(std::string(kHead) + "Content-Length: 100\r\n\r\n{");
  chunks.send(std::string(kHead) + "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n");
  EXPECT_EQ(idle.get("/health").status, 200) << "what was sent before has arrived";
  program.send_signal(SIGTERM);
  const std::string rest = rest_of(stream);
  EXPECT_NE(rest.find(R"("finish_reason":"abort")"), std::string::npos) << rest;
  EXPECT_TRUE(rest.ends_with("e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")) << rest;
  for (HttpClient* client : {&waiting_stream, &waiting, &head, &body, &chunks}) {
    ClientResponse response = client->receive();
    EXPECT_EQ(response.status, 503);
    EXPECT_EQ(response.fields["connection"], "close");
    EXPECT_EQ(response.fields["retry-after"], "1");
    EXPECT_NE(response.body.find("shutting down"), std::string::npos) << response.body;
    EXPECT_TRUE(client->is_closed());
  }
  EXPECT_TRUE(idle.is_closed());
  EXPECT_THROW(HttpClient{socket_}, std::runtime_error);
  const ProgramRun run = program.wait();
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.err.find("shutting down: SIGTERM"), std::string::npos) << run.err;
  EXPECT_FALSE(std::filesystem::exists(socket_));
}

// What arrives while it drains is refused, what has begun may end; a second signal ends it at once.
TEST_F(ServeEnd, AtOnceAtASecondSignal) {
  for (const int signal : {SIGTERM, SIGINT}) {
    ChildProgram program(words({"--shutdown-timeout", "100000"}), {});
    ASSERT_TRUE(program.has_written("serving ")) << program.errors();
    HttpClient stream(socket_), begun(socket_), body(socket_);
    stream.send(request(true));
    EXPECT_TRUE(stream.some_bytes().starts_with("HTTP/1.1 200"));
    begun.send("GET /hea");
    const std::string json = R"({"prompt":3})";  // its answer needs no step
    body.send(std::string(kHead) + "Content-Length: " + std::to_string(json.size()) + "\r\n\r\n{");
    EXPECT_TRUE(has_load(4000));
    program.send_signal(SIGTERM);
    ASSERT_TRUE(program.has_written("shutting down"));
    begun.send("lth HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_EQ(begun.receive().status, 503);
    body.send(json.substr(1));
    EXPECT_EQ(body.receive().status, 400) << "its head was there before";
    EXPECT_FALSE(stream.some_bytes().empty()) << "goes on";
    program.send_signal(signal);
    EXPECT_EQ(program.wait().status, 128 + signal);
    EXPECT_FALSE(std::filesystem::exists(socket_));
  }
}

}  // namespace weft::serve_end_test
