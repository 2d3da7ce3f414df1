#include "io/embedding_head.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "tests/io/checkpoint_parts.h"
#include "tests/thrown_message.h"

namespace weft::embedding_head_test {

using checkpoint_parts::Folder;

constexpr const char* kDense = R"([{"type": "x.Transformer", "path": ""}, {"type": "x.Pooling", "path": "1_Pooling"},
                                   {"type": "x.Dense", "path": "2_Dense"}, {"type": "x.Normalize", "path": "3"}])";

// The embedding of `pooled` by a folder whose Dense module has this config and these tensors; or the message.
std::string through_dense(const std::string& config, const std::vector<NamedTensor>& tensors,
                          const std::vector<float>& pooled) {
  Folder folder;
  folder.add("tokenizer.json", checkpoint_parts::kTokenizer);
  folder.add("model.safetensors", {checkpoint_parts::counted("a", 0)});
  folder.add("modules.json", kDense);
  std::filesystem::create_directory(folder / "1_Pooling");
  folder.add("1_Pooling/config.json", R"({"pooling_mode": "mean"})");
  std::filesystem::create_directory(folder / "2_Dense");
  folder.add("2_Dense/config.json", config);
  if (!tensors.empty()) folder.add("2_Dense/model.safetensors", tensors);
  std::string result;
  const std::string message = message_of([&] {
    const EmbeddingHead head =
        embedding_head_of(Checkpoint::open(folder / ""), {}, {.hidden_size = std::ssize(pooled)});
    result = fmt::format("{}", fmt::join(finished_embedding(head, pooled, std::nullopt, false), " "));
    EXPECT_EQ(head.width, 2);
  });
  return message.empty() ? result : message;
}

NamedTensor tensor_of(const std::string& name, const Shape& shape, const std::vector<float>& numbers) {
  Tensor tensor = Tensor::empty(Meta::tensor(DType::f32, shape));
  std::copy(numbers.begin(), numbers.end(), tensor.as<float>());
  return {name, tensor};
}

