// The report of weft bench serve, from outcomes of the test.

#include "apps/cli/bench/serve_results.h"

#include <sstream>

#include <gtest/gtest.h>

#include "apps/cli/bench/numbers.h"
#include "base/text.h"

namespace weft::serve_results_test {

// Tokens at 1, 1.5 and 2.5 s.
ServeOutcome outcome(double start) {
  return {.is_success = true,
          .prompt_tokens = 7,
          .output_tokens = 3,
          .start = start,
          .queue_time = 0.25,
          .first_token = 1,
          .latency = 2.5,
          .gaps = {0.5, 1},
          .text = "abc",
          .error = ""};
}

ServeReportSettings settings() {
  return {.endpoint_type = "openai",
          .label = "",
          .model = "m",
          .tokenizer = "t",
          .metadata = {{"version", "5"}},
          .requests = 3,
          .request_rate = {},
          .max_concurrency = 2,
          .metrics = {"ttft", "tpot", "itl"},
          .percents = {50, 99.9},
          .goodput = {}};
}

std::vector<std::string> keys(const Json& json) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  return keys;
}

TEST(ServeResults, HaveVllmsKeysInItsOrder) {
  ServeOutcome failed{.error = "status 500"};
  const ServeResults results(settings(), {outcome(0), outcome(1.2), failed}, 4);
  const Json json = results.json("20261127-101112");
  const std::string wanted =
      "date endpoint_type backend label model_id tokenizer_id num_prompts version request_rate burstiness "
      "max_concurrency duration completed failed total_input_tokens total_output_tokens request_throughput "
      "request_goodput output_throughput total_token_throughput latencies queue_times "
      "max_output_tokens_per_s max_concurrent_requests rtfx mean_ttft_ms median_ttft_ms std_ttft_ms "
      "p50_ttft_ms p99.9_ttft_ms mean_tpot_ms median_tpot_ms std_tpot_ms p50_tpot_ms p99.9_tpot_ms "
      "mean_itl_ms median_itl_ms std_itl_ms p50_itl_ms p99.9_itl_ms mean_client_queue_time_ms "
      "median_client_queue_time_ms std_client_queue_time_ms p50_client_queue_time_ms "
      "p99.9_client_queue_time_ms";
  EXPECT_EQ(keys(json), split_text(wanted, ' '));
  EXPECT_EQ(json["request_rate"], "inf");
  EXPECT_EQ(json["completed"], 2);
  EXPECT_EQ(json["failed"], 1);
  EXPECT_EQ(json["total_input_tokens"], 14);
  EXPECT_EQ(json["request_throughput"], 0.5);
  EXPECT_EQ(json["output_throughput"], 1.5);
  EXPECT_EQ(json["total_token_throughput"], 5);
  EXPECT_EQ(json["request_goodput"], nullptr);
  EXPECT_EQ(json["mean_ttft_ms"], 1000);
  EXPECT_EQ(json["mean_tpot_ms"], 750);
  EXPECT_EQ(json["std_itl_ms"], 250);
  EXPECT_EQ(json["mean_client_queue_time_ms"], 250);
  EXPECT_EQ(json["max_concurrent_requests"], 2);
  EXPECT_EQ(json["max_output_tokens_per_s"], 3) << "in the second from 2 to 3: one at 2.5, and two at 2.2 and 2.7";
  ServeReportSettings detailed = settings();
  detailed.is_detailed = true;
  const Json more = ServeResults(detailed, {outcome(0), failed}, 4).json("");
  EXPECT_EQ(more["itls"], Json::parse("[[0.5,1.0],[]]"));
  EXPECT_EQ(more["errors"], Json::parse(R"(["","status 500"])"));
  EXPECT_EQ(keys(more)[20], "input_lens");
}

TEST(ServeResults, PrintVllmsReport) {
  ServeReportSettings with = settings();
  with.request_rate = 2;
  with.metrics = {"ttft", "e2el"};
  with.goodput = {{"ttft", 1000}, {"tpot", 800}};
  ServeOutcome slow = outcome(0);
  slow.first_token = 1.1;
  std::ostringstream out;
  ServeResults(with, {outcome(0), slow}, 4).print(out);
  std::istringstream lines(out.str());
  std::vector<std::string> all;
  for (std::string line; std::getline(lines, line);) all.push_back(line);
  ASSERT_EQ(all.size(), 30U) << out.str();
  EXPECT_EQ(all[0], "============ Serving Benchmark Result ============");
  EXPECT_EQ(all[1], "Successful requests:                     2         ");
  EXPECT_EQ(all[4], "Request rate configured (RPS):           2.00      ");
  EXPECT_EQ(all[9], "Request goodput (req/s):                 0.25      ");
  EXPECT_EQ(all[14], "---------------Time to First Token----------------");
  EXPECT_EQ(all[15], "Mean TTFT (ms):                          1050.00   ");
  EXPECT_EQ(all[18], "P99.9 TTFT (ms):                         1099.90   ");
  EXPECT_EQ(all[19], "----------------End-to-end Latency----------------");
  EXPECT_EQ(all.back(), std::string(50, '='));
}

TEST(ServeResults, TakeNoOutcomesAndRefuseUnknownMetrics) {
  const ServeResults none(settings(), {}, 1);
  EXPECT_EQ(none.json("")["mean_ttft_ms"], 0);
  ServeReportSettings wrong = settings();
  wrong.metrics = {"ttfb"};
  EXPECT_ANY_THROW(ServeResults(wrong, {}, 1));
}

TEST(BenchNumbers, AreNumpys) {
  EXPECT_EQ(percentile({4, 1, 3, 2}, 50), 2.5);
  EXPECT_DOUBLE_EQ(percentile({1, 2, 3, 4}, 99), 3.97);
  EXPECT_EQ(percentile({7}, 99), 7);
  EXPECT_EQ(percentile({}, 99), 0);
  EXPECT_DOUBLE_EQ(standard_deviation({2, 4, 4, 4, 5, 5, 7, 9}), 2);
}

}  // namespace weft::serve_results_test
