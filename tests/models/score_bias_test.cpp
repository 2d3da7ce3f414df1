// Families whose attention has a bias of its scores: ALiBi, and the learned biases of MPNet.

#include "nn/score_bias.h"

#include <gtest/gtest.h>

#include "builtin/models.h"
#include "tests/sample_checkpoint.h"
#include "tests/thrown_message.h"

namespace weft::score_bias_test {

using nlohmann::json;

class ScoreBias : public ::testing::Test {
 protected:
  ModelConfig config_of(const std::string& architecture, const json& changes = json::object()) const {
    return SampleCheckpoint(models_.find(architecture, "test"), changes).config();
  }
  std::string refusal(const std::string& architecture, const json& changes) const {
    return message_of([&] { models_.find(architecture, "test").check(config_of(architecture, changes)); });
  }

  const ModelRegistry models_ = make_model_registry();
};

// transformers' build_alibi_tensor of BLOOM and build_mpt_alibi_tensor of MPT give the same.
TEST_F(ScoreBias, OfAlibiHasTheSlopesOfTransformers) {
  EXPECT_EQ(nn::alibi_slopes(4, 8), (std::vector<float>{0.25F, 0.0625F, 0.015625F, 0.00390625F}));
  EXPECT_EQ(nn::alibi_slopes(6, 8), (std::vector<float>{0.25F, 0.0625F, 0.015625F, 0.00390625F, 0.5F, 0.125F}));
  const std::vector<float> twelve = nn::alibi_slopes(12, 8);
  EXPECT_EQ(twelve[7], 0.00390625F);
  EXPECT_FLOAT_EQ(twelve[8], 0.70710678F);
  EXPECT_FLOAT_EQ(twelve[11], 0.0883883387F);
}

TEST_F(ScoreBias, OfAlibiIsTheDistanceTimesTheSlopeInTheWholeContext) {
  ModelConfig config = config_of("bloom", {{"max_position_embeddings", 5}});
  ASSERT_EQ(nn::reach_of_biases(config), 5);
  std::vector<float> table(4 * 9);
  nn::fill_alibi(config, table.data());
  EXPECT_EQ(std::vector<float>(table.begin(), table.begin() + 9),
            (std::vector<float>{-1, -0.75F, -0.5F, -0.25F, 0, -0.25F, -0.5F, -0.75F, -1}));
  config.alibi_factor = 0.5;
  nn::fill_alibi(config, table.data());
  EXPECT_EQ(table[0], -0.5F);
}

// The first distance of each bucket of keys after the query, and the last one of those before it: recorded from
// transformers' MPNetEncoder.relative_position_bucket.
TEST_F(ScoreBias, OfMpnetHasTheBucketsOfTransformers) {
  const std::pair<std::int64_t, std::int64_t> after[] = {{0, 0},   {1, 17},  {2, 18},  {3, 19},  {4, 20},      {5, 21},
                                                         {6, 22},  {7, 23},  {8, 24},  {12, 25}, {16, 26},     {23, 27},
                                                         {32, 28}, {46, 29}, {64, 30}, {91, 31}, {1 << 20, 31}};
  for (std::size_t i = 0; i + 1 < std::size(after); ++i)
    for (std::int64_t distance = after[i].first; distance < std::min<std::int64_t>(after[i + 1].first, 300);
         ++distance) {
      EXPECT_EQ(nn::bucket_of_distance(distance, 32), after[i].second) << distance;
      EXPECT_EQ(nn::bucket_of_distance(-distance, 32), after[i].second % 16) << -distance;
    }
  EXPECT_EQ(nn::bucket_of_distance(105, 48), 46);
  EXPECT_EQ(nn::bucket_of_distance(106, 48), 47);
}

TEST_F(ScoreBias, OfMpnetReachesTheDistanceFromWhichAllAreEqual) {
  const ModelConfig config = config_of("mpnet");
  const std::int64_t columns = 2 * nn::reach_of_biases(config) - 1;
  std::vector<float> of_buckets, table(static_cast<std::size_t>(4 * columns));
  for (int i = 0; i < 32 * 4; ++i) of_buckets.push_back(static_cast<float>(i));
  nn::fill_learned_biases(config, of_buckets, table.data());
  for (const std::int64_t distance : {-128, -1, 0, 5, 128})
    EXPECT_EQ(table[static_cast<std::size_t>(3 * columns + distance + columns / 2)],
              static_cast<float>(nn::bucket_of_distance(distance, 32) * 4 + 3));
  for (const std::int64_t distance : {129, 1000})
    EXPECT_EQ(nn::bucket_of_distance(distance, 32), nn::bucket_of_distance(128, 32));
  EXPECT_NE(refusal("mpnet", {{"relative_attention_num_buckets", 30}}).find("must be a multiple of 4"),
            std::string::npos);
}

TEST_F(ScoreBias, OfMptIsStatedByAnInnerObject) {
  const auto with = [](const json& attention) { return json{{"attn_config", attention}}; };
  EXPECT_EQ(config_of("mpt", with({{"alibi_bias_max", 6}})).alibi_bias_max, 6);
  const ModelConfig usual = config_of("mpt", with(json::object()));
  EXPECT_EQ(usual.alibi_bias_max, 8);
  EXPECT_TRUE(std::isinf(usual.query_key_value_limit));
  EXPECT_EQ(usual.attention_scale, 0.25);
  EXPECT_EQ(usual.rope_of(0), nullptr);
  EXPECT_EQ(usual.unknown_keys, std::vector<std::string>());
  EXPECT_EQ(config_of("mpt", with({{"softmax_scale", 0.5}})).attention_scale, 0.5);
  EXPECT_EQ(config_of("mpt", with({{"clip_qkv", 2}})).query_key_value_limit, 2);
  EXPECT_EQ(config_of("mpt", {{"expansion_ratio", 2}}).intermediate_size, 128);
  EXPECT_EQ(refusal("mpt", with(json::object())), "");
  for (const json& attention : {json{{"alibi", false}},
                                {{"qk_ln", true}},
                                {{"prefix_lm", true}},
                                {{"attn_type", "multiquery_attention"}},
                                {{"clip_qkv", -1}},
                                {{"alibi_bias_max", -1}}})
    EXPECT_NE(refusal("mpt", with(attention)), "") << attention;
  EXPECT_NE(refusal("mpt", {{"no_bias", false}}), "");
  EXPECT_NE(refusal("mpt", {{"logit_scale", 2}}), "");
}

TEST_F(ScoreBias, OfFalconIsInTheOlderFormWithLayersOfEitherKind) {
  const json older{{"new_decoder_architecture", false}, {"num_key_value_heads", nullptr}, {"multi_query", false}};
  json changes = older;
  EXPECT_FALSE(config_of("falcon", changes).has_score_bias());
  EXPECT_TRUE(config_of("falcon", changes).is_parallel);
  changes.update({{"alibi", true}, {"parallel_attn", false}});
  const ModelConfig config = config_of("falcon", changes);
  EXPECT_EQ(config.alibi_factor, 0.25);
  EXPECT_EQ(config.rope_of(0), nullptr);
  EXPECT_FALSE(config.is_parallel);
  EXPECT_EQ(refusal("falcon", changes), "");
  EXPECT_NE(refusal("falcon", {{"parallel_attn", false}}).find("parallel_attn must be true"), std::string::npos);
}

}  // namespace weft::score_bias_test
