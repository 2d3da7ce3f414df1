// The text of the metrics, without a server.

#include "server/metric_families.h"

#include <gtest/gtest.h>

#include "tests/server/metrics_text.h"

namespace weft::metric_families_test {

constexpr const char* kLabels = R"({engine="0",model_name="m"})";

TEST(MetricFamilies, AreAllThereFromTheStart) {
  const MetricsText read = read_metrics(metrics_text(make_metric_values(1000), {.prefix = "vllm:", .model_name = "m"}));
  EXPECT_EQ(read.breaches, std::vector<std::string>());
  for (const MetricFamily& family : metric_families()) {
    const std::string prefix = family.scope == MetricScope::process ? "" : "vllm:";
    EXPECT_TRUE(read.types.contains(prefix + std::string(family.name))) << family.name;
  }
  EXPECT_EQ(read.samples.at(std::string("vllm:num_requests_running") + kLabels), 0);
  EXPECT_EQ(read.samples.at(R"(vllm:request_success_total{engine="0",model_name="m",finished_reason="abort"})"), 0);
  EXPECT_EQ(read.samples.at(R"(vllm:engine_sleep_state{engine="0",model_name="m",sleep_state="awake"})"), 1);
  EXPECT_EQ(read.samples.at(R"(vllm:admission_rejections_total{model_name="m",reason="max_num_queued_reqs"})"), 0);
  EXPECT_EQ(read.samples.at(std::string("vllm:time_to_first_token_seconds_count") + kLabels), 0);
}

TEST(MetricFamilies, CountInclusiveCumulativeBuckets) {
  MetricValues values = make_metric_values(60);
  for (const double tokens : {1.0, 2.0, 3.0, 50.0, 51.0, 1e9}) values.request_prompt_tokens.observe(tokens);
  const MetricsText read = read_metrics(metrics_text(values, {.prefix = "weft:", .model_name = "m"}));
  EXPECT_EQ(read.breaches, std::vector<std::string>());
  const auto bucket = [&](const std::string& bound) {
    return read.samples.at(R"(weft:request_prompt_tokens_bucket{engine="0",model_name="m",le=")" + bound + "\"}");
  };
  EXPECT_EQ(bucket("1.0"), 1);
  EXPECT_EQ(bucket("2.0"), 2);
  EXPECT_EQ(bucket("5.0"), 3);
  EXPECT_EQ(bucket("50.0"), 4);
  EXPECT_EQ(bucket("+Inf"), 6);
  EXPECT_FALSE(read.samples.contains(R"(weft:request_prompt_tokens_bucket{engine="0",model_name="m",le="100.0"})"));
  EXPECT_EQ(read.samples.at(std::string("weft:request_prompt_tokens_sum") + kLabels), 1e9 + 107);
}

TEST(MetricFamilies, EscapeLabelsAndWriteWholeNumbersWithAPoint) {
  MetricValues values = make_metric_values(10);
  values.generation_tokens = 1234567;
  values.http_requests[{"/v1/completions", "POST", "2xx"}] = 3;
  values.http_times.try_emplace({"/v1/completions", "POST"}, bucket_bounds(Buckets::http, 0))
      .first->second.observe(0.3);
  values.cache_config = {{"block_size", "16"}, {"cache_dtype", "auto"}};
  const std::string text = metrics_text(values, {.prefix = "vllm:", .model_name = "a\"b\\c\nd"});
  EXPECT_EQ(read_metrics(text).breaches, std::vector<std::string>());
  EXPECT_NE(text.find(R"(vllm:generation_tokens_total{engine="0",model_name="a\"b\\c\nd"} 1234567.0)"),
            std::string::npos);
  EXPECT_NE(text.find(R"(http_requests_total{handler="/v1/completions",method="POST",status="2xx"} 3.0)"),
            std::string::npos);
  EXPECT_NE(text.find(R"(_seconds_bucket{handler="/v1/completions",method="POST",le="0.5"} 1.0)"), std::string::npos);
  EXPECT_NE(text.find("vllm:cache_config_info{engine=\"0\",block_size=\"16\",cache_dtype=\"auto\"} 1.0"),
            std::string::npos);
}

TEST(MetricFamilies, TheCheckOfTheFormatFindsBreaches) {
  const std::string head = "# HELP a_total A.\n# TYPE a_total counter\n";
  EXPECT_TRUE(read_metrics(head + "a_total 1.0\n").breaches.empty());
  for (const char* wrong : {"a_total 1.0", "a_total  1.0\n", "b_total 1.0\n", "a_total{x=1} 1.0\n",
                            "a_total{x=\"1\",} 1.0\n", "a_total one\n", "a_total 1.0\na_total 1.0\n"})
    EXPECT_FALSE(read_metrics(head + wrong).breaches.empty()) << wrong;
  const std::string histogram = "# HELP h H.\n# TYPE h histogram\n";
  EXPECT_TRUE(read_metrics(histogram + "h_bucket{le=\"1.0\"} 1.0\nh_bucket{le=\"+Inf\"} 2.0\nh_count 2.0\nh_sum 3.0\n")
                  .breaches.empty());
  EXPECT_FALSE(read_metrics(histogram + "h_bucket{le=\"1.0\"} 3.0\nh_bucket{le=\"+Inf\"} 2.0\n").breaches.empty());
  EXPECT_FALSE(read_metrics(histogram + "h_bucket{le=\"+Inf\"} 2.0\nh_count 3.0\n").breaches.empty());
}

}  // namespace weft::metric_families_test
