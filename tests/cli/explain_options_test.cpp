// What `weft explain` says of options that overrule each other, and that what it says is what happened.

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "builtin/models.h"
#include "tests/program_run.h"
#include "tests/sample_checkpoint.h"

namespace weft::explain_options_test {

class ExplainOfOptions : public ::testing::Test {
 protected:
  nlohmann::json explain(std::vector<std::string> flags) const {
    flags.insert(flags.begin(), {"explain", model_, "--json", "--max-num-batched-tokens", "8"});
    const ProgramRun run = run_weft(flags);
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

// So the same code is not compiled once more.
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
