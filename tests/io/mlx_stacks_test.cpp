#include "io/mlx_stacks.h"

#include <gtest/gtest.h>

namespace weft::mlx_stacks_test {

TensorEntry entry(const std::string& name, Shape shape) {
  const Meta meta = Meta::tensor(DType::f32, std::move(shape));
  Tensor tensor = Tensor::empty(meta);
  for (std::int64_t i = 0; i < element_count(meta.shape).number(); ++i) tensor.as<float>()[i] = static_cast<float>(i);
  return {.name = name, .tensor = tensor, .file = "m.safetensors"};
}

TEST(MlxStacks, HavePartsThatAreViews) {
  std::vector<TensorEntry> tensors{entry("model.norm.weight", {4}),
                                   entry("model.layers.1.mlp.switch_mlp.up_proj.weight", {3, 2, 4}),
                                   entry("model.layers.1.mlp.switch_mlp.up_proj.bias", {3, 2})};
  EXPECT_TRUE(split_stacks(tensors));
  ASSERT_EQ(tensors.size(), 7u);
  EXPECT_EQ(tensors[0].name, "model.norm.weight");
  const TensorEntry& last = tensors[3];
  EXPECT_EQ(last.name, "model.layers.1.mlp.experts.2.up_proj.weight");
  EXPECT_EQ(last.tensor.meta, Meta::tensor(DType::f32, {2, 4}));
  EXPECT_EQ(last.tensor.as<const float>()[0], 16.0f);
  EXPECT_EQ(tensors[6].name, "model.layers.1.mlp.experts.2.up_proj.bias");
  EXPECT_EQ(tensors[6].tensor.as<const float>()[1], 5.0f);
}

TEST(MlxStacks, HaveTheNamesOfEachFamily) {
  const std::string layer = "model.layers.3.";
  for (const auto& [stack, part] : {std::pair{"mlp.switch_mlp.up_proj", "mlp.experts.0.up_proj"},
                                    {"block_sparse_moe.switch_mlp.gate_proj", "block_sparse_moe.experts.0.w1"},
                                    {"block_sparse_moe.switch_mlp.down_proj", "block_sparse_moe.experts.0.w2"},
                                    {"block_sparse_moe.switch_mlp.up_proj", "block_sparse_moe.experts.0.w3"},
                                    {"mlp.experts.gate_proj", "mlp.experts.0.gate_proj"},
                                    {"mlp.experts.down_proj", "mlp.experts.0.down_proj"},
                                    {"experts.switch_glu.up_proj", "experts.0.up_proj"},
                                    {"self_attn.embed_q", "self_attn.embed_q.0"},
                                    {"self_attn.unembed_out", "self_attn.unembed_out.0"}}) {
    std::vector<TensorEntry> tensors{entry(layer + stack + ".scales", {1, 2, 2})};
    split_stacks(tensors);
    EXPECT_EQ(tensors[0].name, layer + part + ".scales");
    EXPECT_EQ(parts_of_stack(layer + stack), parts_with(layer + part)) << stack;
  }
}

TEST(MlxStacks, AreNothingElse) {
  for (const char* name :
       {"model.layers.0.mlp.experts.0.up_proj.weight", "model.layers.0.mlp.experts.down_proj",
        "model.layers.0.mlp.experts.down_proj_bias", "model.layers.0.mlp.experts.gate_up_proj_scales"}) {
    std::vector<TensorEntry> tensors{entry(name, {2, 2})};
    const Tensor before = tensors[0].tensor;
    EXPECT_FALSE(split_stacks(tensors)) << name;
    EXPECT_EQ(tensors[0].tensor.data(), before.data());
  }
  EXPECT_EQ(parts_of_stack("model.layers.0.mlp.up_proj"), "");
  for (const char* name : {"model.norm", "model.layers.0.mlp.up_proj", "lm_head"}) EXPECT_EQ(parts_with(name), "");
}

}  // namespace weft::mlx_stacks_test
