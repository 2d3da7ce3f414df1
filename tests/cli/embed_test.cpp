// `weft embed`.

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "builtin/models.h"
#include "tests/program_run.h"
#include "tests/sample_checkpoint.h"

namespace weft::embed_test {

using nlohmann::json;

class Embed : public ::testing::Test {
 protected:
  ProgramRun embed(std::vector<std::string> flags) const {
    flags.insert(flags.begin(), {"embed", model_, "-p", "hello"});
    return run_weft(flags);
  }

  const TemporaryFolder folder_;
  const std::string model_ =
      SampleCheckpoint(make_model_registry().find("qwen3", "test")).write_folder(folder_, "model", DType::bf16);
};

TEST_F(Embed, PrintsTheNumbersThatAreAskedFor) {
  const json whole = json::parse(embed({"--pooling", "mean", "--no-normalize"}).out);
  const json first = json::parse(embed({"--pooling", "mean", "--dimensions", "3", "--json"}).out);
  EXPECT_EQ(first["tokens"], 5);
  ASSERT_EQ(first["embedding"].size(), 3U);
  EXPECT_GT(whole.size(), 3U);
  const double ratio = whole[0].get<double>() / whole[1].get<double>();
  EXPECT_NEAR(first["embedding"][0].get<double>() / first["embedding"][1].get<double>(), ratio, 1e-4);
}

TEST_F(Embed, PoolsAsTheModelStates) {
  EXPECT_EQ(breach_of_refusal(embed({}), "[--pooling]"), "");
  EXPECT_EQ(breach_of_refusal(embed({"--pooling", "max"}), "last, mean, cls"), "");
  EXPECT_EQ(breach_of_refusal(embed({"--pooling", "mean", "--dimensions", "100000"}), "[--dimensions]"), "");
  std::ofstream(model_ + "/modules.json") << R"([{"type": "sentence_transformers.models.Pooling", "path": "pool"}])";
  EXPECT_EQ(breach_of_refusal(embed({}), "pool/config.json"), "");
  std::filesystem::create_directory(model_ + "/pool");
  std::ofstream(model_ + "/pool/config.json") << R"({"pooling_mode_cls_token": true})";
  EXPECT_EQ(embed({}).out, embed({"--pooling", "cls"}).out);
}

}  // namespace weft::embed_test
