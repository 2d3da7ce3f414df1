// Cuts below which gates do not pass, and the other facts of Gemma 3n's files.

#include <cmath>

#include <gtest/gtest.h>

#include "io/layer_config.h"
#include "tests/io/tiny_config.h"

namespace weft::gate_cuts_test {

using namespace tiny_config;

json gemma3n(const json& changes = json::object()) {
  json config = tiny_json();
  config.update({{"model_type", "gemma3n_text"},
                 {"hidden_act", "gelu_pytorch_tanh"},
                 {"num_kv_shared_layers", 0},
                 {"head_dim", 16},
                 {"rope_theta", 1e6}});
  config.update(changes);
  return config;
}

TEST(GateCuts, AreNumbersOfStandardDeviations) {
  const ModelConfig config = read(gemma3n({{"activation_sparsity_pattern", {0.95, 0.0}}}));
  ASSERT_TRUE(config.gate_cut_of(0).has_value());
  EXPECT_NEAR(*config.gate_cut_of(0), 1.6448536269514722, 1e-12);
  EXPECT_FALSE(config.gate_cut_of(1).has_value());
  EXPECT_NEAR(part_below(*config.gate_cut_of(0)), 0.95, 1e-12);
  EXPECT_NEAR(*read(gemma3n({{"activation_sparsity_pattern", 0.5}})).gate_cut_of(1), 0, 1e-12);
  EXPECT_FALSE(read(tiny_json()).gate_cut_of(0).has_value());
}

TEST(GateCuts, AreThoseOfTheFirstTenLayersOfDeepModelsWithoutTheKey) {
  EXPECT_TRUE(read(gemma3n({{"num_hidden_layers", 10}})).gate_cuts.empty());
  const ModelConfig deep = read(gemma3n({{"num_hidden_layers", 12}}));
  EXPECT_NEAR(*deep.gate_cut_of(9), 1.6448536269514722, 1e-12);
  EXPECT_FALSE(deep.gate_cut_of(10).has_value());
}

TEST(GateCuts, RefuseOtherLengthsAndParts) {
  const auto refusal = [](const json& pattern) {
    return message_of([&] { read(gemma3n({{"activation_sparsity_pattern", pattern}})); });
  };
  EXPECT_NE(refusal({0.5}).find("num_hidden_layers 2 numbers, but has 1"), std::string::npos);
  EXPECT_NE(refusal({0.5, 1.0}).find("activation_sparsity_pattern must be from 0 to below 1"), std::string::npos);
  EXPECT_NE(refusal("all").find("activation_sparsity_pattern"), std::string::npos);
}

TEST(GateCuts, AreReadFromGgufFiles) {
  const auto file = [](const std::vector<double>& cuts) {
    GgufBytes bytes = without("", "gemma3n");
    bytes.f32s("gemma3n.activation_sparsity_scale", cuts);
    return bytes;
  };
  const ModelConfig config = read(file({1.5, -INFINITY}));
  EXPECT_EQ(config.gate_cut_of(0), 1.5);
  EXPECT_FALSE(config.gate_cut_of(1).has_value());
  for (const double wrong : {std::nan(""), static_cast<double>(INFINITY)})
    EXPECT_NE(message_of([&] { read(file({wrong, 0})); }).find("activation_sparsity_scale must be"), std::string::npos);
  EXPECT_NE(message_of([&] { read(file({1.5})); }).find("an array of 2 f32"), std::string::npos);
}

TEST(Gemma3n, TakesTheRowsOfATensorWhereGgufFilesHaveNoKey) {
  GgufBytes file = without("", "gemma3n");
  const std::string rows(8 * 64 * 4, '\0');
  file.tensor("blk.0.laurel_l.weight", {64, 8}, testing::kGgmlF32, rows);
  EXPECT_EQ(read(file).low_rank, 8);
  EXPECT_FALSE(read(file).scales_active_stream);
  EXPECT_TRUE(read(gemma3n()).scales_active_stream) << "the default of folders";
  EXPECT_EQ(read(gemma3n()).stream_count, 4);
}

}  // namespace weft::gate_cuts_test
