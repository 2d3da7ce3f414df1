// The default model, if `make model` has fetched it: its greedy text is that of other engines.

#include <filesystem>
#include <iostream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/environment.h"
#include "base/files.h"
#include "builtin/models.h"
#include "tests/end_to_end/ceilings.h"
#include "tests/program_run.h"

namespace weft::real_model_test {

using Words = std::vector<std::string>;

constexpr std::size_t kTokens = 16;

class RealModel : public ::testing::Test {
 protected:
  RealModel() {
    const std::string path = root_ + "/" + builtin_models()[0].file;
    is_there_ = std::filesystem::exists(path);
    const nlohmann::json file =
        nlohmann::json::parse(read_file(WEFT_TEST_DATA "/parity/forward.json", std::size_t{64} << 20));
    for (const char* wanted : {"seven_tokens", "unicode"})
      for (const nlohmann::json& one : file.at("cases"))
        if (one.at("name") == wanted) cases_.push_back(one);
  }
  nlohmann::json complete(const nlohmann::json& one, const std::string& ceiling, const Words& more) const {
    Words words{"complete", builtin_models()[0].name,
                "-p",       one.at("text"),
                "-n",       std::to_string(kTokens),
                "--temp",   "0",
                "--json",   "--ignore-eos"};
    words.insert(words.end(), more.begin(), more.end());
    const ProgramRun run = run_weft(words, "", {{"WEFT_CPU_FEATURES", ceiling}, {"WEFT_MODELS_ROOT", root_}});
    EXPECT_EQ(run.status, 0) << run.err;
    return run.status == 0 ? nlohmann::json::parse(run.out) : nlohmann::json{{"tokens", nullptr}};
  }

  const std::string root_ = models_folder(process_environment());
  bool is_there_ = false;
  std::vector<nlohmann::json> cases_;
};

TEST_F(RealModel, GivesTheReferencesTextInExactModeOnEveryInstructionSet) {
  if (!is_there_) GTEST_SKIP() << "the model has not been fetched (make model)";
  ASSERT_EQ(cases_.size(), 2u);
  for (const std::string& ceiling : host_ceilings())
    for (const nlohmann::json& one : cases_) {
      const nlohmann::json answer = complete(one, ceiling, {"--activation-precision", "exact"});
      const std::vector<int> greedy = one.at("greedy_ids");
      EXPECT_EQ(answer.at("tokens"), std::vector<int>(greedy.begin(), greedy.begin() + kTokens)) << ceiling;
      EXPECT_TRUE(one.at("greedy_text").get<std::string>().starts_with(answer.at("text").get<std::string>()))
          << answer.at("text");
    }
  std::cout << "ceilings: " << host_ceilings().size() << "\n";
}

TEST_F(RealModel, GivesTheSameTextEagerAndCompiledInFastMode) {
  if (!is_there_) GTEST_SKIP() << "the model has not been fetched (make model)";
  for (const std::string& ceiling : host_ceilings()) {
    const nlohmann::json compiled = complete(cases_.at(0), ceiling, {});
    EXPECT_EQ(compiled.at("tokens").size(), kTokens);
    for (const Words& way : {Words{"--enforce-eager"}, Words{"--compile-to=lowered"}, Words{"-cc.splitting_ops=[]"}})
      EXPECT_EQ(complete(cases_.at(0), ceiling, way).at("text"), compiled.at("text")) << ceiling << " " << way[0];
  }
}

}  // namespace weft::real_model_test
