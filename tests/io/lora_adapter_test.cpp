#include "io/lora_adapter.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "io/safetensors_writer.h"
#include "tests/base/temporary_folder.h"
#include "tests/io/gguf_bytes.h"
#include "tests/thrown_message.h"

namespace weft::lora_adapter_test {

using nlohmann::json;

Tensor matrix(std::int64_t rows, std::int64_t columns, DType dtype = DType::f32) {
  return Tensor::empty(Meta::tensor(dtype, {rows, columns}));
}

class LoraFiles : public ::testing::Test {
 protected:
  static json config() {
    return {{"peft_type", "LORA"}, {"r", 4}, {"lora_alpha", 8}, {"target_modules", json::array({"q_proj", "up_proj"})}};
  }
  static std::vector<NamedTensor> tensors() {
    return {{kQuery + "lora_A.weight", matrix(4, 64)},
            {kQuery + "lora_B.weight", matrix(32, 4)},
            {kUp + "lora_A.weight", matrix(4, 64, DType::bf16)},
            {kUp + "lora_B.weight", matrix(96, 4, DType::f16)}};
  }
  std::string write(const json& config, const std::vector<NamedTensor>& tensors) const {
    const std::string path = folder_ / std::to_string(std::filesystem::hash_value(config.dump()) + tensors.size());
    std::filesystem::create_directory(path);
    std::ofstream(path + "/adapter_config.json") << config;
    write_safetensors(path + "/adapter_model.safetensors", tensors);
    return path;
  }
  LoraAdapter read(const json& changes) const {
    json changed = config();
    changed.update(changes);
    return read_lora_adapter(write(changed, tensors()));
  }
  std::string refusal(const json& changes) const {
    return message_of([&] { read(changes); });
  }
  std::string refusal_of(const std::vector<NamedTensor>& tensors) const {
    return message_of([&] { read_lora_adapter(write(config(), tensors)); });
  }
  std::vector<NamedTensor> with(const std::string& name, const Tensor& tensor) const {
    std::vector<NamedTensor> changed = tensors();
    std::erase_if(changed, [&](const NamedTensor& one) { return one.name == name; });
    changed.push_back({name, tensor});
    return changed;
  }

