#include "io/expert_config.h"

#include <gtest/gtest.h>

#include "tests/io/gguf_bytes.h"
#include "tests/io/tiny_config.h"
#include "tests/thrown_message.h"

namespace weft::expert_config_test {

using namespace tiny_config;
using nlohmann::json;

const ArchitectureFacts kFacts{.experts = ExpertFacts{.shared_width = "shared", .shared_count = "n_shared"}};

ModelConfig config_of(const json& changes, const ArchitectureFacts& facts = kFacts) {
  json all = tiny_json();
  all.update({{"num_hidden_layers", 4}, {"num_experts", 8}, {"num_experts_per_tok", 2}, {"moe_intermediate_size", 40}});
  all.update(changes);
  return model_config_from_json(all.dump(), "config.json", facts);
}

TEST(ExpertConfig, ReadsTheNumbersOfAMixture) {
  const ModelConfig config = config_of(
      {{"norm_topk_prob", true}, {"routed_scaling_factor", 2.5}, {"n_group", 4}, {"topk_group", 2}, {"shared", 24}});
  ASSERT_TRUE(config.experts.has_value());
  EXPECT_EQ(config.experts->count, 8);
  EXPECT_EQ(config.experts->used, 2);
  EXPECT_EQ(config.experts->width, 40);
  EXPECT_EQ(config.experts->shared_width, 24);
  EXPECT_EQ(config.experts->scale, 2.5);
  EXPECT_EQ(config.experts->groups, 4);
  EXPECT_EQ(config.experts->used_groups, 2);
  EXPECT_TRUE(config.experts->normalizes);
  EXPECT_EQ(config_of({{"n_shared", 3}}).experts->shared_width, 120);
  EXPECT_EQ(config_of({{"num_local_experts", 6}}).experts->count, 6) << "the newer key";
  EXPECT_FALSE(config_of({{"num_experts", 0}}).experts.has_value());
}

TEST(ExpertConfig, FindsTheLayersThatHaveExperts) {
  const auto layers = [](const json& changes) {
    const ModelConfig config = config_of(changes);
    std::string text;
    for (int layer = 0; layer < 4; ++layer) text += config.routes(layer) ? 'e' : 'd';
    return text;
  };
  EXPECT_EQ(layers(json::object()), "eeee");
  EXPECT_EQ(layers({{"first_k_dense_replace", 2}}), "ddee");
  EXPECT_EQ(layers({{"decoder_sparse_step", 2}}), "dede");
  EXPECT_EQ(layers({{"mlp_only_layers", {1, 3}}}), "eded");
  EXPECT_EQ(layers({{"decoder_sparse_step", 2}, {"mlp_only_layers", {3}}}), "dedd");
  EXPECT_EQ(layers({{"mlp_layer_types", {"dense", "sparse", "sparse", "dense"}}}), "deed");
}

TEST(ExpertConfig, FindsTheLayersByTheKeysOfTheArchitecture) {
  const ArchitectureFacts facts{
      .experts = ExpertFacts{.first = "start", .last = "end", .step = "interval", .layers = "listed"}};
  const auto layers = [&](const json& changes) {
    const ModelConfig config = config_of(changes, facts);
    std::string text;
    for (int layer = 0; layer < 4; ++layer) text += config.routes(layer) ? 'e' : 'd';
    return text;
  };
  EXPECT_EQ(layers({{"start", 1}}), "deee");
  EXPECT_EQ(layers({{"start", 1}, {"end", 2}}), "deed");
  EXPECT_EQ(layers({{"end", -1}}), "eeee");
  EXPECT_EQ(layers({{"start", 2}, {"interval", 2}}), "ddde");
  EXPECT_EQ(layers({{"interval", 2}, {"listed", {0, 3}}}), "edde");
  EXPECT_EQ(layers({{"listed", json::array()}}), "dddd");
  EXPECT_EQ(message_of([&] {
              config_of({{"listed", {1, 4}}}, facts);
            }),
            "[config.json] listed must be numbers of layers below 4, but has 4");
}

TEST(ExpertConfig, DescribesTheLayersByTheFirstOneAndAStep) {
  const auto layers = [](const json& changes) { return routed_layers(config_of(changes)); };
  EXPECT_EQ(layers(json::object()).first, 0);
  EXPECT_EQ(layers(json::object()).step, 1);
  EXPECT_EQ(layers({{"first_k_dense_replace", 2}}).first, 2);
  EXPECT_EQ(layers({{"decoder_sparse_step", 2}}).first, 1);
  EXPECT_EQ(layers({{"decoder_sparse_step", 2}}).step, 2);
}

TEST(ExpertConfig, ReadsAListWithOneNumberForAllLayers) {
  EXPECT_EQ(config_of({{"num_experts_per_tok", {3, 3, 3, 3}}}).experts->used, 3);
  EXPECT_EQ(message_of([&] {
              config_of({{"num_experts_per_tok", {3, 2}}});
            }),
            "[config.json] num_experts_per_tok must be one number for all layers, but is [3,2]");
}

TEST(ExpertConfig, NamesWhatContradicts) {
  const auto refusal = [](const json& changes) { return message_of([&] { config_of(changes); }); };
  EXPECT_EQ(refusal({{"mlp_layer_types", {"dense", "sparse", "sparse", "thin"}}}),
            "[config.json] mlp_layer_types must be dense or sparse, but has \"thin\"");
  EXPECT_EQ(refusal({{"num_experts_per_tok", 9}}),
            "[config.json] num_experts_per_tok must be at most num_experts 8, but is 9");
  EXPECT_NE(refusal({{"num_experts_per_tok", nullptr}}).find("wanted num_experts_per_tok"), std::string::npos);
  EXPECT_EQ(refusal({{"n_group", 3}}), "[config.json] n_group must divide num_experts 8, but is 3");
  EXPECT_EQ(refusal({{"n_group", 4}, {"topk_group", 5}}),
            "[config.json] topk_group must be at most n_group 4, but is 5");
}

TEST(ExpertConfig, RefusesAnotherChoiceThanTheArchitectures) {
  const ArchitectureFacts sigmoid{.experts = ExpertFacts{.scores = ExpertScores::sigmoid}};
  const auto refusal = [](const json& changes, const ArchitectureFacts& facts) {
    return message_of([&] { config_of(changes, facts); });
  };
  EXPECT_NE(refusal({{"scoring_func", "sigmoid"}}, kFacts).find("scoring_func must be softmax"), std::string::npos);
  EXPECT_NE(refusal({{"scoring_func", "softmax"}}, sigmoid).find("scoring_func must be sigmoid"), std::string::npos);
  EXPECT_NE(refusal({{"topk_method", "greedy"}}, sigmoid).find("topk_method must be noaux_tc"), std::string::npos);
  EXPECT_NE(refusal({{"moe_layer_freq", 2}}, kFacts).find("moe_layer_freq asks for"), std::string::npos);
  EXPECT_NE(refusal({{"n_group", 8}}, sigmoid).find("n_group must make groups of at least 2"), std::string::npos);
  EXPECT_EQ(config_of({{"topk_method", "noaux_tc"}, {"moe_layer_freq", 1}}, sigmoid).experts->groups, 1);
}

TEST(ExpertConfig, KeysOfOtherArchitecturesAreRefused) {
  const json experts{{"num_experts", 8}};
  json all = tiny_json();
  all.update(experts);
  EXPECT_NE(message_of([&] { model_config_from_json(all.dump(), "config.json", {}); }).find("num_experts asks for"),
            std::string::npos);
}

}  // namespace weft::expert_config_test
