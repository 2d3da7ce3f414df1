// What clients see where the engine fails: a device that is lost, pages that run out, a step that does not end.

#include <atomic>
#include <future>
#include <limits>
#include <new>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "base/json.h"
#include "builtin/context.h"
#include "builtin/cuda_device.h"
#include "builtin/models.h"
#include "tests/engine/tiny_model.h"
#include "tests/http_client.h"
#include "tests/sample_checkpoint.h"
#include "tests/server/metrics_text.h"
#include "tests/server/running_server.h"

namespace weft::server_faults_test {

using Hook = std::function<void()>;

class ServerOfEngine {
 public:
  ServerOfEngine(
      const std::shared_ptr<Context>& context, const std::string& path, ServerSettings settings = {},
      ApiServer::Log log = [](const std::string&) {})
      : engine_(context, Checkpoint::open(path), make_model_registry()) {
    model_ = make_served_model(engine_, {.names = {"tiny"}, .root = "tiny.gguf"});
    settings.port = 0;
    server_ = std::make_unique<Server>(std::move(settings), std::move(log));
    std::promise<void> ready;
    thread_ = std::thread([&] { server_->serve(engine_, model_, [&] { ready.set_value(); }); });
    ready.get_future().wait();
  }
  ~ServerOfEngine() {
    server_->shut_down();
    thread_.join();
  }
  int port() const { return server_->port(); }

 private:
  Engine engine_;
  ServedModel model_;
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

// A server on a fake device; `hook` is called before each launch of a kernel, and what it throws breaks the device.
class ServerOnDevice {
 public:
  explicit ServerOnDevice(Hook hook, ServerSettings settings = {}) {
    Options options;
    for (const auto& [name, value] :
         {std::pair{"device", "fake-cuda"}, {"dtype", "bf16"}, {"max-num-seqs", "1"}, {"forbid-lazy", ""}})
      set_option(options, name, value, "test");
    const auto context = make_context(options);
    cuda::FakeSettings fake;
    fake.kernels = emulated_kernels_of_device();
    for (cuda::FakeKernel& kernel : fake.kernels)
      kernel.run = [hook, run = kernel.run](const cuda::FakeLaunch& launch) {
        hook();
        run(launch);
      };
    context->stream_device = open_fake_cuda({DeviceType::fake_cuda, 0}, std::move(fake));
    server_.emplace(context, write_tiny_model(folder_), std::move(settings));
  }
  int port() const { return server_->port(); }