  static inline const std::string kQuery = "base_model.model.model.layers.0.self_attn.q_proj.";
  static inline const std::string kUp = "base_model.model.model.layers.1.mlp.up_proj.";
  const TemporaryFolder folder_;
};

TEST_F(LoraFiles, HaveThePairsOfAFolder) {
  const LoraAdapter adapter = read(json::object());
  EXPECT_EQ(adapter.format, CheckpointFormat::hugging_face);
  ASSERT_EQ(adapter.pairs.size(), 2U);
  EXPECT_EQ(adapter.pairs[0].weight, "model.layers.0.self_attn.q_proj.weight");
  EXPECT_EQ(adapter.pairs[0].a.meta, Meta::tensor(DType::f32, {4, 64}));
  EXPECT_EQ(adapter.pairs[0].b.meta, Meta::tensor(DType::f32, {32, 4}));
  EXPECT_EQ(adapter.pairs[0].scale, 2);
  EXPECT_EQ(adapter.pairs[1].weight, "model.layers.1.mlp.up_proj.weight");
  EXPECT_EQ(adapter.pairs[1].a.meta.dtype, DType::bf16);
}

TEST_F(LoraFiles, HaveTheScaleOfTheirConfig) {
  EXPECT_EQ(read({{"use_rslora", true}}).pairs[0].scale, 4);
  const LoraAdapter patterns = read({{"r", 2},
                                     {"rank_pattern", {{"self_attn.q_proj", 4}, {R"(layers\.[01]\.mlp\.up_proj)", 4}}},
                                     {"alpha_pattern", {{"up_proj", 1}}}});
  EXPECT_EQ(patterns.pairs[0].scale, 2);
  EXPECT_EQ(patterns.pairs[1].scale, 0.25);
}

TEST_F(LoraFiles, MayNameTheirTargetsInSeveralWays) {
  for (const json& targets : {json("all-linear"), json(R"(.*\.(q|up)_proj)"), json(nullptr),
                              json::array({"layers.0.self_attn.q_proj", "up_proj"})})
    EXPECT_EQ(read({{"target_modules", targets}}).pairs.size(), 2U) << targets;
  for (const json& targets : {json(R"(.*q_proj)"), json::array({"q_proj"}), json::array({"j_proj", "p_proj"})})
    EXPECT_EQ(
        missing_part(refusal({{"target_modules", targets}}), {"adapter_config.json", "does not cover model.layers"}),
        "");
}

TEST_F(LoraFiles, AreRefusedForWhatIsNotImplemented) {
  const std::vector<std::pair<json, std::string>> all{{{{"use_dora", true}}, "use_dora"},
                                                      {{{"bias", "all"}}, "bias"},
                                                      {{{"modules_to_save", {"lm_head"}}}, "modules_to_save"},
                                                      {{{"peft_type", "IA3"}}, "peft_type"},
                                                      {{{"layer_replication", {{0, 1}}}}, "layer_replication"},
                                                      {{{"init_lora_weights", "pissa_niter_4"}}, "init_lora_weights"},
                                                      {{{"lora_bias", true}}, "lora_bias"}};
  for (const auto& [changes, key] : all) {
    const std::string message = refusal(changes);
    EXPECT_EQ(missing_part(message, {"adapter_config.json]", key, "not supported"}), "");
  }
}

TEST_F(LoraFiles, AreRefusedForTensorsThatAreNoPairs) {
  const std::vector<std::pair<std::vector<NamedTensor>, std::vector<std::string>>> all{
      {with("base_model.model.lm_head.weight", matrix(4, 4)), {"lm_head.weight", "replaces a weight"}},
      {with(kQuery + "lora_magnitude_vector", matrix(4, 4)), {"lora_magnitude_vector", "DoRA"}},
      {with("base_model.model.model.embed_tokens.lora_embedding_A", matrix(4, 4)), {"lora_embedding_A", "embedding"}},
      {with(kQuery + "lora_B.bias", matrix(4, 4)), {"lora_B.bias", "not implemented"}},
      {with("base_model.model.x.lora_A.weight", matrix(4, 4)),
       {"x.lora_A.weight", "no base_model.model.x.lora_B.weight"}},
      {with(kQuery + "lora_B.weight", matrix(32, 5)), {"one rank", "f32[4, 64]", "f32[32, 5]"}},
      {with(kQuery + "lora_B.weight", Tensor::empty(Meta::tensor(DType::f32, {4}))), {"must be a matrix", "f32[4]"}},
      {{{"model.x.lora_A.weight", matrix(4, 4)}, {"model.x.lora_B.weight", matrix(4, 4)}},
       {"must begin with base_model"}},
      {{}, {"has no tensors"}}};
  for (const auto& [tensors, parts] : all) EXPECT_EQ(missing_part(refusal_of(tensors), parts), "");
  EXPECT_EQ(missing_part(refusal({{"r", 8}}), {"lora_A.weight", "adapter_config.json, 8", "f32[4, 64]"}), "");
  EXPECT_NE(message_of([&] { read_lora_adapter(folder_ / "none"); }), "");
  EXPECT_EQ(missing_part(message_of([&] { read_lora_adapter(folder_.path()); }), {"adapter_config.json"}), "");
}

TEST_F(LoraFiles, MayBeGguf) {
  const auto file_with = [&](const std::string& type, float alpha) {
    testing::GgufBytes file;
    file.text("general.type", type).text("general.architecture", "llama").text("adapter.type", "lora");
    file.f32("adapter.lora.alpha", alpha);
    file.tensor("blk.0.attn_q.weight.lora_a", {64, 4}, testing::kGgmlF32, std::string(64 * 4 * 4, '\0'));
    file.tensor("blk.0.attn_q.weight.lora_b", {4, 32}, testing::kGgmlF32, std::string(32 * 4 * 4, '\0'));
    const std::string path = folder_ / (type + std::to_string(alpha) + ".gguf");
    std::ofstream(path, std::ios::binary) << file.bytes();
    return path;
  };
  const LoraAdapter adapter = read_lora_adapter(file_with("adapter", 2));
  EXPECT_EQ(adapter.format, CheckpointFormat::gguf);
  EXPECT_EQ(adapter.architecture, "llama");
  ASSERT_EQ(adapter.pairs.size(), 1U);
  EXPECT_EQ(adapter.pairs[0].weight, "blk.0.attn_q.weight");
  EXPECT_EQ(adapter.pairs[0].b.meta, Meta::tensor(DType::f32, {32, 4}));
  EXPECT_EQ(adapter.pairs[0].scale, 0.5);
  EXPECT_EQ(read_lora_adapter(file_with("adapter", 0)).pairs[0].scale, 1);
  EXPECT_EQ(missing_part(message_of([&] { read_lora_adapter(file_with("model", 2)); }), {"general.type", "adapter"}),
            "");
}

// mlx-lm stores the transposes of A and B.
class MlxAdapters : public ::testing::Test {
 protected:
  std::string write(const json& config, const std::vector<NamedTensor>& tensors) const {
    const std::string path = folder_ / std::to_string(std::filesystem::hash_value(config.dump()) + tensors.size());
    std::filesystem::create_directory(path);
    std::ofstream(path + "/adapter_config.json") << config;
    write_safetensors(path + "/adapters.safetensors", tensors);
    return path;
  }
  std::string refusal(const json& config, const std::vector<NamedTensor>& tensors) const {
    return message_of([&] { read_lora_adapter(write(config, tensors)); });
  }
  static std::vector<NamedTensor> tensors() {
    return {{kQuery + "lora_a", matrix(64, 4)}, {kQuery + "lora_b", matrix(4, 32)}};
  }

