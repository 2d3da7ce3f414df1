// weft bench ops as a user sees it. No test depends on times.

#include "apps/cli/bench/ops.h"

#include <algorithm>
#include <set>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "apps/cli/measured_peaks.h"
#include "tests/program_run.h"
#include "tests/test_context.h"

namespace weft::bench_ops_test {

using Json = nlohmann::json;

ProgramRun bench(const std::vector<std::string>& more) {
  std::vector<std::string> words{"bench", "ops", "-r", "1", "-t", "1"};
  words.insert(words.end(), more.begin(), more.end());
  return run_weft(words);
}

Json bench_json(std::vector<std::string> more) {
  more.push_back("--json");
  const ProgramRun run = bench(more);
  EXPECT_EQ(run.status, 0) << run.err;
  return Json::parse(run.out);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(BenchOps, TimesNothingThatADeviceDoesLater) {
  const char* const words = "measures calls by the host's clock, which does not measure what fake-cuda:0 does later";
  EXPECT_EQ(breach_of_refusal(bench({"--device", "fake-cuda", "--op", "rms_norm"}), words), "");
  EXPECT_EQ(breach_of_refusal(bench({"--device", "fake-cuda", "--fusions"}), words), "");
  EXPECT_EQ(breach_of_refusal(run_weft({"bench", "functions", "--device", "fake-cuda"}), words), "");
}

TEST(BenchOps, GivesOneRowForEachProviderAndCall) {
  const Json report = bench_json({"--op", "rms_norm", "--rows", "1,7"});
  EXPECT_EQ(report["machine"]["n_threads"], 1);
  EXPECT_GT(report["machine"]["peak_gb_s"], 0);
  EXPECT_GT(report["machine"]["peak_gflop_s"], 0);
  std::set<std::pair<std::string, std::string>> seen;
  std::set<std::int64_t> rows;
  for (const Json& row : report["rows"]) {
    EXPECT_EQ(row["op"], "rms_norm");
    EXPECT_NE(row["provider"], "reference");
    EXPECT_TRUE(seen.emplace(row["call"], row["provider"]).second) << row;
    EXPECT_GT(row["best_us"], 0);
    EXPECT_GE(row["median_us"], row["best_us"]);
    EXPECT_TRUE(row["gflop_s"].is_null());
    EXPECT_FALSE(row.contains("cost"));
    rows.insert(row["rows"].get<std::int64_t>());
  }
  EXPECT_EQ(rows, (std::set<std::int64_t>{1, 7}));
}

TEST(BenchOps, CountsBytesAndOperationsOfTheCall) {
  const Json report = bench_json({"--op", "linear", "--provider", "cpu", "--rows", "3"});
  int found = 0;
  for (const Json& row : report["rows"]) {
    EXPECT_EQ(row["provider"], "cpu");
    if (row["call"] != "linear(f32[3, 576], f32[1536, 576], none)") continue;
    ++found;
    EXPECT_EQ(row["bytes"], 4 * (3 * 576 + 1536 * 576 + 3 * 1536));
    EXPECT_NEAR(row["gflop_s"].get<double>() * row["best_us"].get<double>(), 2e-3 * 3 * 576 * 1536, 1);
  }
  EXPECT_EQ(found, 1);
}

TEST(BenchOps, WritesEveryFormat) {
  const std::vector<std::string> words{"--op", "silu_and_mul", "--rows", "2", "-o"};
  const auto in_format = [&](const std::string& format) {
    std::vector<std::string> more = words;
    more.push_back(format);
    const ProgramRun run = bench(more);
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_EQ(run.err, "");
    return run.out;
  };
  const std::size_t count = Json::parse(in_format("json"))["rows"].size();
  EXPECT_GT(count, 0u);
  const std::vector<std::string> lines = lines_of(in_format("jsonl"));
  ASSERT_EQ(lines.size(), count);
  for (const std::string& line : lines) EXPECT_GT(Json::parse(line)["peak_gb_s"], 0);
  const std::vector<std::string> csv = lines_of(in_format("csv"));
  ASSERT_EQ(csv.size(), count + 1);
  EXPECT_EQ(csv[0].substr(0, 23), "cpu_info,cpu_features,n");
  const std::vector<std::string> markdown = lines_of(in_format("md"));
  ASSERT_EQ(markdown.size(), count + 4);
  EXPECT_NE(markdown[0].find("1 threads: reads "), std::string::npos) << markdown[0];
  for (std::size_t i = 2; i < markdown.size(); ++i)
    EXPECT_EQ(std::count(markdown[i].begin(), markdown[i].end(), '|'), 9) << markdown[i];
}

TEST(BenchOps, MeasuresTheReferenceWhereItIsNamedOrAlone) {
  const Json alone = bench_json({"--op", "tanh", "--rows", "2"});
  ASSERT_FALSE(alone["rows"].empty());
  for (const Json& row : alone["rows"]) EXPECT_EQ(row["provider"], "reference");
  const Json named = bench_json({"--op", "rms_norm", "--rows", "2", "--provider", "reference", "--op", "mul"});
  ASSERT_FALSE(named["rows"].empty());
  for (const Json& row : named["rows"]) EXPECT_EQ(row["provider"], "reference");
}

TEST(BenchOps, MeasuresWhatComesThroughPages) {
  const Json report = bench_json({"--op", "attention", "--op", "kv_cache_update", "--rows", "1,3"});
  std::set<std::string> ops;
  for (const Json& row : report["rows"]) ops.insert(row["op"].get<std::string>());
  EXPECT_EQ(ops, (std::set<std::string>{"attention", "kv_cache_update"}));
}

TEST(BenchOps, ReadsOfATableWhatIsPicked) {
  const Json report = bench_json({"--op", "embedding", "--rows", "3"});
  int found = 0;
  for (const Json& row : report["rows"]) {
    if (row["call"] != "embedding(i64[3], f32[40, 64], dtype=f32)") continue;
    ++found;
    EXPECT_EQ(row["bytes"], 3 * 8 + 2 * 3 * 64 * 4);
  }
  EXPECT_GT(found, 0);
}

TEST(BenchOps, SaysWhoRefusesACall) {
  const Json report = bench_json({"--op", "cast", "--provider", "cpu", "--rows", "1"});
  EXPECT_FALSE(report["refused"].empty());
  for (const Json& refusal : report["refused"]) {
    EXPECT_EQ(refusal["provider"], "cpu");
    EXPECT_NE(refusal["reason"], "");
    for (const Json& row : report["rows"]) EXPECT_NE(row["call"], refusal["call"]);
  }
}

// Its swizzled scales have one tile, which does not fit 300 rows.
TEST(BenchOps, LeavesSamplesAsTheyAreThatTakeNoOtherRows) {
  const Json report = bench_json({"--op", "linear_nvfp4", "--provider", "cpu", "--rows", "300"});
  for (const Json& row : report["rows"]) EXPECT_EQ(row["rows"], 300);
  bool has_swizzled = false;
  for (const Json& refused : report["refused"])
    has_swizzled |= refused["reason"] == "scales are swizzled" &&
                    refused["call"].get<std::string>().find("f4e2m1[1, 64], f8e4m3[1, 128, 4]") != std::string::npos;
  EXPECT_TRUE(has_swizzled) << report;
}

TEST(BenchOps, RefusesWhatThereIsNot) {
  EXPECT_EQ(breach_of_refusal(bench({"--op", "rms_nrom"}), "rms_norm"), "");
  EXPECT_EQ(breach_of_refusal(bench({"--provider", "cpuu"}), "did you mean \"cpu\"?"), "");
  EXPECT_EQ(breach_of_refusal(bench({"--op", "reshape"}), "[--op] reshape"), "");
  EXPECT_EQ(breach_of_refusal(bench({"-o", "xml"}), "[-o]"), "");
  EXPECT_EQ(breach_of_refusal(bench({"--opp", "x"}), "did you mean"), "");
}

TEST(BenchOps, RefusesNumbersOutOfRange) {
  for (const char* rows : {"0", "-1", "1,,2", "2.5", "65537", "9223372036854775807", "many"})
    EXPECT_EQ(breach_of_refusal(bench({"--op", "mul", "--rows", rows}), "[--rows]"), "") << rows;
  for (const char* rounds : {"0", "-1", "2.5", "1000001"})
    EXPECT_EQ(breach_of_refusal(run_weft({"bench", "ops", "--op", "mul", "-r", rounds}), "[-r]"), "") << rounds;
  for (const char* threads : {"-2", "1,2", "100000"})
    EXPECT_EQ(breach_of_refusal(run_weft({"bench", "ops", "--op", "mul", "-t", threads}), "threads"), "") << threads;
}

TEST(BenchOps, BatchInvarianceThatTakesNothingAwayCostsNothing) {
  const Json report = bench_json({"--op", "rms_norm", "--rows", "2", "--batch-invariant"});
  ASSERT_FALSE(report["rows"].empty());
  for (const Json& row : report["rows"]) {
    EXPECT_EQ(row["chosen"], row["chosen_without"]);
    EXPECT_EQ(row["cost"], 1.0);
  }
}

TEST(BenchOps, SaysWhatBatchInvarianceCosts) {
  const auto context = test_context();
  std::string variant;  // a provider whose kernel --batch-invariant removes
  for (const std::string& provider : context->kernels.providers("linear")) {
    const Kernel* kernel = context->kernels.find("linear", provider);
    if (kernel != nullptr && !kernel->batch_invariant && (variant.empty() || provider == "onednn")) variant = provider;
  }
  if (variant.empty()) GTEST_SKIP() << "every kernel of linear is batch-invariant in this program";
  const std::vector<std::string> words{"--op",   "linear", "--provider",        "cpu",
                                       "--rows", "4",      "--batch-invariant", "--ir-op-priority.linear=" + variant};
  const Json report = bench_json(words);
  int differ = 0;
  for (const Json& row : report["rows"]) {
    EXPECT_EQ(row["provider"], "cpu") << "only measured for the cost, but shown";
    EXPECT_NE(row["chosen"], variant);
    if (row["chosen_without"] != variant) continue;
    ++differ;
    EXPECT_GT(row["cost"].get<double>(), 0) << row;
  }
  EXPECT_GT(differ, 0);
  EXPECT_NE(report["switched_off"].dump().find("switches off " + variant + " for"), std::string::npos);
  const std::string last = lines_of(bench(words).out).back();
  EXPECT_NE(last.find("--batch-invariant switches off"), std::string::npos) << last;
}

TEST(BenchOps, TimesAreThoseOfTheClock) {
  const auto context = test_context("host", 1);
  OpBenchOptions options{.ops = {"add"}, .rows = {2}, .rounds = 3};
  double now = 0;
  options.clock = [&] { return now += 0.25; };
  int rows = 0;
  bench_ops(
      *context, options,
      [&](const OpBenchRow& row) {
        ++rows;
        EXPECT_EQ(row.seconds, std::vector<double>(3, 0.25));
        EXPECT_EQ(row.best(), 0.25);
        EXPECT_EQ(row.median(), 0.25);
      },
      [](const OpBenchRefusal&) {});
  EXPECT_GT(rows, 0);
}

TEST(BenchOps, ThePeakIsWhatTakesLonger) {
  const MeasuredPeaks peaks{
      .read_bytes = 100, .operations = 1000, .operations_of_16_bits = 2000, .operations_of_8_bits = 9000};
  EXPECT_EQ(peaks.percent(50, 0, DType::f32, 1), 50);
  EXPECT_EQ(peaks.percent(50, 900, DType::f32, 1), 90);
  EXPECT_EQ(peaks.percent(50, 1800, DType::bf16, 1), 90);
  EXPECT_EQ(peaks.percent(50, 1800, DType::f16, 1), 90);
  EXPECT_EQ(peaks.percent(0, 1800, DType::i8, 1), 20);
  EXPECT_EQ(peaks.percent(0, 1800, DType::f8e4m3, 1), 20);
  EXPECT_EQ(peaks.percent(50, 100, DType::f32, 2), 25);
}

}  // namespace weft::bench_ops_test
