// --load-format as a user sees it, for a folder that has only config.json.

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "builtin/models.h"
#include "tests/program_run.h"
#include "tests/sample_checkpoint.h"

namespace weft::load_format_verb_test {

class LoadFormatFlag : public ::testing::Test {
 protected:
  LoadFormatFlag() {
    std::filesystem::create_directory(model_);
    std::ofstream(model_ + "/config.json")
        << SampleCheckpoint(make_model_registry().find("llama", "test")).config_json();
  }
  ProgramRun run(std::vector<std::string> words) const {
    words.insert(words.end(), {"--load-format", "dummy"});
    return run_weft(words);
  }

  const TemporaryFolder folder_;
  const std::string model_ = folder_ / "model";
};

TEST_F(LoadFormatFlag, RunsWhatNeedsNoText) {
  const ProgramRun explained = run({"explain", model_, "--json"});
  ASSERT_EQ(explained.status, 0) << explained.err;
  EXPECT_GT(nlohmann::json::parse(explained.out)["memory"]["weights"].get<std::int64_t>(), 100'000);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"bench", "model", model_, "-p", "4", "-n", "2", "-r", "1"},
        {"bench", "startup", model_, "--once"},
        {"logits", model_, "--ids", "[1,2]"},
        {"dump", "plan", model_}}) {
    const ProgramRun ran = run(words);
    EXPECT_EQ(ran.status, 0) << words[0] << ": " << ran.err;
    EXPECT_NE(ran.out, "") << words[0];
  }
}

TEST_F(LoadFormatFlag, RefusesText) {
  EXPECT_EQ(breach_of_refusal(run({"complete", model_, "-p", "a"}), "wanted a tokenizer"), "");
  EXPECT_EQ(breach_of_refusal(run({"verify", model_}), "wanted a tokenizer"), "");
}

TEST_F(LoadFormatFlag, IsNeededWithoutWeights) {
  EXPECT_EQ(breach_of_refusal(run_weft({"explain", model_}), "model.safetensors"), "");
  EXPECT_EQ(breach_of_refusal(run_weft({"explain", model_, "--load-format", "dumy"}), "dummy"), "");
}

}  // namespace weft::load_format_verb_test