TEST(EmbeddingHead, LayersAfterThePoolingAreApplied) {
  const std::string identity = R"("activation_function": "torch.nn.modules.linear.Identity"})";
  const NamedTensor weight = tensor_of("linear.weight", {2, 3}, {1, 2, 3, 0, -1, 0.5}),
                    bias = tensor_of("linear.bias", {2}, {10, 0});
  const auto config = [](const char* rest) { return std::string(R"({"in_features": 3, "out_features": 2, )") + rest; };
  EXPECT_EQ(through_dense(config(R"("bias": false, )") + identity, {weight}, {1, 1, 2}), "9 0");
  EXPECT_EQ(through_dense(config(R"("bias": true, )") + identity, {weight, bias}, {1, 1, 2}), "19 0");
  // Both are there if the config does not say otherwise.
  EXPECT_EQ(through_dense(config(R"("x": 1})"), {weight, bias}, {0, -1, 0}), "0.99999976 0.7615942");
  const auto has = [](const std::string& message, const char* part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  has(through_dense(config(R"("bias": true, )") + identity, {weight}, {1, 1, 2}), "bias is true");
  has(through_dense(config(R"("bias": false, )") + identity, {}, {1, 1, 2}), "2_Dense/model.safetensors");
  has(through_dense(config(R"("bias": false, )") + identity, {bias}, {1, 1, 2}), "wanted linear.weight");
  has(through_dense(config(R"("bias": false, )") + identity, {weight, bias}, {1, 1, 2}), "bias is false");
  has(through_dense(config(R"("bias": false, )") + identity, {weight}, {1, 1}), "rows of 2 numbers");
  has(through_dense(config(R"("bias": true, )") + identity, {weight, tensor_of("linear.bias", {3}, {1, 2, 3})},
                    {1, 1, 2}),
      "must be float[2]");
  has(through_dense(config(R"("activation_function": "torch.nn.ReLU"})"), {weight, bias}, {1, 1, 2}), "torch.nn.ReLU");
}

// The score of `pooled` by a folder with this config and these tensors, and a head of two layers; or the message.
std::string scored(const std::string& keys, const std::vector<NamedTensor>& tensors, const std::vector<float>& pooled,
                   bool activates = true) {
  Folder folder;
  folder.add("config.json", R"({"model_type": "bert")" + keys + "}");
  folder.add("tokenizer.json", checkpoint_parts::kTokenizer);
  folder.add("model.safetensors", tensors);
  ArchitectureFacts facts;
  facts.score_layers = {{"head.dense", DenseActivation::gelu, "head.norm"}, {"classifier"}};
  const ModelConfig config{.architecture_class = "XForSequenceClassification",
                           .hidden_size = std::ssize(pooled),
                           .norm_eps = 1e-5,
                           .is_causal = false};
  std::string result;
  const std::string message = message_of([&] {
    const EmbeddingHead head = embedding_head_of(Checkpoint::open(folder / ""), facts, config);
    EXPECT_TRUE(head.scores);
    result = fmt::format("{} {:.5f}", pooling_text(*head.pooling), finished_score(head, pooled, activates));
  });
  return message.empty() ? result : message;
}

TEST(EmbeddingHead, ScoresByTheHeadOfAClassifier) {
  // gelu([1, -1]) = [0.841345, -0.158655], whose norm is [1, -1] but for the epsilon.
  const NamedTensor dense = tensor_of("head.dense.weight", {2, 2}, {1, 0, 0, 1}),
                    norm = tensor_of("head.norm.weight", {2}, {2, 3}),
                    classifier = tensor_of("classifier.weight", {1, 2}, {1, 1}),
                    bias = tensor_of("classifier.bias", {1}, {0.5});
  const std::vector<NamedTensor> all{dense, norm, classifier, bias};
  EXPECT_EQ(scored("", all, {1, -1}, false), "cls -0.49998");
  EXPECT_EQ(scored("", all, {1, -1}), "cls 0.37755");
  EXPECT_EQ(scored(R"(, "classifier_pooling": "mean")", all, {1, -1}, false), "mean -0.49998");
  const std::string identity = R"("torch.nn.modules.linear.Identity")";
  EXPECT_EQ(scored(R"(, "sbert_ce_default_activation_function": )" + identity, all, {1, -1}), "cls -0.49998");
  EXPECT_EQ(scored(R"(, "sentence_transformers": {"activation_fn": )" + identity + "}", all, {1, -1}), "cls -0.49998");
  const auto has = [](const std::string& message, const char* part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  has(scored("", {dense, classifier}, {1, -1}), "wanted head.norm.weight");
  has(scored("", {dense, norm}, {1, -1}), "wanted classifier.weight");
  has(scored("", all, {1, -1, 2}), "rows of 3 numbers");
  has(scored(R"(, "classifier_pooling": "max")", all, {1, -1}), "\"max\"");
  has(scored(R"(, "sbert_ce_default_activation_function": "torch.nn.Tanh")", all, {1, -1}), "torch.nn.Tanh");
}

TEST(EmbeddingHead, CosinesAreThoseOfAngles) {
  EXPECT_DOUBLE_EQ(cosine(std::vector<float>{1, 1}, std::vector<float>{1, 0}), std::sqrt(0.5));
  EXPECT_EQ(cosine(std::vector<float>{2, 0}, std::vector<float>{-3, 0}), -1);
  EXPECT_EQ(cosine(std::vector<float>{0, 0}, std::vector<float>{1, 0}), 0);
}

TEST(FinishedEmbedding, HasTheLengthOne) {
  EXPECT_EQ(finished_embedding({}, {3, 4, 12}, 2, true), (std::vector<float>{0.6F, 0.8F}));
  EXPECT_EQ(finished_embedding({}, {3, 4, 12}, 2, false), (std::vector<float>{3, 4}));
  EXPECT_EQ(finished_embedding({}, {0, 0}, std::nullopt, true), (std::vector<float>{0, 0}));
  EXPECT_EQ(json_text(embedding_json(std::vector<float>{0.1F, -2.5F, 1e-10F})), "[0.1,-2.5,1e-10]");
}

}  // namespace weft::embedding_head_test
