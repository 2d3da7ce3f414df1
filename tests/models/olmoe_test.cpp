#include <cmath>

#include <gtest/gtest.h>

#include "builtin/models.h"
#include "tests/sample_checkpoint.h"
#include "tests/thrown_message.h"

namespace weft::olmoe_test {

ModelConfig config_of(const ModelDefinition& model, const nlohmann::json& limit) {
  return SampleCheckpoint(model, {{"clip_qkv", limit}}).config();
}

TEST(Olmoe, LimitsNothingUnlessTheConfigDoes) {
  const ModelDefinition model = make_model_registry().find("olmoe", "test");
  EXPECT_TRUE(std::isinf(config_of(model, nullptr).query_key_value_limit));
  EXPECT_EQ(config_of(model, 0).query_key_value_limit, 0) << "as in transformers";
  EXPECT_EQ(config_of(model, 8.5).query_key_value_limit, 8.5);
}

TEST(Olmoe, HasNoLimitOfAGgufFileThatStatesZero) {
  const ModelDefinition model = make_model_registry().find("olmoe", "test");
  const TemporaryFolder temporary;
  const auto limit_in_file = [&](const nlohmann::json& limit) {
    const SampleCheckpoint sample(model, {{"clip_qkv", limit}});
    return Checkpoint::open(sample.write_gguf(temporary, "m.gguf", DType::f32))
        .config(model.facts)
        .query_key_value_limit;
  };
  EXPECT_TRUE(std::isinf(limit_in_file(nullptr)));
  EXPECT_TRUE(std::isinf(limit_in_file(0))) << "as in llama.cpp";
  EXPECT_EQ(limit_in_file(8.5), 8.5);
}

TEST(Olmoe, RefusesALimitBelowZero) {
  const ModelDefinition model = make_model_registry().find("olmoe", "test");
  EXPECT_NE(message_of([&] { model.check(config_of(model, -1)); }).find("clip_qkv must be at least 0, but is -1"),
            std::string::npos);
}

}  // namespace weft::olmoe_test
