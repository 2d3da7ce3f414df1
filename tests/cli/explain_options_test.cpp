// The report of `weft explain` about options that override each other, and that it is true.

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "builtin/models.h"
#include "tests/program_run.h"
#include "tests/sample_checkpoint.h"

namespace weft::explain_options_test {

class ExplainOfOptions : public ::testing::Test {
 protected:
  nlohmann::json explain(std::vector<std::string> flags, const std::map<std::string, std::string>& environment = {}) {
    flags.insert(flags.begin(), {"explain", model_, "--json", "--max-num-batched-tokens", "8"});
    const ProgramRun run = run_weft(flags, "", environment);
    EXPECT_EQ(run.status, 0) << run.err;
    return nlohmann::json::parse(run.out);
  }

  TemporaryFolder folder_;
  std::string model_ =
      SampleCheckpoint(make_model_registry().find("llama", "test")).write_gguf(folder_, "m.gguf", DType::q4_1);
};

TEST_F(ExplainOfOptions, AModeThatWasGivenIsCompiledAtLevelZero) {
  const nlohmann::json open = explain({"-O0"});
  EXPECT_EQ(open["options"]["effective"]["cc.mode"], "none");
  EXPECT_EQ(open["pieces"]["total"], 0);
  const nlohmann::json given = explain({"-O0", "-cc.mode=3"});
  EXPECT_EQ(given["options"]["effective"]["cc.mode"], "weft");
  EXPECT_EQ(given["options"]["differences"], nlohmann::json::array());
  EXPECT_GT(given["pieces"]["total"], 0);
  EXPECT_EQ(given["replay"]["mode"], "NONE");
  const nlohmann::json eager = explain({"-cc.mode=VLLM_COMPILE", "--enforce-eager"});
  EXPECT_EQ(eager["pieces"]["total"], 0);
  EXPECT_EQ(eager["options"]["differences"][0]["reason"], "--enforce-eager");
}

TEST_F(ExplainOfOptions, IsAPageToo) {
  const std::string page = folder_ / "page.html";
  const ProgramRun run = run_weft({"explain", model_, "--max-num-batched-tokens", "8", "--html", page});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.out, "");
  const std::string html = read_file(page, 1 << 24);
  const nlohmann::json report = explain({});
  for (const auto& [key, value] : report.items()) EXPECT_NE(html.find("<details id=\"" + key + "\""), html.npos) << key;
  EXPECT_NE(html.find("fuse_rope_kvcache"), html.npos);
  const std::vector<std::string> shared{"explain", model_, "--html"};
  const auto refused = [&](std::vector<std::string> words) {
    words.insert(words.begin(), shared.begin(), shared.end());
    return run_weft(words);
  };
  EXPECT_EQ(breach_of_refusal(refused({folder_ / "none/page.html"}), "[--html]"), "");
  EXPECT_EQ(breach_of_refusal(refused({page, "--json"}), "--json"), "");
  EXPECT_EQ(breach_of_refusal(refused({page, "--why-not", "act_quant"}), "--why-not"), "");
}

// A step that is measured is one after ready, with the options as they are.
TEST_F(ExplainOfOptions, AMeasuredStepIsAfterReady) {
  const auto captures = [](const nlohmann::json& report) { return report["replay"]["first_time"]["capture"]; };
  const nlohmann::json early = captures(explain({"--measure", "--forbid-lazy"}));
  EXPECT_GE(early["before_ready"], 2);
  EXPECT_EQ(early["after_ready"], 0);
  const nlohmann::json late = captures(explain({"--measure", "--capture", "lazy"}));
  EXPECT_EQ(late["before_ready"], 0);
  EXPECT_EQ(late["after_ready"], early["before_ready"]);
}

// Reports about stored code run the passes again; the model itself does nothing late.
TEST_F(ExplainOfOptions, WhatAReportNeedsIsNoLateWork) {
  const std::map<std::string, std::string> kept{{"WEFT_CACHE_ROOT", folder_ / "cache"}};
  for (const char* state : {"cold", "warm"}) {
    const nlohmann::json report = explain({"--forbid-lazy"}, kept);
    EXPECT_EQ(report["replay"]["first_time"]["compile"]["after_ready"], 0) << state;
    for (const char* verb : {"verify", "bisect"}) {
      const ProgramRun run =
          run_weft({verb, model_, "-p", "abc", "--max-num-batched-tokens", "8", "--forbid-lazy"}, "", kept);
      EXPECT_EQ(run.status, 0) << verb << ", " << state << ": " << run.err;
    }
  }
}

// Therefore the same code is not compiled again.
TEST_F(ExplainOfOptions, ABudgetThatMeasuresNothingIsInNoKey) {
  const std::map<std::string, std::string> environment{{"WEFT_CACHE_ROOT", folder_ / "cache"}};
  const auto run = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"explain", model_, "--json", "--max-num-batched-tokens", "8"});
    return run_weft(flags, "", environment);
  };
  EXPECT_EQ(nlohmann::json::parse(run({}).out)["cache"]["hit"], false);
  const ProgramRun again = run({"--tuning-budget", "2"});
  EXPECT_EQ(nlohmann::json::parse(again.out)["cache"]["hit"], true);
  EXPECT_EQ(again.err, "weft: [tuning-budget] has no effect in this run: no size is compiled exactly (command line)\n");
}

}  // namespace weft::explain_options_test
