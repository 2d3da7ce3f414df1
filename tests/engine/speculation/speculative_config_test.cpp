#include "engine/speculation/speculative_config.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace weft::speculative_config_test {

TEST(SpeculativeConfig, IsReadAsVllmWritesIt) {
  EXPECT_EQ(speculative_config("").num_speculative_tokens, 0);
  EXPECT_EQ(speculative_config(R"({"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_max": 4})"),
            (SpeculativeConfig{.num_speculative_tokens = 5, .prompt_lookup_max = 4, .prompt_lookup_min = 4}));
  EXPECT_EQ(speculative_config(
                R"({"method":"ngram","num_speculative_tokens":3,"prompt_lookup_max":4,"prompt_lookup_min":2})"),
            (SpeculativeConfig{.num_speculative_tokens = 3, .prompt_lookup_max = 4, .prompt_lookup_min = 2}));
  const SpeculativeConfig model{.num_speculative_tokens = 5, .model = "./small"};
  EXPECT_EQ(speculative_config(R"({"model": "./small", "num_speculative_tokens": 5})"), model);
  EXPECT_EQ(speculative_config(R"({"method": "draft_model", "model": "./small", "num_speculative_tokens": 5,)"
                               R"( "draft_tensor_parallel_size": 1})"),
            model);
}

TEST(SpeculativeConfig, IsReadFromTheFlagsOfOtherPrograms) {
  Options options;
  options.draft_model = "./small";
  EXPECT_EQ(speculative_config(options), (SpeculativeConfig{.num_speculative_tokens = 3, .model = "./small"}));
  options.speculative_config = R"({"method": "ngram", "num_speculative_tokens": 5})";
  EXPECT_THROW(speculative_config(options), UserError);
}

TEST(SpeculativeConfig, NamesWhatIsWrong) {
  for (const auto& [text, named] :
       {std::pair{R"({"method":"eagle","num_speculative_tokens":3})", "eagle"},
        {R"({"method":"ngram"})", "lacks"},
        {R"({"method":"ngram","num_speculative_tokens":0})", "num_speculative_tokens"},
        {R"({"method":"ngram","num_speculative_tokens":3,"model":"x"})", "model"},
        {R"({"method":"draft_model","num_speculative_tokens":3})", "model"},
        {R"({"model":7,"num_speculative_tokens":3})", "model"},
        {R"({"model":"x","num_speculative_tokens":3,"draft_tensor_parallel_size":2})", "draft_tensor_parallel_size"},
        {R"({"model":"x","num_speculative_tokens":3,"prompt_lookup_max":2})", "prompt_lookup_max"},
        {"[1]", "object"},
        {"{", "object"},
        {R"({"method":"ngram","num_speculative_tokens":3,"prompt_lookup_min":9,"prompt_lookup_max":2})",
         "prompt_lookup_min"}})
    try {
      speculative_config(text);
      ADD_FAILURE() << text;
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find(named), std::string::npos) << error.what();
    }
}

}  // namespace weft::speculative_config_test
