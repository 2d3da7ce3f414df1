// weft bench ops --fusions as a user meets it. No test looks at how long anything took.

#include "apps/cli/bench_fusions.h"

#include <algorithm>
#include <set>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/program_run.h"
#include "tests/test_context.h"

namespace weft::bench_fusions_test {

using Json = nlohmann::json;

ProgramRun bench(const std::vector<std::string>& more) {
  std::vector<std::string> words{"bench", "ops", "--fusions", "-r", "1", "-t", "1"};
  words.insert(words.end(), more.begin(), more.end());
  return run_weft(words);
}

TEST(BenchFusions, FindsTheOpsThatMeanTwoOps) {
  const auto context = test_context();
  const std::vector<std::string> fused = fused_ops(context->ops);
  const auto has = [&](const char* op) { return std::count(fused.begin(), fused.end(), op) == 1; };
  for (const char* first : {"rms_norm", "fused_add_rms_norm", "silu_and_mul", "gelu_and_mul", "gelu_tanh_and_mul"}) {
    EXPECT_TRUE(has((std::string(first) + "_per_token_group_quant_int8").c_str())) << first;
    EXPECT_FALSE(has(first)) << first;
  }
  EXPECT_FALSE(has("per_token_group_quant_int8"));
  EXPECT_TRUE(std::is_sorted(fused.begin(), fused.end()));
}

TEST(BenchFusions, CountsTheBytesOfBothWays) {
  const ProgramRun run =
      bench({"--op", "silu_and_mul_per_token_group_quant_int8", "--op", "fused_add_rms_norm_per_token_group_quant_int8",
             "--rows", "3", "--columns", "64", "--json"});
  ASSERT_EQ(run.status, 0) << run.err;
  const Json report = Json::parse(run.out);
  EXPECT_EQ(report["machine"]["n_threads"], 1);
  int found = 0;
  for (const Json& row : report["rows"]) {
    for (const char* time : {"unfused_us", "fused_us", "copy_us", "ratio", "percent_of_copy"})
      EXPECT_GT(row[time], 0) << time;
    for (const char* samples : {"unfused_samples_us", "fused_samples_us", "copy_samples_us"})
      EXPECT_EQ(row[samples].size(), 1u) << samples;
    EXPECT_EQ(row["rows"], 3);
    EXPECT_EQ(row["columns"], 64);
    EXPECT_EQ(row["turns"], 1);
    const std::string call = row["call"];
    if (call.find("f32[3, 128]") != std::string::npos) {
      ++found;
      EXPECT_EQ(row["fused_bytes"], 3 * (128 * 4 + 64 + 2 * 4));
      EXPECT_EQ(row["unfused_bytes"], 3 * (128 * 4 + 64 * 4 + 64 * 4 + 64 + 2 * 4));
      EXPECT_EQ(row["fused"], "silu_and_mul_per_token_group_quant_int8@cpu");
      EXPECT_EQ(row["unfused"], "silu_and_mul@cpu+per_token_group_quant_int8@cpu");
    }
    if (call.find("bf16[3, 64], bf16[3, 64], bf16[64]") != std::string::npos) {
      ++found;
      EXPECT_EQ(row["fused_bytes"], 64 * 2 + 3 * (64 * 2 * 3 + 64 + 2 * 4));
      EXPECT_EQ(row["unfused_bytes"], 64 * 2 + 3 * (64 * 2 * 4 + 64 * 2 + 64 + 2 * 4));
    }
  }
  EXPECT_EQ(found, 2);
  EXPECT_EQ(report["rows"].size(), 6u);  // three dtypes of each
}

TEST(BenchFusions, TakesTheGroupThatIsAskedFor) {
  const std::string fp8 = "silu_and_mul_per_token_group_quant_fp8", row = "silu_and_mul_static_scaled_fp8_quant";
  const ProgramRun run =
      bench({"--op", fp8, "--op", row, "--rows", "3", "--columns", "256", "--group", "128", "--json"});
  ASSERT_EQ(run.status, 0) << run.err;
  const Json report = Json::parse(run.out);
  int grouped = 0;
  for (const Json& line : report["rows"]) {
    const std::string call = line["call"];
    if (line["op"] != fp8) continue;
    EXPECT_NE(call.find("group_size=128"), std::string::npos) << call;
    if (call.find("bf16[3, 512]") == std::string::npos) continue;
    ++grouped;
    EXPECT_EQ(line["fused_bytes"], 3 * (512 * 2 + 256 + 2 * 4));
  }
  EXPECT_EQ(grouped, 1);
  EXPECT_EQ(report["rows"].size(), 6u);
}

TEST(BenchFusions, WritesEveryFormat) {
  const auto in_format = [&](const char* format) {
    const ProgramRun run =
        bench({"--op", "rms_norm_per_token_group_quant_int8", "--rows", "2,5", "--columns", "32", "-o", format});
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_EQ(run.err, "");
    std::vector<std::string> lines;
    std::istringstream stream(run.out);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
  };
  const std::vector<std::string> lines = in_format("jsonl");
  ASSERT_EQ(lines.size(), 6u);
  for (const std::string& line : lines) EXPECT_EQ(Json::parse(line)["columns"], 32);
  EXPECT_EQ(in_format("csv").size(), 7u);
  const std::vector<std::string> markdown = in_format("md");
  ASSERT_EQ(markdown.size(), 10u);
  for (std::size_t i = 2; i < markdown.size(); ++i)
    EXPECT_EQ(std::count(markdown[i].begin(), markdown[i].end(), '|'), 9) << markdown[i];
}

TEST(BenchFusions, SaysWhatCannotBeMeasured) {
  const auto message = [&](const std::vector<std::string>& words) {
    const ProgramRun run = bench(words);
    EXPECT_EQ(run.status, 2);
    EXPECT_EQ(run.out, "");
    return run.err;
  };
  EXPECT_NE(message({"--op", "rms_norm"}).find("[--op] rms_norm is not a fused op: its meaning is not two ops"),
            std::string::npos);
  EXPECT_NE(message({"--provider", "cpu"}).find("[--provider] does not go with --fusions"), std::string::npos);
  EXPECT_NE(message({"--columns", "0"}).find("[--columns] must be in [1, 65536], but is 0"), std::string::npos);
  EXPECT_NE(message({"--group", "-1"}).find("[--group] must be in [0, 65536], but is -1"), std::string::npos);
  EXPECT_NE(message({"--op", "rms_norm_per_token_group_quant_int8", "--columns", "40", "-o", "jsonl"})
                .find("[rms_norm_per_token_group_quant_int8] x must have rows of whole groups of 32"),
            std::string::npos);
}

}  // namespace weft::bench_fusions_test
