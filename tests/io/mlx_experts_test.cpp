#include "io/mlx_experts.h"

#include <gtest/gtest.h>

namespace weft::mlx_experts_test {

TensorEntry entry(const std::string& name, Shape shape) {
  const Meta meta = Meta::tensor(DType::f32, std::move(shape));
  Tensor tensor = Tensor::empty(meta);
  for (std::int64_t i = 0; i < element_count(meta.shape).number(); ++i) tensor.as<float>()[i] = static_cast<float>(i);
  return {.name = name, .tensor = tensor, .file = "m.safetensors"};
}

TEST(MlxExperts, AreViewsOfTheStack) {
  std::vector<TensorEntry> tensors{entry("model.norm.weight", {4}),
                                   entry("model.layers.1.mlp.switch_mlp.up_proj.weight", {3, 2, 4}),
                                   entry("model.layers.1.mlp.switch_mlp.up_proj.bias", {3, 2})};
  EXPECT_TRUE(split_expert_stacks(tensors));
  ASSERT_EQ(tensors.size(), 7u);
  EXPECT_EQ(tensors[0].name, "model.norm.weight");
  const TensorEntry& last = tensors[3];
  EXPECT_EQ(last.name, "model.layers.1.mlp.experts.2.up_proj.weight");
  EXPECT_EQ(last.tensor.meta, Meta::tensor(DType::f32, {2, 4}));
  EXPECT_EQ(last.tensor.as<const float>()[0], 16.0f);
  EXPECT_EQ(tensors[6].name, "model.layers.1.mlp.experts.2.up_proj.bias");
  EXPECT_EQ(tensors[6].tensor.as<const float>()[1], 5.0f);
}

TEST(MlxExperts, HaveTheNamesOfMixtral) {
  const std::string before = "model.layers.0.block_sparse_moe.";
  for (const auto& [name, own] : {std::pair{"gate_proj", "w1"}, {"down_proj", "w2"}, {"up_proj", "w3"}}) {
    std::vector<TensorEntry> tensors{entry(before + "switch_mlp." + name + ".scales", {1, 2, 2})};
    split_expert_stacks(tensors);
    EXPECT_EQ(tensors[0].name, before + "experts.0." + own + ".scales");
    EXPECT_EQ(stack_of_expert(before + "experts.0." + own), before + "switch_mlp." + name);
  }
}

TEST(MlxExperts, AreNothingElse) {
  std::vector<TensorEntry> tensors{entry("model.layers.0.mlp.experts.0.up_proj.weight", {2, 2})};
  const Tensor before = tensors[0].tensor;
  EXPECT_FALSE(split_expert_stacks(tensors));
  EXPECT_EQ(tensors[0].tensor.data(), before.data());
  for (const char* name : {"model.norm", "model.layers.0.mlp.experts.0", "model.layers.0.mlp.experts"})
    EXPECT_EQ(stack_of_expert(name), "") << name;
}

}  // namespace weft::mlx_experts_test
