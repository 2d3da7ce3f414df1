// weft bench model --breakdown as a user sees it. No test depends on times.

#include <algorithm>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "apps/cli/bench/share.h"
#include "builtin/models.h"
#include "engine/compile/model_plan.h"
#include "tests/program_run.h"
#include "tests/sample_checkpoint.h"
#include "tests/test_context.h"

namespace weft::bench_model_test {

using Json = nlohmann::json;

class BenchModel : public ::testing::Test {
 protected:
  ProgramRun bench(std::vector<std::string> more) {
    more.insert(more.begin(), {"bench", "model", model_, "-p", "6", "-n", "3", "-r", "2"});
    return run_weft(more);
  }

  TemporaryFolder folder_;
  std::string model_ =
      SampleCheckpoint(make_model_registry().find("llama", "test")).write_gguf(folder_, "m.gguf", DType::q4_1);
};

TEST_F(BenchModel, SharesAStepAmongKernelsBarriersAndTheRest) {
  for (const char* mode : {"FULL", "PIECEWISE", "NONE"}) {
    const ProgramRun run = bench({"--json", "--breakdown", "-t", "2,1", std::string("-cc.cudagraph_mode=") + mode});
    ASSERT_EQ(run.status, 0) << run.err;
    const Json rows = Json::parse(run.out);
    ASSERT_EQ(rows.size(), 4u);
    for (const Json& row : rows) {
      const double step = row["step_ns"];
      double sum = 0, percent = 0, calls = 0;
      for (const std::string part : {"kernels", "barriers", "rest"}) {
        EXPECT_GE(row["step_" + part + "_ns"], 0) << part;
        sum += row["step_" + part + "_ns"].get<double>();
        percent += row["step_" + part + "_percent"].get<double>();
      }
      EXPECT_NEAR(sum, step, 1e-6 * step);
      EXPECT_NEAR(percent, 100, 1e-6);
      EXPECT_GT(row["step_plain_ns"], 0);
      EXPECT_EQ(row["samples_ns"].size(), 2u);
      EXPECT_LE(row["step_runs"], row["n_threads"] == 1 ? 0 : 1e9);
      for (const Json& kernel : row["kernels"]) calls += kernel["calls"].get<double>();
      EXPECT_NEAR(calls, row["step_launches"], 1e-6);
      if (row["n_threads"] == 1) {
        EXPECT_EQ(row["step_barriers_ns"], 0);
      }
    }
  }
}

TEST_F(BenchModel, SaysNothingOfItUnlessAsked) {
  const ProgramRun run = bench({"-o", "jsonl", "-t", "1"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.out.find("step_"), std::string::npos);
  const ProgramRun table = bench({"--breakdown", "-t", "1"});
  ASSERT_EQ(table.status, 0) << table.err;
  for (const char* text : {"pp6, 1 threads: a step of", "tg3, 1 threads: a step of", "barriers, us", "linear_int8@"})
    EXPECT_NE(table.out.find(text), std::string::npos) << text << " in " << table.out;
}

TEST_F(BenchModel, SaysWhoEmulatesADevice) {
  const ProgramRun run = run_weft({"bench", "model", model_, "--device", "fake-cuda", "-cc.cudagraph_mode", "NONE",
                                   "-p", "2", "-n", "0", "-r", "1", "--no-warmup"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.err.find("fake-cuda:0 is emulated: times are of the host"), std::string::npos) << run.err;
  EXPECT_NE(run.out.find("CPU, emulating fake-cuda:0"), std::string::npos) << run.out;
}

TEST_F(BenchModel, RunsSeveralSequencesInEachStep) {
  const ProgramRun run = bench({"-npl", "1,3", "-d", "2", "-o", "json", "-t", "1"});
  ASSERT_EQ(run.status, 0) << run.err;
  const Json rows = Json::parse(run.out);
  ASSERT_EQ(rows.size(), 4u);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double sequences = i < 2 ? 1 : 3;
    EXPECT_EQ(rows[i]["n_parallel"], sequences);
    // The rate counts the tokens of all sequences.
    const double tokens = sequences * (rows[i]["n_prompt"].get<double>() + rows[i]["n_gen"].get<double>());
    const double time = rows[i]["samples_ns"][0], rate = rows[i]["samples_ts"][0];
    EXPECT_NEAR(rate * time / 1e9, tokens, 1e-6 * tokens);
  }
  EXPECT_NE(bench({"-npl", "2", "-t", "1"}).out.find("tg3 x 2"), std::string::npos);
  EXPECT_EQ(breach_of_refusal(bench({"-npl", "0"}), "[-npl]"), "");
  EXPECT_EQ(breach_of_refusal(bench({"-npl", "5", "--max-num-seqs", "4"}), "[-npl]"), "");
}

TEST_F(BenchModel, HasTheShareOfWhatTheMachineAllows) {
  const ProgramRun run = bench({"--json", "-npl", "1,2", "-d", "0,5"});
  ASSERT_EQ(run.status, 0) << run.err;
  const Json rows = Json::parse(run.out);
  ASSERT_EQ(rows.size(), 8U);
  for (const Json& row : rows) {
    EXPECT_GT(row["peak_percent"], 0);
    EXPECT_TRUE(row["peak_limit"] == "bandwidth" || row["peak_limit"] == "operations") << row;
    for (const char* peak :
         {"peak_bytes_s", "peak_operations_s", "peak_operations_s_16_bits", "peak_operations_s_8_bits"})
      EXPECT_GT(row[peak], 0) << peak;
  }
  const ProgramRun table = bench({"-t", "2,1"});
  EXPECT_NE(table.out.find("% of peak"), std::string::npos) << table.out;
  for (const char* peaks : {"\npeak with 2 threads: ", "\npeak with 1 threads: "})
    EXPECT_NE(table.out.find(peaks), std::string::npos) << table.out;
}

TEST_F(BenchModel, HasNoShareOnADeviceThatIsNotMeasured) {
  const ProgramRun run = bench({"--json", "--device", "fake-cuda"});
  ASSERT_EQ(run.status, 0) << run.err;
  for (const Json& row : Json::parse(run.out)) {
    EXPECT_TRUE(row["peak_percent"].is_null());
    EXPECT_TRUE(row["peak_limit"].is_null());
    EXPECT_TRUE(row["peak_bytes_s"].is_null());
  }
  EXPECT_EQ(bench({"--device", "fake-cuda"}).out.find("peak with"), std::string::npos);
}

// The least time by hand: a step of generation reads the weights and the pages at the given rates.
TEST_F(BenchModel, TheLeastTimeIsThatOfItsSteps) {
  const auto context = test_context();
  ModelCompilation model(context, Checkpoint::open(model_), make_model_registry());
  model.compile();
  const PeakRates peaks{.bytes = {1e9, ""},
                        .operations = {1e30, ""},
                        .operations_of_16_bits = {1e30, ""},
                        .operations_of_8_bits = {1e30, ""}};
  const LeastTime two = least_time(model, {.generated = 2, .depth = 4, .sequences = 3}, peaks);
  double bytes = 0;
  for (const std::int64_t depth : {4, 5})
    bytes += static_cast<double>(planned_step(model, Phase::decode, 3, depth, 3).work.least_bytes());
  EXPECT_NEAR(two.seconds, bytes / 1e9, 1e-9 * bytes / 1e9);
  EXPECT_EQ(two.limit, "bandwidth");
  EXPECT_EQ(least_time(model, {.prompt = 4}, PeakRates{}).limit, "");
  EXPECT_EQ(
      (BenchSamples{
          .test = {}, .time = "", .nanoseconds = {1'000'000'000, 3'000'000'000}, .least = {.seconds = 1, .limit = ""}}
           .percent_of_peak()),
      50);
}

TEST_F(BenchModel, HasNoBreakdownWithoutPlans) {
  EXPECT_EQ(breach_of_refusal(bench({"--breakdown", "--enforce-eager"}), "[--breakdown]"), "");
}

}  // namespace weft::bench_model_test
