// The metrics, limits and logs of a running server.

#include <algorithm>

#include <gtest/gtest.h>

#include "base/json.h"
#include "base/text.h"
#include "tests/engine/tiny_model.h"
#include "tests/http_client.h"
#include "tests/server/metrics_text.h"
#include "tests/server/running_server.h"

namespace weft::server_metrics_test {

constexpr const char* kLabels = R"({engine="0",model_name="tiny"})";

MetricsText metrics_of(const RunningServer& running) {
  const ClientResponse response = HttpClient(running.port()).get("/metrics");
  EXPECT_EQ(response.fields.at("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  MetricsText read = read_metrics(response.body);
  EXPECT_EQ(read.breaches, std::vector<std::string>());
  return read;
}

double value(const MetricsText& read, const std::string& name, const std::string& label = "") {
  const std::string labels = label.empty() ? kLabels : R"({engine="0",model_name="tiny",)" + label + "}";
  const auto found = read.samples.find("vllm:" + name + labels);
  EXPECT_NE(found, read.samples.end()) << name << labels;
  return found == read.samples.end() ? -1 : found->second;
}

TEST(ServerMetrics, CountTokensSequencesAndRequests) {
  RunningServer running({}, {{"max-num-batched-tokens", "11"}});
  HttpClient client(running.port());
  EXPECT_EQ(
      client.post("/v1/completions", R"({"prompt":"abcdefghijklmnop","max_tokens":5,"ignore_eos":true,"n":2})").status,
      200);
  EXPECT_EQ(client.post("/v1/completions", R"({"prompt":5})").status, 400);
  EXPECT_EQ(client.get("/nothing").status, 404);
  EXPECT_EQ(client.get("/v1/models/tiny").status, 200);
  const MetricsText read = metrics_of(running);
  EXPECT_EQ(value(read, "prompt_tokens_total"), 32);
  EXPECT_EQ(value(read, "prompt_tokens_by_source_total", R"(source="local_compute")"), 32);
  EXPECT_EQ(value(read, "generation_tokens_total"), 10);
  EXPECT_EQ(value(read, "request_success_total", R"(finished_reason="length")"), 2);
  EXPECT_EQ(value(read, "request_params_n_sum"), 2);
  EXPECT_EQ(value(read, "request_params_n_count"), 1);
  EXPECT_EQ(value(read, "time_to_first_token_seconds_count"), 2);
  EXPECT_EQ(value(read, "inter_token_latency_seconds_count"), 8);
  EXPECT_EQ(value(read, "e2e_request_latency_seconds_count"), 2);
  EXPECT_EQ(value(read, "request_queue_time_seconds_count"), 2);
  EXPECT_EQ(value(read, "request_prefill_time_seconds_count"), 2);
  EXPECT_EQ(value(read, "iteration_tokens_total_sum"), 32 + 8) << "each token but the last ones is computed";
  EXPECT_EQ(value(read, "num_requests_running"), 0);
  EXPECT_EQ(value(read, "kv_cache_usage_perc"), 0);
  EXPECT_EQ(read.samples.at(R"(http_requests_total{handler="/v1/completions",method="POST",status="2xx"})"), 1);
  EXPECT_EQ(read.samples.at(R"(http_requests_total{handler="/v1/completions",method="POST",status="4xx"})"), 1);
  EXPECT_EQ(read.samples.at(R"(http_requests_total{handler="none",method="GET",status="4xx"})"), 1);
  EXPECT_EQ(read.samples.at(R"(http_requests_total{handler="/v1/models/{name}",method="GET",status="2xx"})"), 1);
  EXPECT_GT(read.samples.at("process_resident_memory_bytes"), 1e6);
  EXPECT_GT(read.samples.at("process_open_fds"), 3);
}

TEST(ServerMetrics, ShowWhatRunsAndWhatIsAborted) {
  RunningServer running({}, {{"max-num-seqs", "2"}});
  {
    HttpClient client(running.port());
    client.send(
        post_bytes("/v1/completions", R"({"prompt":"a","n":1000,"max_tokens":120,"ignore_eos":true,"stream":true})"));
    EXPECT_FALSE(client.some_bytes().empty());
    const MetricsText read = metrics_of(running);
    EXPECT_GE(value(read, "num_requests_running"), 1);
    EXPECT_LE(value(read, "num_requests_running"), 2);
    EXPECT_GT(value(read, "num_requests_waiting"), 100);
    EXPECT_GT(value(read, "kv_cache_usage_perc"), 0);
    EXPECT_EQ(value(read, "num_requests_waiting"),
              value(read, "num_requests_waiting_by_reason", R"(reason="capacity")"));
  }
  EXPECT_EQ(running.load_at_rest(), 0);
  const MetricsText read = metrics_of(running);
  EXPECT_EQ(value(read, "num_requests_running"), 0);
  EXPECT_EQ(value(read, "num_requests_waiting"), 0);
  EXPECT_EQ(value(read, "request_success_total", R"(finished_reason="abort")") +
                value(read, "request_success_total", R"(finished_reason="length")"),
            1000);
}

TEST(ServerMetrics, NeedNoKeyAndTakeAPrefix) {
  ServerSettings settings;
  settings.api.keys = {"secret"};
  settings.api.metrics_prefix = "weft:";
  RunningServer running(settings);
  EXPECT_TRUE(metrics_of(running).types.contains("weft:num_requests_running"));
}

TEST(ServerMetrics, RequestsBeyondTheQueueAreRefused) {
  ServerSettings settings;
  settings.api.most_sequences = 3;
  settings.api.most_queued_tokens = 20;
  RunningServer running(settings);
  HttpClient client(running.port());
  const ClientResponse refused = client.post("/v1/completions", R"({"prompt":"a","n":4,"max_tokens":1})");
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.fields.at("retry-after"), "1");
  EXPECT_EQ(client.post("/v1/completions", R"({"prompt":"aaaaaaaaaaaaaaaaaaaaa","stream":true})").status, 503);
  // What is over counts no longer.
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(client.post("/v1/completions", R"({"prompt":"aaaaaaa","n":2,"max_tokens":2})").status, 200);
  const MetricsText read = metrics_of(running);
  const std::string name = R"(vllm:admission_rejections_total{model_name="tiny",reason=")";
  EXPECT_EQ(read.samples.at(name + "max_num_queued_reqs\"}"), 1);
  EXPECT_EQ(read.samples.at(name + "max_num_queued_tokens\"}"), 1);
}

TEST(ServerMetrics, ResponsesHaveTheIdOfTheirRequest) {
  ServerSettings settings;
  settings.api.has_id_fields = true;
  RunningServer running(settings);
  HttpClient client(running.port());
  const std::string asked = R"({"prompt":"a","max_tokens":1})", given = "X-Request-Id: my-id\r\n";
  EXPECT_EQ(client.post("/v1/completions", asked, given).fields.at("x-request-id"), "my-id");
  EXPECT_EQ(client.post("/v1/completions", asked, "X-Request-Id: my id \r\n").fields.at("x-request-id"), "my id");
  EXPECT_EQ(client.post("/v1/completions", asked, "X-Request-Id: \xc3\xa9\r\n").fields.at("x-request-id").size(), 16U)
      << "what is not printable is replaced";
  const ClientResponse drawn = client.post("/v1/completions", asked);
  EXPECT_EQ("cmpl-" + drawn.fields.at("x-request-id"), parse_json(drawn.body)["id"].get<std::string>());
  const ClientResponse stream =
      client.post("/v1/completions", R"({"prompt":"a","max_tokens":1,"stream":true,"request_id":"of-body"})");
  EXPECT_EQ(stream.fields.at("x-request-id"), "of-body");
  EXPECT_EQ(client.post("/v1/completions", "{", given).fields.at("x-request-id"), "my-id");
  EXPECT_EQ(client.get("/nothing", given).fields.at("x-request-id"), "my-id");
  EXPECT_EQ(client.get("/health").fields.at("x-request-id").size(), 16U);
  RunningServer without;
  EXPECT_FALSE(HttpClient(without.port()).get("/health", given).fields.contains("x-request-id"));
}

TEST(ServerMetrics, StreamsEndWithUsageIfItIsForced) {
  ServerSettings settings;
  settings.api.forces_usage = true;
  RunningServer running(settings);
  const ClientResponse stream =
      HttpClient(running.port())
          .post("/v1/completions", R"({"prompt":"a","max_tokens":2,"stream":true,"ignore_eos":true})");
  ASSERT_EQ(stream.chunks.size(), 4U);
  EXPECT_EQ(parse_json(stream.chunks[2].substr(6))["usage"]["completion_tokens"], 2);
}

// The first step of the second request waits for the first one, which has the only sequence of a step.
TEST(ServerMetrics, SilentStreamsGetComments) {
  ServerSettings settings;
  settings.keep_alive_interval = std::chrono::milliseconds(4);
  RunningServer running(settings, {{"max-num-seqs", "1"}});
  HttpClient first(running.port()), second(running.port());
  first.send(
      post_bytes("/v1/completions", R"({"prompt":"a","n":3000,"max_tokens":120,"ignore_eos":true,"stream":true})"));
  EXPECT_FALSE(first.some_bytes().empty());
  second.send(post_bytes("/v1/chat/completions",
                         R"({"messages":[{"role":"user","content":"a"}],"max_tokens":2,"stream":true})"));
  std::string bytes;
  while (bytes.find(": keep-alive\n\n") == std::string::npos) {
    const std::string more = second.some_bytes();
    ASSERT_FALSE(more.empty());
    bytes += more;
  }
  EXPECT_NE(bytes.find("200 OK"), std::string::npos);
  EXPECT_NE(bytes.find("text/event-stream"), std::string::npos);
  running.shut_down();
  while (true) {
    const std::string more = second.some_bytes();
    if (more.empty()) break;
    bytes += more;
  }
  EXPECT_NE(bytes.find("\"finish_reason\":\"abort\""), std::string::npos) << "the stream had begun: " << bytes;
  EXPECT_NE(bytes.find("data: [DONE]\n\n"), std::string::npos);
}

bool has(const std::vector<std::string>& lines, const std::string& text) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

TEST(ServerMetrics, LogsWhatIsAskedFor) {
  ServerSettings settings;
  settings.api.quiet_paths = {"/health"};
  settings.api.logs_requests = true;
  RunningServer running(settings);
  HttpClient client(running.port());
  client.get("/health");
  client.get("/version");
  client.post("/v1/completions", R"({"prompt":"secret words","max_tokens":1})", "X-Request-Id: one\r\n");
  client.get("/version");
  EXPECT_FALSE(has(running.log(), "/health"));
  EXPECT_TRUE(has(running.log(), "\"/version\" 200"));
  EXPECT_TRUE(has(running.log(), "request one: 12 tokens, prompt \"secret words\""));
  RunningServer usual;
  HttpClient(usual.port()).post("/v1/completions", R"({"prompt":"secret words","max_tokens":1})");
  EXPECT_FALSE(has(usual.log(), "secret"));
}

TEST(ServerMetrics, LogTheRatesWhileThereIsWork) {
  const TemporaryFolder folder;
  const auto engine = tiny_engine(write_tiny_model(folder));
  const ServedModel model = make_served_model(*engine, {.names = {"tiny"}, .root = "tiny.gguf"});
  EngineLoop loop(
      *engine, [](const StepReport&) {}, [](const std::string&) {});
  std::vector<std::string> lines;
  ApiServer api(
      {}, [](const std::function<void()>& task) { task(); }, [&](const std::string& line) { lines.push_back(line); });
  api.log_statistics(std::chrono::seconds(10));
  api.set_model(model, loop);
  api.log_statistics(std::chrono::seconds(10));
  EXPECT_TRUE(lines.empty()) << "nothing to say";
  StepReport report;
  report.statistics = {
      .running = 2, .waiting = 7, .pages_used = 1, .pages = 4, .prefix_cache_queries = 8, .prefix_cache_hits = 2};
  api.deliver(report);
  api.log_statistics(std::chrono::seconds(10));
  ASSERT_EQ(lines.size(), 1U);
  for (const char* part : {"running 2", "waiting 7", "25.0 %"}) EXPECT_TRUE(has(lines, part)) << lines[0];
}

}  // namespace weft::server_metrics_test
