#include "io/rope_config.h"

#include <cmath>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/io/tiny_config.h"

namespace weft::rope_config_test {

using namespace tiny_config;

RopeConfig rope_of(const json& scaling, const char* key = "rope_scaling") {
  auto config = tiny_json();
  config[key] = scaling;
  return read(config).rope;
}

std::string rope_refusal(const json& scaling) { return refusal("rope_scaling", scaling); }

TEST(RopeConfig, ReadsEveryRopeScaling) {
  EXPECT_EQ(rope_of({{"type", "default"}}).scaling.type, RopeScalingType::none);
  const auto dynamic = rope_of({{"type", "dynamic"}, {"factor", 2.0}}).scaling;
  EXPECT_EQ(dynamic.type, RopeScalingType::dynamic);
  EXPECT_EQ(dynamic.original_context_length, 128);
  EXPECT_EQ(rope_of({{"type", "dynamic"}, {"factor", 2.0}, {"original_max_position_embeddings", 64}})
                .scaling.original_context_length,
            128)
      << "as in transformers";
  EXPECT_EQ(rope_of({{"type", "dynamic"}, {"alpha", 8.0}}).scaling.alpha, 8);
  const auto llama3 = rope_of({{"rope_type", "llama3"},
                               {"factor", 32.0},
                               {"low_freq_factor", 1.0},
                               {"high_freq_factor", 4.0},
                               {"original_max_position_embeddings", 64}})
                          .scaling;
  EXPECT_EQ(llama3.type, RopeScalingType::llama3);
  EXPECT_EQ(llama3.factor, 32);
  EXPECT_EQ(llama3.low_freq_factor, 1);
  EXPECT_EQ(llama3.high_freq_factor, 4);
  EXPECT_EQ(llama3.original_context_length, 64);
  const auto yarn = rope_of({{"rope_type", "yarn"},
                             {"factor", 4.0},
                             {"original_max_position_embeddings", 64},
                             {"beta_fast", 16},
                             {"beta_slow", 2},
                             {"truncate", false},
                             {"attention_factor", 1.25},
                             {"mscale", 1.0},
                             {"mscale_all_dim", 0.5}},
                            "rope_parameters")
                        .scaling;
  EXPECT_EQ(yarn.type, RopeScalingType::yarn);
  EXPECT_EQ(yarn.beta_fast, 16);
  EXPECT_EQ(yarn.beta_slow, 2);
  EXPECT_FALSE(yarn.truncate);
  EXPECT_EQ(yarn.attention_factor, 1.25);
  EXPECT_EQ(yarn.mscale, 1.0);
  EXPECT_EQ(yarn.mscale_all_dim, 0.5);
  for (const auto type : {RopeScalingType::none, RopeScalingType::linear, RopeScalingType::dynamic,
                          RopeScalingType::llama3, RopeScalingType::yarn})
    EXPECT_NE(rope_scaling_text(type), "");
}

// As the README files of Qwen 2.5 and 3 say to extend the context.
TEST(RopeConfig, YarnExtendsTheContextThatItNames) {
  const auto context = [](const json& more) {
    auto config = tiny_json();
    config["rope_scaling"] = {{"rope_type", "yarn"}, {"factor", 4.0}};
    config["rope_scaling"].update(more);
    return read(config).context_length;
  };
  EXPECT_EQ(context({{"original_max_position_embeddings", 128}}), 512);
  EXPECT_EQ(context({{"original_max_position_embeddings", 16}}), 128) << "the config has counted the factor";
  EXPECT_EQ(context(json::object()), 128);
  EXPECT_EQ(rope_of({{"type", "mrope"}, {"mrope_section", {2, 3, 3}}}).scaling.type, RopeScalingType::none);
}

TEST(RopeConfig, TheTrainedContextIsThatOutsideOfTheScaling) {
  const auto trained = [](const json& inside, const json& outside) {
    auto config = tiny_json();
    config["rope_scaling"] = {{"rope_type", "llama3"}, {"factor", 8}, {"low_freq_factor", 1}, {"high_freq_factor", 4}};
    if (!inside.is_null()) config["rope_scaling"]["original_max_position_embeddings"] = inside;
    if (!outside.is_null()) config["original_max_position_embeddings"] = outside;
    return read(config).rope.scaling.original_context_length;
  };
  EXPECT_EQ(trained(64, nullptr), 64);
  EXPECT_EQ(trained(64, 32), 32);
  EXPECT_EQ(trained(nullptr, 32), 32);
  EXPECT_EQ(trained(nullptr, nullptr), 128) << "that of the model";
}

TEST(RopeConfig, TheOlderKeyCountsIfThereAreBoth) {
  auto config = tiny_json();
  config["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 1e6}};
  config["rope_scaling"] = {{"rope_type", "yarn"}, {"factor", 4.0}};
  const ModelConfig both = read(config);
  EXPECT_EQ(both.rope.scaling.type, RopeScalingType::yarn);
  EXPECT_EQ(both.warnings.size(), 1U);
  config["rope_scaling"] = nullptr;
  EXPECT_EQ(read(config).rope.theta, 1e6);
}

// Without a key, and with null in its place.
TEST(RopeConfig, TakesTheFamilysScalingIfTheFileHasNone) {
  auto config = tiny_json();
  config["model_type"] = "gpt_oss";
  for (const bool is_null : {false, true}) {
    if (is_null) config["rope_scaling"] = nullptr;
    const RopeScaling scaling = read(config).rope.scaling;
    EXPECT_EQ(scaling.type, RopeScalingType::yarn);
    EXPECT_EQ(scaling.factor, 32);
    EXPECT_FALSE(scaling.truncate);
  }
  config["rope_scaling"] = {{"rope_type", "default"}};
  EXPECT_EQ(read(config).rope.scaling.type, RopeScalingType::none);
}

TEST(RopeConfig, RefusesBrokenRopeScalings) {
  EXPECT_EQ(rope_refusal({{"rope_type", "ntk"}, {"factor", 2}}),
            "[config.json] rope_scaling.rope_type must be one of default, linear, dynamic, llama3, yarn, longrope, "
            "proportional, but is \"ntk\"");
  EXPECT_EQ(rope_refusal({{"rope_type", "linear"}}),
            "[config.json] wanted rope_scaling.factor, a number of 1 to 1000000, but there is none");
  EXPECT_EQ(rope_refusal({{"factor", 4.0}}),
            "[config.json] wanted rope_scaling.rope_type, since there is rope_scaling.factor, but there is none");
  EXPECT_EQ(rope_refusal(nlohmann::json::object()), "");
  for (const char* key :
       {"alpha", "attention_factor", "beta_fast", "beta_slow", "high_freq_factor", "long_factor", "low_freq_factor",
        "mscale", "mscale_all_dim", "original_max_position_embeddings", "short_factor", "truncate", "mine"})
    EXPECT_NE(rope_refusal({{key, 1}}).find("since there is rope_scaling." + std::string(key)), std::string::npos)
        << key;
  EXPECT_EQ(rope_refusal({{"rope_theta", 10000.0},
                          {"partial_rotary_factor", 1.0},
                          {"mrope_section", {2, 3, 3}},
                          {"finetuned", true},
                          {"max_position_embeddings", 128},
                          {"attn_factor", 1},
                          {"factor", nullptr}}),
            "");
  EXPECT_NE(rope_refusal({{"rope_type", "linear"}, {"factor", 0.5}}), "");
  EXPECT_NE(rope_refusal({{"rope_type", "linear"}, {"factor", "2"}}), "");
  EXPECT_NE(rope_refusal({{"rope_type", "llama3"},
                          {"factor", 8},
                          {"low_freq_factor", 4},
                          {"high_freq_factor", 2},
                          {"original_max_position_embeddings", 64}})
                .find("high_freq_factor must be at least"),
            std::string::npos);
  EXPECT_NE(rope_refusal({{"full_attention", {{"rope_type", "default"}}}}).find("per kind of layer"),
            std::string::npos);
  EXPECT_NE(rope_refusal(7), "");
}

TEST(RopeConfig, ReadsLongropeByTheTrainedContext) {
  auto config = tiny_json();
  config["original_max_position_embeddings"] = 32;
  const json factors = json(8, 1.5);
  for (const char* type : {"longrope", "su"}) {
    config["rope_scaling"] = {{"type", type}, {"short_factor", json(8, 1.0)}, {"long_factor", factors}};
    const RopeScaling scaling = read(config).rope.scaling;
    EXPECT_EQ(scaling.type, RopeScalingType::longrope);
    EXPECT_EQ(scaling.original_context_length, 32);
    EXPECT_EQ(scaling.long_factors, std::vector<double>(8, 1.5));
    EXPECT_NEAR(scaling.attention_factor.value(), std::sqrt(1 + std::log(4.0) / std::log(32.0)), 1e-12);
  }
  config["rope_scaling"].erase("long_factor");
  EXPECT_NE(message_of([&] { read(config); }).find("long_factor must be a list of numbers"), std::string::npos);
}

TEST(RopeConfig, ReadsTheRopeScalingsOfGguf) {
  const auto scaled = [](std::string_view type) {
    return without("")
        .text("llama.rope.scaling.type", type)
        .f32("llama.rope.scaling.factor", 4)
        .u32("llama.rope.scaling.original_context_length", 32);
  };
  EXPECT_EQ(read(scaled("none")).rope.scaling.type, RopeScalingType::none);
  EXPECT_EQ(read(scaled("linear")).rope.scaling.type, RopeScalingType::linear);
  const auto yarn = read(scaled("yarn").f32("llama.rope.scaling.yarn_beta_fast", 16)).rope.scaling;
  EXPECT_EQ(yarn.type, RopeScalingType::yarn);
  EXPECT_EQ(yarn.factor, 4);
  EXPECT_EQ(yarn.original_context_length, 32);
  EXPECT_EQ(yarn.beta_fast, 16);
  // As in llama.cpp: a factor is linear if no type is given, 0 is none, and the oldest files have another key.
  const auto without_type = [](const char* key, float factor) {
    return read(without("").f32(std::string("llama.") + key, factor)).rope.scaling;
  };
  for (const char* key : {"rope.scaling.factor", "rope.scale_linear"}) {
    EXPECT_EQ(without_type(key, 4).type, RopeScalingType::linear) << key;
    EXPECT_EQ(without_type(key, 4).factor, 4) << key;
    EXPECT_EQ(without_type(key, 0).type, RopeScalingType::none) << key;
  }
  EXPECT_NE(message_of([&] { read(without("").f32("llama.rope.scaling.attn_factor", 1.5)); }).find("attn_factor"),
            std::string::npos);
  EXPECT_NE(message_of([&] { read(scaled("longrope")); }).find("longrope"), std::string::npos);
  EXPECT_NE(message_of([&] { read(scaled("yarn").f32("llama.rope.scaling.attn_factor", 1.5)); }).find("attn_factor"),
            std::string::npos);
}

TEST(RopeConfig, FactorsOfLongropeInGgufStandAlone) {
  const auto with_factors = [] {
    GgufBytes file = without("");
    for (const char* name : {"rope_factors_long.weight", "rope_factors_short.weight"})
      file.tensor(name, {8}, testing::kGgmlF32, std::string(32, '\0'));
    return file;
  };
  const auto refused = [&](GgufBytes& file) { return message_of([&] { read(file); }); };
  EXPECT_EQ(read(with_factors()).rope.scaling.type, RopeScalingType::longrope);
  for (const char* type : {"longrope", "su"})
    EXPECT_EQ(read(with_factors().text("llama.rope.scaling.type", type)).rope.scaling.type, RopeScalingType::longrope);
  for (const char* type : {"none", "linear", "yarn"})
    EXPECT_NE(refused(with_factors().text("llama.rope.scaling.type", type))
                  .find("rope.scaling.type must be longrope, since there is rope_factors_long.weight, but is \"" +
                        std::string(type)),
              std::string::npos)
        << type;
  for (const std::string key : {"llama.rope.scaling.factor", "llama.rope.scale_linear"}) {
    for (const float factor : {0.0F, 1.0F})
      EXPECT_EQ(read(with_factors().f32(key, factor)).rope.scaling.type, RopeScalingType::longrope) << key;
    EXPECT_NE(refused(with_factors().f32(key, 4)).find(key + " must be 0 or 1"), std::string::npos) << key;
  }
  const std::string both =
      refused(with_factors().tensor("rope_freqs.weight", {8}, testing::kGgmlF32, std::string(32, '\0')));
  EXPECT_NE(both.find("has rope_freqs.weight and rope_factors_long.weight"), std::string::npos) << both;
}

TEST(RopeConfig, NamesALongropeListOfAnotherLength) {
  const json good = json(8, 1.0), bad = json(3, 1.0);
  const auto with = [](const json& long_factor) {
    return rope_refusal({{"type", "longrope"},
                         {"short_factor", json(8, 1.0)},
                         {"long_factor", long_factor},
                         {"original_max_position_embeddings", 64}});
  };
  EXPECT_EQ(with(good), "");
  EXPECT_NE(with(bad).find("rope_scaling.long_factor must have 8 numbers, but has 3"), std::string::npos);
}

// As the config classes of transformers have them.
TEST(RopeConfig, FamiliesHaveAThetaOfTheirOwn) {
  const auto theta = [](const std::string& architecture) {
    json config = tiny_json();
    config.erase("rope_theta");
    config["model_type"] = architecture;
    return read(config).rope.theta;
  };
  EXPECT_EQ(theta("llama"), 10000);
  EXPECT_EQ(theta("mixtral"), 1000000);
  EXPECT_EQ(theta("gpt_oss"), 150000);
}

}  // namespace weft::rope_config_test
