// Values of a request win over those of generation_config.json.

#include "engine/sampling/sampling_request.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "builtin/models.h"
#include "tests/sample_checkpoint.h"
#include "tests/thrown_message.h"

namespace weft::sampling_request_test {

class SamplingOfRequest : public ::testing::Test {
 protected:
  SamplingParameters resolve(const SamplingRequest& request, const std::string& generation_config) const {
    std::ofstream(model_ + "/generation_config.json") << generation_config;
    return sampling_parameters(request, Checkpoint::open(model_), Log());
  }

  const TemporaryFolder folder_;
  const std::string model_ =
      SampleCheckpoint(make_model_registry().find("llama", "test")).write_folder(folder_, "model", DType::f32);
};

constexpr const char* kAll =
    R"({"temperature": 0.5, "top_k": 7, "top_p": 0.9, "min_p": 0.125, "repetition_penalty": 1.5})";

TEST_F(SamplingOfRequest, TakesWhatItDoesNotGiveFromTheModel) {
  const SamplingParameters all = resolve({}, kAll);
  EXPECT_EQ(all.temperature, 0.5);
  EXPECT_EQ(all.top_k, 7);
  EXPECT_EQ(all.top_p, 0.9);
  EXPECT_EQ(all.min_p, 0.125);
  EXPECT_EQ(all.repetition_penalty, 1.5);
  const SamplingParameters some = resolve({.parameters = {.temperature = 0, .top_k = 3}, .given = {"top_k"}}, kAll);
  EXPECT_EQ(some.top_k, 3);
  EXPECT_EQ(some.temperature, 0.5) << "zero is the default, and not given";
}

TEST_F(SamplingOfRequest, HasTheDefaultsOfItsInterfaceWhereTheModelSaysNothing) {
  const SamplingRequest request{.parameters = {.temperature = 1, .top_k = 9}};
  const SamplingParameters some = resolve(request, R"({"top_k": 7})");
  EXPECT_EQ(some.temperature, 1);
  EXPECT_EQ(some.top_k, 7);
  EXPECT_EQ(resolve(request, R"({"do_sample": false, "top_k": 7})").temperature, 1);
}

TEST_F(SamplingOfRequest, DoesNotReadKeysThatItGives) {
  const char* wrong = R"({"top_k": "many"})";
  EXPECT_EQ(resolve({.parameters = {.top_k = 3}, .given = {"top_k"}}, wrong).top_k, 3);
  EXPECT_NE(message_of([&] { resolve({}, wrong); }).find("top_k"), std::string::npos);
}

TEST_F(SamplingOfRequest, ReadsNoGenerationConfigIfItSaysSo) {
  for (const char* none : {"none", "vllm"}) {
    const SamplingRequest request{.parameters = {.top_k = 3}, .given = {}, .config = {.from = none}};
    const SamplingParameters parameters = resolve(request, kAll);
    EXPECT_EQ(parameters.top_k, 3);
    EXPECT_EQ(parameters.temperature, 0);
  }
}

TEST_F(SamplingOfRequest, ReadsTheGenerationConfigOfAnotherFolder) {
  std::filesystem::create_directory(folder_ / "other");
  std::ofstream(folder_ / "other/generation_config.json") << R"({"top_k": 11})";
  const SamplingParameters parameters = resolve({.config = {.from = folder_ / "other"}}, kAll);
  EXPECT_EQ(parameters.top_k, 11);
  EXPECT_EQ(parameters.temperature, 0);
  const std::string missing = message_of([&] { resolve({.config = {.from = folder_ / "nothing"}}, kAll); });
  EXPECT_NE(missing.find("[--generation-config]"), std::string::npos) << missing;
}

TEST_F(SamplingOfRequest, OverridesWinOverTheFileAndYieldToWhatIsGiven) {
  const GenerationConfigSource source{.overrides = R"({"temperature": 0.25, "top_k": 5, "min_p": null})"};
  const SamplingRequest request{.parameters = {.top_k = 3}, .given = {"top_k"}, .config = source};
  const SamplingParameters parameters = resolve(request, R"({"temperature": "hot", "top_p": 0.9, "min_p": 0.5})");
  EXPECT_EQ(parameters.temperature, 0.25);
  EXPECT_EQ(parameters.top_k, 3);
  EXPECT_EQ(parameters.top_p, 0.9);
  EXPECT_EQ(parameters.min_p, 0.5);
  EXPECT_EQ(resolve({.config = source}, R"({"do_sample": false})").temperature, 0.25);
  const GenerationConfigSource length{.overrides = R"({"max_new_tokens": 7})"};
  EXPECT_EQ(resolve({.config = length}, R"({"max_new_tokens": 9})").max_tokens, 7);
  EXPECT_EQ(resolve({.parameters = {.max_tokens = 3}, .given = {"max_new_tokens"}, .config = length}, "{}").max_tokens,
            3);
  EXPECT_EQ(resolve({.parameters = {.max_tokens = 5}}, R"({"max_new_tokens": 9})").max_tokens, 5) << "of the interface";
  for (const char* wrong : {R"({"max_length": 3})", R"({"max_new_tokens": 0})", R"({"top_k": "many"})", "[]", "{",
                            R"({"temperature": -1})"}) {
    const std::string message = message_of([&] { resolve({.config = {.overrides = wrong}}, "{}"); });
    EXPECT_NE(message.find("[--override-generation-config]"), std::string::npos) << wrong << message;
  }
}

TEST_F(SamplingOfRequest, IsCheckedAsAWhole) {
  const SamplingRequest request{.parameters = {.temperature = -1}, .given = {"temperature"}};
  EXPECT_NE(message_of([&] { resolve(request, "{}"); }).find("[temperature]"), std::string::npos);
}

}  // namespace weft::sampling_request_test
