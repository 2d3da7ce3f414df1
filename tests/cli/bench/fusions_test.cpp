// weft bench ops --fusions as a user sees it. No test depends on times.

#include "apps/cli/bench/fusions.h"

#include <algorithm>
#include <set>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "tests/program_run.h"
#include "tests/test_context.h"

namespace weft::bench_fusions_test {

using Json = nlohmann::json;

ProgramRun bench(const std::vector<std::string>& more) {
  std::vector<std::string> words{"bench", "ops", "--fusions", "-r", "1", "-t", "1"};
  words.insert(words.end(), more.begin(), more.end());
  return run_weft(words);
}

TEST(BenchFusions, FindsTheOpsThatFusionsPutIntoGraphs) {
  const auto context = test_context();
  const std::vector<std::string> fused = benched_fusions(*context);
  const auto has = [&](const char* op) { return std::count(fused.begin(), fused.end(), op) == 1; };
  for (const char* first : {"rms_norm", "fused_add_rms_norm", "silu_and_mul", "gelu_and_mul", "gelu_tanh_and_mul"}) {
    EXPECT_TRUE(has((std::string(first) + "_per_token_group_quant_int8").c_str())) << first;
    EXPECT_EQ(has(first), first == std::string("fused_add_rms_norm")) << first;
  }
  for (const char* op : {"fused_rope_kv_cache_update", "fused_qk_norm_rope", "fused_qk_norm_rope_kv_cache_update",
                         "attention_static_scaled_fp8_quant", "attention_scaled_fp4_quant"})
    EXPECT_TRUE(has(op)) << op;
  for (const char* op : {"per_token_group_quant_int8", "all_gather", "reduce_scatter", "attention"})
    EXPECT_FALSE(has(op)) << op;
  EXPECT_TRUE(std::is_sorted(fused.begin(), fused.end()));
}

// With kernels only: generated code is another matter.
TEST(BenchFusions, CountsTheBytesOfBothWays) {
  const std::string rope = "fused_qk_norm_rope_kv_cache_update", attention = "attention_static_scaled_fp8_quant";
  const ProgramRun run =
      bench({"--op", "silu_and_mul_per_token_group_quant_int8", "--op", "fused_add_rms_norm_per_token_group_quant_int8",
             "--op", rope, "--op", attention, "--rows", "3", "--columns", "64", "--json", "-cc.backend=eager"});
  ASSERT_EQ(run.status, 0) << run.err;
  const Json report = Json::parse(run.out);
  EXPECT_EQ(report["machine"]["n_threads"], 1);
  int found = 0;
  const auto expect = [&](const Json& row, const std::string& fused, int fused_bytes, const std::string& unfused,
                          int unfused_bytes) {
    ++found;
    EXPECT_EQ(row["fused"], fused);
    EXPECT_EQ(row["fused_bytes"], fused_bytes);
    EXPECT_EQ(row["unfused"], unfused);
    EXPECT_EQ(row["unfused_bytes"], unfused_bytes);
  };
  for (const Json& row : report["rows"]) {
    for (const char* time : {"unfused_us", "fused_us", "copy_us", "ratio", "percent_of_copy"})
      EXPECT_GT(row[time], 0) << time;
    for (const char* samples : {"unfused_samples_us", "fused_samples_us", "copy_samples_us"})
      EXPECT_EQ(row[samples].size(), 1u) << samples;
    EXPECT_EQ(row["rows"], 3);
    EXPECT_EQ(row["columns"], 64);
    EXPECT_EQ(row["turns"], 1);
    const std::string call = row["call"];
    if (call.find("f32[3, 128]") == std::string("silu_and_mul_per_token_group_quant_int8(").size())
      expect(row, "silu_and_mul_per_token_group_quant_int8@cpu", 3 * (128 * 4 + 64 + 2 * 4),
             "silu_and_mul@cpu+per_token_group_quant_int8@cpu", 3 * (128 * 4 + 64 * 4 + 64 * 4 + 64 + 2 * 4));
    // Three parts: a sum, the normalization of it, and its codes.
    if (call.find("f16[3, 64], f16[3, 64], f16[64]") != std::string::npos && call.find("bf16") == std::string::npos)
      expect(row, "fused_add_rms_norm_per_token_group_quant_int8@cpu", 64 * 2 + 3 * (64 * 2 * 3 + 64 + 2 * 4),
             "add@cpu+rms_norm@cpu+per_token_group_quant_int8@cpu",
             3 * 64 * 2 * 3 + 64 * 2 + 3 * 64 * 2 * 2 + 3 * (64 * 2 + 64 + 2 * 4));
    // One head of query and of key. The stored columns count, not the size of the pages.
    const int row_bytes = 3 * 64 * 2, weights = 2 * 64 * 2, rotation = 3 * 8 + 20 * 64 * 4, slots = 3 * 8;
    if (row["op"] == rope && call.find(" bf16[3, 64]") != std::string::npos)
      expect(row, rope + "@cpu", rotation + slots + weights + 3 * row_bytes + 3 * row_bytes,
             "rms_norm@cpu+rms_norm@cpu+rotary_embedding@cpu+kv_cache_update@cpu",
             weights + 4 * row_bytes + rotation + 4 * row_bytes + slots + 2 * row_bytes + 2 * row_bytes);
    // 512 tokens of a key and a value are read, in 33 pages of 16.
    const int pages = 33 * 16 * 2 * 64 * 2;
    if (row["op"] == attention && call.find("(bf16[3, 1, 64]") != std::string::npos)
      expect(row, attention + "@cpu", row_bytes + pages + 4 + 3 * 64, "attention@cpu+static_scaled_fp8_quant@cpu",
             row_bytes + pages + row_bytes + row_bytes + 4 + 3 * 64);
  }
  EXPECT_EQ(found, 4);
  EXPECT_EQ(report["rows"].size(), 12u);  // three dtypes of each
}

// Every fusion that the program has, its parts none of them.
TEST(BenchFusions, MeasuresEveryFusedOpBesideItsParts) {
  const auto context = test_context();
  const std::vector<std::string> fused = benched_fusions(*context);
  const ProgramRun run = bench({"--rows", "2", "--columns", "192", "-o", "jsonl", "-cc.backend=eager"});
  ASSERT_EQ(run.status, 0) << run.err;
  std::set<std::string> seen;
  std::istringstream lines(run.out);
  for (std::string line; std::getline(lines, line);) {
    const Json row = Json::parse(line);
    seen.insert(row["op"]);
    const std::vector<std::string> parts = split_text(row["unfused"].get<std::string>(), '+');
    EXPECT_GE(parts.size(), 2u) << line;
    for (const std::string& part : parts)
      EXPECT_EQ(std::count(fused.begin(), fused.end(), part.substr(0, part.find('@'))), 0) << line;
    EXPECT_EQ(row["fused"].get<std::string>().find('+'), std::string::npos) << line;
    EXPECT_LT(row["fused_bytes"], row["unfused_bytes"]) << line;
  }
  EXPECT_EQ(std::vector<std::string>(seen.begin(), seen.end()), fused);
}

// For every provider: code that reads the halves of a row as two operands moves no more bytes than a kernel.
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
    EXPECT_EQ(std::count(markdown[i].begin(), markdown[i].end(), '|'), 10) << markdown[i];
}

