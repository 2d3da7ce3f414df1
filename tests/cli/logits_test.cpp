// weft logits over logits that are infinite, and over those that are not numbers.

#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "apps/cli/session.h"
#include "builtin/models.h"
#include "engine/sampling/logprobs.h"
#include "tests/program_run.h"
#include "tests/sample_checkpoint.h"

namespace weft::logits_test {

class LogitsVerb : public ::testing::Test {
 protected:
  std::string written(const SampleCheckpoint& sample) {
    return sample.write_folder(folder_, "m" + std::to_string(count_++), DType::f32);
  }

  SampleCheckpoint sample_{make_model_registry().find("llama", "test"), {{"torch_dtype", "float32"}}};
  const TemporaryFolder folder_;
  int count_ = 0;
};

TEST_F(LogitsVerb, RefusesNan) {
  sample_.multiply("lm_head.weight", std::numeric_limits<float>::quiet_NaN());
  const std::string model = written(sample_);
  for (const std::vector<std::string>& words : {std::vector<std::string>{"logits", model, "--ids", "[1,2,3]"},
                                                {"logits", model, "-p", "abc", "--perplexity"},
                                                {"complete", model, "-p", "abc", "-n", "2", "--json"}})
    EXPECT_EQ(breach_of_refusal(run_weft(words), "[logits] some are not numbers (NaN)"), "") << words[0];
}

TEST_F(LogitsVerb, RefusesPositionsThatTheTextDoesNotHave) {
  const std::string model = written(sample_);
  for (const std::string word : {"foo", "3", "-1", "99"})
    EXPECT_EQ(breach_of_refusal(run_weft({"logits", model, "--ids", "[1,2,3]", "--positions", "0," + word}),
                                "must be last, all or positions in [0, 3), but holds \"" + word + "\""),
              "");
}

TEST_F(LogitsVerb, RefusesPositionsOfAPerplexity) {
  const std::vector<std::string> words{"logits", "m", "-p", "abc", "--perplexity", "--positions", "all"};
  for (const char* name : {"--perplexity", "--positions"}) EXPECT_EQ(breach_of_refusal(run_weft(words), name), "");
}

TEST_F(LogitsVerb, RanksInfinitiesFirst) {
  // One product for each row, of either sign, so that infinities of two signs are never added.
  for (std::int64_t row = 0; row < 64; ++row) {
    sample_.set_row("lm_head.weight", row, row, 3e38F);
    sample_.set_row("lm_head.weight", 64 + row, row, -3e38F);
  }
  const ProgramRun run = run_weft({"logits", written(sample_), "--ids", "[1,2,3]", "--top-k", "257"});
  ASSERT_EQ(run.status, 0) << run.err;
  const auto line = nlohmann::json::parse(run.out);
  EXPECT_EQ(line["log_sum_exp"], "inf");
  double before = INFINITY;
  bool has_infinite = false;
  for (const auto& [id, logit] : line["top"].get<std::vector<std::pair<int, nlohmann::json>>>()) {
    const double value = logit == "inf" ? INFINITY : logit == "-inf" ? -INFINITY : logit.get<double>();
    EXPECT_LE(value, before);
    has_infinite = has_infinite || logit == "inf";
    before = value;
  }
  EXPECT_TRUE(has_infinite);
}

TEST(NegativeLogLikelihood, OfInfiniteLogitsIsThatOfTheirShare) {
  const std::vector<float> logits = {1, INFINITY, INFINITY};
  EXPECT_EQ(negative_log_likelihood(logits, 1), std::log(2.0));
  EXPECT_EQ(negative_log_likelihood(logits, 0), INFINITY);
  const std::vector<float> plain = {0, 0};
  EXPECT_NEAR(negative_log_likelihood(plain, 0), std::log(2.0), 1e-12);
}

}  // namespace weft::logits_test
