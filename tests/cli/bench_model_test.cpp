// weft bench model --breakdown as a user sees it. No test depends on times.

#include <algorithm>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "builtin/models.h"
#include "tests/program_run.h"
#include "tests/sample_checkpoint.h"

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

TEST_F(BenchModel, HasNoBreakdownWithoutPlans) {
  EXPECT_EQ(breach_of_refusal(bench({"--breakdown", "--enforce-eager"}), "[--breakdown]"), "");
}

}  // namespace weft::bench_model_test
