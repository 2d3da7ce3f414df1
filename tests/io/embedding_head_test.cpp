#include "io/embedding_head.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

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

// The head of a decoder's folder with these files, for hidden states of two numbers; or the message.
struct DecoderHead {
  EmbeddingHead head;
  std::string message;
};
DecoderHead decoder_head(const std::string& class_name, const std::string& keys,
                         const std::map<std::string, std::string>& files = {}) {
  Folder folder;
  folder.add("config.json", R"({"model_type": "llama")" + keys + "}");
  folder.add("tokenizer.json", checkpoint_parts::kTokenizer);
  folder.add("model.safetensors", {tensor_of("score.weight", {3, 2}, {1, 0, 0, 1, 1, 1}),
                                   tensor_of("lm_head.weight", {4, 2}, {0, 0, 3, 0, 0, 5, 1, 1})});
  std::filesystem::create_directory(folder / "1_LogitScore");
  for (const auto& [name, text] : files) folder.add(name, text);
  const ModelConfig config{
      .architecture_class = class_name, .hidden_size = 2, .vocab_size = 4, .logit_scale = 2, .logit_divisor = 4};
  const LogitHead logits{.weight = "lm_head.weight", .find_token = [](std::string_view text) -> std::optional<int> {
                           return text == "yes" ? std::optional(1) : text == "no" ? std::optional(2) : std::nullopt;
                         }};
  DecoderHead result;
  result.message =
      message_of([&] { result.head = embedding_head_of(Checkpoint::open(folder / ""), {}, config, logits); });
  return result;
}

constexpr const char* kClassifier = "XForSequenceClassification";

TEST(EmbeddingHead, OfADecoderIsOneLayerOfTheLastToken) {
  const auto [head, message] = decoder_head(kClassifier, R"(, "id2label": {"0": "a", "1": "b", "2": "c"})");
  EXPECT_EQ(message, "");
  EXPECT_EQ(head.pooling, Pooling::last);
  EXPECT_EQ(head.labels, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(finished_classes(head, {1, 2}, false), (std::vector<double>{1, 2, 3}));
  EXPECT_FALSE(head.prompt);
}

TEST(EmbeddingHead, ClassesHaveProbabilitiesByTheirProblem) {
  const auto of = [](const std::string& problem) {
    const std::vector<double> classes =
        finished_classes(decoder_head(kClassifier, problem).head, {0, std::log(2.0F)}, true);
    return fmt::format("{:.4f}", fmt::join(classes, " "));
  };
  EXPECT_EQ(of(""), "0.2000 0.4000 0.4000");
  EXPECT_EQ(of(R"(, "problem_type": "single_label_classification")"), "0.2000 0.4000 0.4000");
  EXPECT_EQ(of(R"(, "problem_type": "multi_label_classification")"), "0.5000 0.6667 0.6667");
  EXPECT_EQ(of(R"(, "problem_type": "regression")"), "0.0000 0.6931 0.6931");
  EXPECT_EQ(decoder_head(kClassifier, "").head.labels, (std::vector<std::string>{"LABEL_0", "LABEL_1", "LABEL_2"}));
  const auto has = [](const DecoderHead& head, const char* part) {
    EXPECT_NE(head.message.find(part), std::string::npos) << head.message;
  };
  has(decoder_head(kClassifier, R"(, "problem_type": "other")"), "\"other\"");
  has(decoder_head(kClassifier, R"(, "id2label": {"0": "a"})"), "of 3 classes, but are 1");
  has(decoder_head(kClassifier, R"(, "id2label": {"0": "a", "2": "b"})"), "has none for 1");
  has(decoder_head(kClassifier, R"(, "id2label": [1])"), "must be an object");
}

TEST(EmbeddingHead, ScoresAreLogitsOfTokens) {
  const auto score = [](const DecoderHead& one) { return finished_score(one.head, {1, 1}, false); };
  const auto has = [](const DecoderHead& head, const char* part) {
    EXPECT_NE(head.message.find(part), std::string::npos) << head.message;
  };
  const auto module = [](const char* config) {
    return decoder_head("XForCausalLM", "",
                        {{"modules.json", R"([{"type": "x.Transformer", "path": ""},
                                              {"type": "x.LogitScore", "path": "1_LogitScore"}])"},
                         {"1_LogitScore/config.json", config}});
  };
  // Half of 3 - 5, as the logits are scaled.
  EXPECT_EQ(score(module(R"({"true_token_id": 1, "false_token_id": 2})")), -1);
  EXPECT_EQ(score(module(R"({"true_token_id": 2, "false_token_id": null})")), 2.5);
  has(module(R"({"true_token_id": 4})"), "true_token_id");
  has(module("{}"), "true_token_id");
  const char* pair = R"(, "classifier_from_token": ["no", "yes"])";
  const DecoderHead original = decoder_head(kClassifier, std::string(pair) + R"(, "is_original_qwen3_reranker": true)");
  EXPECT_EQ(score(original), -1);
  ASSERT_TRUE(original.head.prompt);
  EXPECT_EQ(original.head.prompt->source, "{query}{document}");
  EXPECT_EQ(score(decoder_head(kClassifier, std::string(pair) + R"(, "method": "from_2_way_softmax")")), -1);
  const DecoderHead each = decoder_head(kClassifier, std::string(pair) + R"(, "method": "no_post_processing")");
  EXPECT_EQ(finished_classes(each.head, {1, 1}, false), (std::vector<double>{2.5, 1.5}));
  has(decoder_head(kClassifier, pair), "method must be from_2_way_softmax");
  has(decoder_head(kClassifier, R"(, "classifier_from_token": ["maybe"])"), "\"maybe\"");
  has(decoder_head(kClassifier, R"(, "classifier_from_token": "yes")"), "must be a list of tokens");
}