 private:
  TemporaryFolder folder_;
  std::optional<ServerOfEngine> server_;
};

std::string asked(const std::string& more) {
  return R"({"prompt":[5,6,7],"max_tokens":4,"temperature":0,"ignore_eos":true)" + more + "}";
}

TEST(ServerFaults, NanIsSaidToTheClientWithoutPaths) {
  const TemporaryFolder folder;
  SampleCheckpoint sample(make_model_registry().find("llama", "test"), {{"torch_dtype", "float32"}});
  sample.multiply("lm_head.weight", std::numeric_limits<float>::quiet_NaN());
  const ServerOfEngine server(make_context(Options()), sample.write_folder(folder, "model", DType::f32));
  const ClientResponse answer = HttpClient(server.port()).post("/v1/completions", asked(""));
  EXPECT_EQ(answer.status, 500);
  const Json error = parse_json(answer.body)["error"];
  EXPECT_EQ(error["type"], "InternalServerError");
  const auto message = error["message"].get<std::string>();
  EXPECT_TRUE(message.starts_with("[logits] some are not numbers (NaN)")) << message;
  EXPECT_EQ(message.find(folder / "model"), std::string::npos) << message;
}

TEST(ServerFaults, ConcurrentRequestsOutliveADeviceThatIsLost) {
  std::atomic<int> launches = 0, left = 0;
  ServerOnDevice server([&] {
    ++launches;
    if (left > 0 && --left == 0) throw std::runtime_error("an illegal address");
  });
  const int at_start = launches;
  HttpClient whole(server.port()), stream(server.port()), waiting(server.port());
  const ClientResponse before = whole.post("/v1/completions", asked(""));
  ASSERT_EQ(before.status, 200) << before.body;
  const Json wanted = parse_json(before.body)["choices"];

  const int of_step = (launches - at_start) / 4;
  left = 1;
  const ClientResponse lost = whole.post("/v1/completions", asked(""));
  EXPECT_EQ(lost.status, 500);
  const Json error = parse_json(lost.body)["error"];
  EXPECT_EQ(error["type"], "InternalServerError");
  EXPECT_EQ(error["param"], nullptr);
  EXPECT_EQ(lost.body.find("illegal"), std::string::npos) << "that is for the log";

  // The third step of the stream fails. One sequence runs at a time, so the other one is not in it.
  left = 3 * of_step;
  stream.send(post_bytes("/v1/completions", R"({"prompt":[5,6],"max_tokens":100,"ignore_eos":true,"stream":true})"));
  std::string events = stream.some_bytes();
  EXPECT_TRUE(events.starts_with("HTTP/1.1 200")) << events;
  waiting.send(post_bytes("/v1/completions", asked("")));
  while (events.find("data: [DONE]") == std::string::npos) {
    const std::string more = stream.some_bytes();
    ASSERT_FALSE(more.empty()) << events;
    events += more;
  }
  EXPECT_NE(events.find(R"("type":"InternalServerError")"), std::string::npos) << events;
  const ClientResponse after = waiting.receive();
  EXPECT_EQ(after.status, 200) << after.body;
  EXPECT_EQ(parse_json(after.body)["choices"], wanted);
  EXPECT_EQ(whole.get("/health").status, 200);
}

TEST(ServerFaults, ConcurrentHealthIsBadWhileAStepDoesNotEnd) {
  std::atomic<bool> stops = false;
  std::promise<void> release;
  const std::shared_future<void> released = release.get_future().share();
  ServerSettings settings;
  settings.api.longest_step = std::chrono::milliseconds(1);
  ServerOnDevice server(
      [&stops, released] {
        if (stops) released.wait();
      },
      settings);
  HttpClient client(server.port()), asking(server.port());
  stops = true;
  asking.send(post_bytes("/v1/completions", asked("")));
  ClientResponse health = client.get("/health");
  for (int i = 0; i < 10000 && health.status == 200; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    health = client.get("/health");
  }
  EXPECT_EQ(health.status, 503);
  EXPECT_NE(health.body.find("does not end"), std::string::npos) << health.body;
  release.set_value();
  EXPECT_EQ(asking.receive().status, 200);
  EXPECT_EQ(client.get("/health").status, 200);
}

// The log is called where a request with an unknown field is prepared, and throws there.
TEST(ServerFaults, ConcurrentRequestsOutliveALackOfMemory) {
  const TemporaryFolder folder;
  const ServerOfEngine server(make_context(Options()), write_tiny_model(folder), {}, [](const std::string& line) {
    if (line.find("unknown") != std::string::npos) throw std::bad_alloc();
  });
  HttpClient client(server.port());
  const ClientResponse refused = client.post("/v1/completions", asked(R"(,"no_such_field":1)"));
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.fields.at("retry-after"), "1");
  EXPECT_EQ(parse_json(refused.body)["error"]["message"], "the server is short of memory");
  EXPECT_EQ(client.post("/v1/completions", asked("")).status, 200);
}

// Pages for one whole context and a little: sequences lose theirs, and their answers are the same.
TEST(ServerFaults, ConcurrentAnswersAreTheSameWherePagesRunOut) {
  constexpr int kClients = 6;
  const auto body = [](int i) {
    return R"({"prompt":")" + std::string(20, static_cast<char>('a' + i)) +
           R"(","max_tokens":90,"seed":7,"temperature":1,"ignore_eos":true,"logprobs":1})";
  };
  const auto answers = [&](RunningServer& running, bool at_once) {
    std::vector<std::unique_ptr<HttpClient>> clients;
    std::vector<Json> answers;
    for (int i = 0; i < kClients; ++i) {
      clients.push_back(std::make_unique<HttpClient>(running.port()));
      clients.back()->send(post_bytes("/v1/completions", body(i)));
      if (!at_once) answers.push_back(parse_json(clients.back()->receive().body)["choices"]);
    }
    for (int i = 0; at_once && i < kClients; ++i)
      answers.push_back(parse_json(clients[static_cast<std::size_t>(i)]->receive().body)["choices"]);
    return answers;
  };
  RunningServer many({}, {{"block-size", "4"}});
  RunningServer few({}, {{"block-size", "4"}, {"num-gpu-blocks-override", "40"}, {"enable-prefix-caching", "false"}});
  EXPECT_EQ(answers(few, true), answers(many, false));
  HttpClient client(few.port());
  const auto metrics = read_metrics(client.get("/metrics").body);
  EXPECT_GT(metrics.samples.at(R"(vllm:num_preemptions_total{engine="0",model_name="tiny"})"), 0);
  EXPECT_EQ(few.load_at_rest(), 0);
}

}  // namespace weft::server_faults_test