TEST(BenchFusions, SaysWhatCannotBeMeasured) {
  const auto message = [&](const std::vector<std::string>& words) {
    const ProgramRun run = bench(words);
    EXPECT_EQ(run.status, 2);
    EXPECT_EQ(run.out, "");
    return run.err;
  };
  EXPECT_NE(message({"--op", "rms_norm"}).find("[--op] rms_norm is not a fused op: no fusion puts it into graphs"),
            std::string::npos);
  EXPECT_NE(message({"--provider", "cpu"}).find("[--provider] does not go with --fusions"), std::string::npos);
  EXPECT_NE(message({"--columns", "0"}).find("[--columns] must be in [1, 65536], but is 0"), std::string::npos);
  EXPECT_NE(message({"--op", "fused_qk_norm_rope", "--columns", "96", "-o", "jsonl"})
                .find("[fused_qk_norm_rope] a query must have columns of whole heads of 64, but 96 were asked for"),
            std::string::npos);
  EXPECT_NE(message({"--group", "-1"}).find("[--group] must be in [0, 65536], but is -1"), std::string::npos);
  EXPECT_NE(message({"--op", "rms_norm_per_token_group_quant_int8", "--columns", "40", "-o", "jsonl"})
                .find("[rms_norm_per_token_group_quant_int8] rows must be whole groups of 32"),
            std::string::npos);
}

}  // namespace weft::bench_fusions_test