TEST(EmbeddingHead, ThePromptIsThatOfTheFolder) {
  const auto prompt = [](std::map<std::string, std::string> files) {
    files["modules.json"] =
        R"([{"type": "x.Transformer", "path": ""}, {"type": "x.LogitScore", "path": "1_LogitScore"}])";
    files["1_LogitScore/config.json"] = R"({"true_token_id": 1, "false_token_id": 2})";
    return decoder_head("XForCausalLM", "", files).head.prompt.value();
  };
  EXPECT_TRUE(prompt({}).is_plain);
  const ScorePrompt usual =
      prompt({{"chat_template.jinja", "usual"},
              {"config_sentence_transformers.json",
               R"({"prompts": {"query": "do it", "other": "no"}, "default_prompt_name": "query"})"}});
  EXPECT_EQ(usual.source, "usual");
  EXPECT_FALSE(usual.is_plain || usual.has_parts);
  EXPECT_EQ(usual.instruction, "do it");
  const ScorePrompt named =
      prompt({{"tokenizer_config.json", R"({"chat_template": [{"name": "reranker", "template": "named"}]})"},
              {"sentence_bert_config.json",
               R"({"processing_kwargs": {"chat_template": {"chat_template": "reranker", "add_generation_prompt": true}},
                   "modality_config": {"message": {"format": "structured"}}})"}});
  EXPECT_EQ(named.source, "named");
  EXPECT_TRUE(named.has_parts);
  EXPECT_EQ(named.arguments, parse_json(R"({"add_generation_prompt": true})"));
  EXPECT_EQ(named.instruction, "");
}

TEST(EmbeddingHead, OfAGgufRerankerThatGeneratesIsTheFirstLogitLessTheSecond) {
  const TemporaryFolder folder;
  std::string rows;
  for (int i = 0; i < 16; ++i) rows += testing::raw(static_cast<float>(i * i));
  auto file = checkpoint_parts::tiny_gguf();
  file.u32("llama.pooling_type", 4)
      .texts("llama.classifier.output_labels", {"yes", "no"})
      .text("tokenizer.chat_template.rerank", "{query}|{document}")
      .tensor("cls.output.weight", {8, 2}, testing::kGgmlF32, rows);
  checkpoint_parts::write(folder / "a.gguf", file.bytes());
  const Checkpoint checkpoint = Checkpoint::open(folder / "a.gguf");
  const EmbeddingHead head = embedding_head_of(checkpoint, {}, {.hidden_size = 8});
  EXPECT_EQ(head.pooling, Pooling::last);
  EXPECT_EQ(head.width, 1);
  EXPECT_EQ(finished_score(head, {0, 0, 1, 0, 0, 0, 0, 0}, false), 4 - 100);
  ASSERT_TRUE(head.prompt);
  EXPECT_TRUE(head.prompt->is_plain);
  EXPECT_EQ(head.prompt->source, "{query}|{document}");
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
