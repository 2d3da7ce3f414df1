// Files that store the same weights in another way give the same logits: GGUF files with one weight for queries, keys
// and values, and folders of a model without its head.

#include <algorithm>
#include <functional>

#include <gtest/gtest.h>

#include "builtin/models.h"
#include "io/safetensors_writer.h"
#include "tests/engine/tiny_model.h"
#include "tests/sample_checkpoint.h"

namespace weft::merged_files_test {

std::vector<std::vector<float>> logits(const std::string& path) {
  return all_logits(*tiny_engine(path, {{"activation-precision", "exact"}, {"dtype", "f32"}}), some_ids(5));
}

class MergedFiles : public ::testing::TestWithParam<std::string> {
 protected:
  const ModelRegistry models_ = make_model_registry();
  const TemporaryFolder folder_;
  const SampleCheckpoint sample_{models_.find(GetParam(), "test")};
};

TEST_P(MergedFiles, GiveTheSameLogits) {
  const auto wanted = logits(sample_.write_gguf(folder_, "plain.gguf", DType::f32));
  EXPECT_EQ(logits(sample_.write_gguf(folder_, "merged.gguf", DType::f32, GgufAge::merged)), wanted);
}

INSTANTIATE_TEST_SUITE_P(Models, MergedFiles,
                         ::testing::Values("llama", "qwen2", "qwen3", "glm", "phi", "gemma2", "granite", "starcoder2",
                                           "olmo2", "stablelm", "cohere2", "seed_oss", "qwen3_moe", "gpt_oss"),
                         [](const auto& info) { return info.param; });

class FoldersOfLlama : public ::testing::Test {
 protected:
  // The folder with these names and weights in place of its own.
  std::string changed(const std::string& name, const std::function<void(std::vector<NamedTensor>&)>& change) const {
    const std::string path = sample_.write_folder(folder_, name, DType::f32);
    std::vector<NamedTensor> tensors;
    for (const auto& [weight, tensor] : sample_.weights()) tensors.push_back({weight, tensor});
    change(tensors);
    write_safetensors(path + "/model.safetensors", tensors);
    return path;
  }

  static constexpr const char* kEmbedding = "model.embed_tokens.weight";
  const ModelRegistry models_ = make_model_registry();
  const TemporaryFolder folder_;
  const SampleCheckpoint sample_{models_.find("llama", "test"), {{"tie_word_embeddings", true}}};
};

// As embedding models are published.
TEST_F(FoldersOfLlama, WithoutAHeadAndItsPrefixGiveTheSameLogits) {
  const std::string path = changed("bare", [](std::vector<NamedTensor>& tensors) {
    for (NamedTensor& one : tensors) one.name = one.name.substr(std::string("model.").size());
  });
  EXPECT_EQ(logits(path), logits(sample_.write_folder(folder_, "plain", DType::f32)));
}

TEST_F(FoldersOfLlama, UseAHeadOfTheirOwnThatDiffersFromTheEmbedding) {
  const auto with_head = [&](const std::string& name, float factor) {
    return changed(name, [&](std::vector<NamedTensor>& tensors) {
      const auto embedding =
          std::find_if(tensors.begin(), tensors.end(), [](const auto& one) { return one.name == kEmbedding; });
      const Tensor from = embedding->tensor, head = Tensor::empty(from.meta);
      for (std::int64_t i = 0; i < element_count(from.meta.shape).number(); ++i)
        head.as<float>()[i] = from.as<float>()[i] * factor;
      tensors.push_back({"lm_head.weight", head});
    });
  };
  const auto tied = logits(sample_.write_folder(folder_, "plain", DType::f32));
  EXPECT_EQ(logits(with_head("same", 1)), tied);
  const auto halved = logits(with_head("half", 0.5F));
  for (std::size_t i = 0; i < tied.size(); ++i)
    for (std::size_t j = 0; j < tied[i].size(); ++j) EXPECT_EQ(halved[i][j], 0.5F * tied[i][j]);
}

}  // namespace weft::merged_files_test
