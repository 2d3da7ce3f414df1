// A model's experts in each layout that files have: the same weights give the same logits.

#include <gtest/gtest.h>

#include "base/error.h"
#include "builtin/models.h"
#include "io/safetensors_writer.h"
#include "tensor/convert.h"
#include "tests/engine/tiny_model.h"
#include "tests/sample_checkpoint.h"
#include "tests/thrown_message.h"

namespace weft::expert_layouts_test {

class ExpertLayouts : public ::testing::TestWithParam<std::string> {
 protected:
  static std::vector<std::vector<float>> logits(const std::string& path) {
    return all_logits(*tiny_engine(path, {{"activation-precision", "exact"}, {"dtype", "f32"}}), some_ids(5));
  }

  const ModelRegistry models_ = make_model_registry();
  const ModelDefinition& model_ = models_.find(GetParam(), "test");
  const TemporaryFolder folder_;
  const SampleCheckpoint sample_{model_};
};

TEST_P(ExpertLayouts, OfFoldersGiveTheSameLogits) {
  const auto wanted = logits(sample_.write_folder(folder_, "single", DType::bf16));
  EXPECT_EQ(logits(sample_.write_stacked_folder(folder_, "stacked", DType::bf16)), wanted);
  EXPECT_EQ(logits(sample_.write_stacked_folder(folder_, "transposed", DType::bf16, true)), wanted);
}

// All values are exact in each dtype.
TEST_P(ExpertLayouts, OfDifferentDtypesGiveTheSameLogits) {
  const std::string path = sample_.write_folder(folder_, "single", DType::f32);
  const auto wanted = logits(path);
  constexpr DType kDTypes[] = {DType::bf16, DType::f32, DType::f16};
  std::vector<NamedTensor> tensors;
  for (const auto& [name, weight] : sample_.weights()) {
    Tensor tensor = Tensor::empty(Meta::tensor(kDTypes[tensors.size() % 3], weight.meta.shape));
    convert_row(DType::f32, weight.data(), tensor.meta.dtype, tensor.data(), element_count(weight.meta.shape).number());
    tensors.push_back({name, tensor});
  }
  write_safetensors(path + "/model.safetensors", tensors);
  EXPECT_LT(logit_difference(logits(path), wanted), 1e-6);
}

// Matrices of f32 become what --dtype asks for.
TEST_P(ExpertLayouts, RoundedToTheDtypeGiveTheLogitsOfAFileOfIt) {
  const std::string wide = sample_.write_folder(folder_, "f32", DType::f32);
  const auto rounded = tiny_engine(wide, {{"dtype", "bf16"}});
  const auto narrow = tiny_engine(sample_.write_folder(folder_, "bf16", DType::bf16), {{"dtype", "bf16"}});
  EXPECT_EQ(all_logits(*rounded, some_ids(5)), all_logits(*narrow, some_ids(5)));
  const auto bytes = [](Engine& engine) { return engine.runner().memory_use().weights; };
  EXPECT_EQ(bytes(*rounded), bytes(*narrow));
  const auto exact = tiny_engine(wide, {{"dtype", "bf16"}, {"activation-precision", "exact"}});
  EXPECT_GT(bytes(*exact), bytes(*narrow)) << "weights stay as they are stored";
}

TEST_P(ExpertLayouts, OfGgufFilesGiveTheSameLogits) {
  for (const DType dtype : {DType::f32, DType::q8_0}) {
    // Keys of latents are blocks of other elements in an early file.
    if (sample_.config().latents && dtype != DType::f32) continue;
    const auto wanted = logits(sample_.write_gguf(folder_, "current.gguf", dtype));
    EXPECT_EQ(logits(sample_.write_gguf(folder_, "early.gguf", dtype, GgufAge::early)), wanted) << dtype_text(dtype);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ExpertLayouts,
                         ::testing::Values("mixtral", "qwen2_moe", "qwen3_moe", "olmoe", "glm4_moe", "deepseek_v2",
                                           "deepseek_v3"),
                         [](const auto& info) { return info.param; });

class MissingExperts : public ExpertLayouts {
 protected:
  // Without the tensors of layer 1 whose names have this part.
  std::string refusal(const std::string& part, bool is_folder) const {
    SampleCheckpoint changed = sample_;
    for (const auto& [name, weight] : sample_.weights())
      if (name.find("layers.1.") != std::string::npos && name.find(part) != std::string::npos) changed.erase(name);
    const Checkpoint checkpoint =
        Checkpoint::open(is_folder ? changed.write_stacked_folder(folder_, "stacked", DType::bf16)
                                   : changed.write_gguf(folder_, "early.gguf", DType::f32, GgufAge::early));
    return message_of([&] { model_.check_weights(checkpoint, checkpoint.config(model_.facts)); });
  }
};

TEST_P(MissingExperts, AreNamed) {
  EXPECT_NE(
      refusal("experts.3.down_proj", true).find("model.layers.1.mlp.experts.down_proj must have the shape [4, 64"),
      std::string::npos);
  EXPECT_NE(refusal("down_proj", true).find("wanted tensor model.layers.1.mlp.experts.down_proj"), std::string::npos);
  EXPECT_NE(refusal("up_proj", true).find("model.layers.1.mlp.experts.gate_up_proj must have the shape [4, 64, 64]"),
            std::string::npos);
  EXPECT_NE(refusal("experts.3.up_proj", false).find("wanted tensor blk.1.ffn_up.3.weight"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Models, MissingExperts, ::testing::Values("qwen3_moe"),
                         [](const auto& info) { return info.param; });

}  // namespace weft::expert_layouts_test