  static inline const std::string kQuery = "model.layers.0.self_attn.q_proj.";
  static inline const json kConfig{{"fine_tune_type", "lora"},
                                   {"num_layers", 16},
                                   {"data", "somewhere"},
                                   {"lora_parameters", {{"rank", 4}, {"scale", 20.0}, {"dropout", 0.0}}}};
  const TemporaryFolder folder_;
};

TEST_F(MlxAdapters, AreTransposed) {
  std::vector<NamedTensor> stored = tensors();
  for (std::int64_t i = 0; i < 64 * 4; ++i) stored[0].tensor.as<float>()[i] = static_cast<float>(i);
  const LoraAdapter adapter = read_lora_adapter(write(kConfig, stored));
  EXPECT_EQ(adapter.format, CheckpointFormat::hugging_face);
  ASSERT_EQ(adapter.pairs.size(), 1U);
  const LoraPair& pair = adapter.pairs[0];
  EXPECT_EQ(pair.weight, "model.layers.0.self_attn.q_proj.weight");
  EXPECT_EQ(pair.scale, 20);
  EXPECT_EQ(pair.a.meta, Meta::tensor(DType::f32, {4, 64}));
  EXPECT_EQ(pair.b.meta, Meta::tensor(DType::f32, {32, 4}));
  EXPECT_EQ(pair.a.as<float>()[64 * 3 + 5], 5 * 4 + 3);
}

TEST_F(MlxAdapters, AreRefusedForWhatIsNotImplemented) {
  json dora = kConfig, full = kConfig, none = kConfig, higher = kConfig;
  dora["fine_tune_type"] = "dora";
  full["fine_tune_type"] = "full";
  none.erase("lora_parameters");
  higher["lora_parameters"]["rank"] = 8;
  EXPECT_EQ(missing_part(refusal(dora, tensors()), {"adapter_config.json]", "fine_tune_type", "DoRA"}), "");
  EXPECT_EQ(missing_part(refusal(full, tensors()), {"adapter_config.json]", "fine_tune_type", "full"}), "");
  EXPECT_EQ(missing_part(refusal(none, tensors()), {"adapter_config.json]", "lora_parameters"}), "");
  EXPECT_EQ(missing_part(refusal(higher, tensors()), {"adapters.safetensors]", "q_proj.lora_a", "8", "f32[4, 64]"}),
            "");
  std::vector<NamedTensor> with_magnitudes = tensors();
  with_magnitudes.push_back({kQuery + "m", Tensor::empty(Meta::tensor(DType::f32, {32}))});
  EXPECT_EQ(missing_part(refusal(kConfig, with_magnitudes), {"q_proj.m", "DoRA"}), "");
  std::vector<NamedTensor> experts{{kQuery + "lora_a", Tensor::empty(Meta::tensor(DType::f32, {2, 4, 64}))}};
  EXPECT_EQ(missing_part(refusal(kConfig, experts), {"q_proj.lora_a", "must be a matrix", "f32[2, 4, 64]"}), "");
}

}  // namespace weft::lora_adapter_test
