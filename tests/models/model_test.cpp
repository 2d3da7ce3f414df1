// The checkpoints that every architecture refuses, by its table of weights and its check of the config.

#include "models/model.h"

#include <algorithm>

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "builtin/models.h"
#include "tests/sample_checkpoint.h"
#include "tests/thrown_message.h"

namespace weft::model_test {

using nlohmann::json;

class EveryArchitecture : public ::testing::TestWithParam<std::string> {
 protected:
  // The error of loading the checkpoint, as a folder and as a GGUF file.
  std::string refusal_of_folder(const SampleCheckpoint& sample) const {
    return refusal_of(sample.write_folder(folder_, "m" + std::to_string(count_++), DType::bf16));
  }
  std::string refusal_of_gguf(const SampleCheckpoint& sample) const {
    return refusal_of(sample.write_gguf(folder_, "m.gguf", DType::f32));
  }
  // A GGUF file without a head uses the embedding, and one without the first bias has no such biases. In models with
  // two widths of heads a layer without a window may have no values, which are then its keys.
  bool shows_what_a_gguf_file_has(const std::string& tensor) const {
    const std::vector<SwitchKey>& switches = model_.facts.switches;
    if (tensor == "blk.0.ffn_gate_up_exps.weight") return true;  // or a stack of gate and one of up
    if (sample_.config().full_head_dim > 0 && tensor == "blk.1.attn_v.weight") return true;
    if (tensor == "token_types.weight") return true;
    const bool shows_layers = model_.facts.experts && model_.facts.experts->shows_layers_in_gguf;
    if (shows_layers && tensor.ends_with(".ffn_gate_inp.weight")) return true;
    // Or a weight for each of queries, keys and values, as files of GLM-4 have.
    if (GetParam() == "chatglm" && tensor == "blk.0.attn_qkv.weight") return true;
    return tensor == "output.weight" || std::any_of(switches.begin(), switches.end(),
                                                    [&](const SwitchKey& one) { return one.gguf_tensor == tensor; });
  }
  // The shape that a GGUF file's config gives a tensor which has `rows` rows, where it wants `shape`.
  std::string shape_of_rows(const std::string& tensor, Shape shape, std::int64_t rows) const {
    const std::vector<CountKey>& counts = model_.facts.counts;
    const bool is_counted =
        std::any_of(counts.begin(), counts.end(), [&](const CountKey& count) { return count.gguf_tensor == tensor; });
    if (is_counted) shape[0] = Dim(rows);
    return shape_text(shape);
  }
  bool has_key(const std::string& key) const {
    const std::vector<SwitchKey>& switches = model_.facts.switches;
    const std::vector<std::string_view>& always = model_.facts.always;
    const std::vector<KeyName>& names = model_.facts.key_names;
    return std::find(always.begin(), always.end(), key) != always.end() ||
           std::any_of(names.begin(), names.end(), [&](const KeyName& name) { return name.own == key; }) ||
           std::any_of(switches.begin(), switches.end(), [&](const SwitchKey& one) { return one.folder == key; });
  }
  // The first weight whose shape the config changes, and its shapes.
  std::string first_difference(const ModelConfig& a, const ModelConfig& b) const {
    for (int layer = 0; layer < a.layer_count; ++layer)
      for (const ModelWeight& weight : model_.weights)
        if (weight.shape(a, layer) != weight.shape(b, layer))
          return fmt::format("tensor {} must have the shape {} that the config gives it, but is bf16{}",
                             weight.key(CheckpointFormat::hugging_face, layer), shape_of(weight, b, layer),
                             shape_of(weight, a, layer));
    return "no difference";
  }
  static std::string shape_of(const ModelWeight& weight, const ModelConfig& config, int layer) {
    std::vector<std::int64_t> shape = weight.shape(config, layer);
    if (weight.is_transposed_in(config.format)) std::swap(shape[0], shape[1]);
    return shape_text(Shape(shape.begin(), shape.end()));
  }
  // The error for the sample's config with these members changed.
  std::string refusal_of_config(const json& changes) const {
    return message_of([&] { model_.check(SampleCheckpoint(model_, changes).config()); });
  }

  const ModelDefinition model_ = make_model_registry().find(GetParam(), "test");
  const SampleCheckpoint sample_{model_};
  const TemporaryFolder folder_;

 private:
  std::string refusal_of(const std::string& path) const {
    const Checkpoint checkpoint = Checkpoint::open(path);
    return message_of([&] { model_.check_weights(checkpoint, checkpoint.config(model_.facts)); });
  }

  mutable int count_ = 0;
};

TEST_P(EveryArchitecture, TakesItsOwnSample) {
  EXPECT_EQ(refusal_of_folder(sample_), "");
  EXPECT_EQ(refusal_of_gguf(sample_), "");
  EXPECT_EQ(refusal_of_config({}), "");
}

TEST_P(EveryArchitecture, NamesAWeightThatIsMissingOrMisshapenAndWhatWasWanted) {
  for (const auto& [name, tensor] : sample_.weights()) {
    SCOPED_TRACE(name);
    const std::string gguf_name = sample_.gguf_name(name);
    SampleCheckpoint changed = sample_;
    changed.erase(name);
    EXPECT_NE(refusal_of_folder(changed).find("wanted tensor " + name + ", but it is not among"), std::string::npos);
    if (!sample_.has_other_shape_in_gguf(name)) {
      EXPECT_EQ(refusal_of_gguf(changed).find("wanted tensor " + gguf_name + ", but") == std::string::npos,
                shows_what_a_gguf_file_has(gguf_name));
    }
    changed = sample_;
    changed.reshape(name, {7});
    const auto refusal = [](const std::string& tensor_name, const std::string& wanted, const char* meta) {
      return "tensor " + tensor_name + " must have the shape " + wanted + " that the config gives it, but is " + meta;
    };
    EXPECT_NE(refusal_of_folder(changed).find(refusal(name, shape_text(tensor.meta.shape), "bf16[7]")),
              std::string::npos);
    const bool may_be_vector = name.find("shared_expert_gate") != std::string::npos;  // as older files have it
    if (!sample_.has_other_shape_in_gguf(name) && !may_be_vector) {
      const std::string in_gguf = shape_of_rows(gguf_name, tensor.meta.shape, 7);
      EXPECT_NE(refusal_of_gguf(changed).find(refusal(gguf_name, in_gguf, "f32[7]")), std::string::npos);
    }
  }
}

TEST_P(EveryArchitecture, NamesTheFirstWeightThatHeadsOfAnotherWidthDoNotFit) {
  const ModelConfig& config = sample_.config();
  const bool has_heads = !config.recurrent || config.recurrent->kind != RecurrentKind::mamba || config.halves.empty();
  const SampleCheckpoint narrow(model_, config.latents ? json{{"kv_lora_rank", config.latents->rank / 2}}
                                        : has_heads    ? json{{"head_dim", config.head_dim / 2}}
                                                       : json{{"state_size", config.recurrent->key_dim / 2}});
  // The weights of one, the config of the other.
  const std::string path = sample_.write_folder(folder_, "mixed", DType::bf16);
  const Checkpoint checkpoint = Checkpoint::open(path);
  const std::string message = message_of([&] { model_.check_weights(checkpoint, narrow.config()); });
  EXPECT_EQ(message, "[" + path + "] " + first_difference(sample_.config(), narrow.config()));
}

TEST(BiasesOfAttention, AreReadIfTheFileAsksForThem) {
  const ModelRegistry models = make_model_registry();
  for (const char* architecture : {"llama", "gemma", "gemma2", "gemma3_text", "olmo2", "olmo3", "olmoe"}) {
    const ModelDefinition& model = models.find(architecture, "test");
    for (const bool has_biases : {false, true}) {
      const ModelConfig config = SampleCheckpoint(model, {{"attention_bias", has_biases}}).config();
      for (const char* bias : {"attn_q.bias", "attn_k.bias", "attn_v.bias", "attn_output.bias"})
        EXPECT_EQ(model.has(bias, config, 0), has_biases) << architecture << " " << bias;
    }
  }
}

TEST_P(EveryArchitecture, NamesWhatItsConfigMayNotAskFor) {
  // Messages have the word of config.json.
  const std::string at = "[" + (model_.class_aliases.empty() ? GetParam() : model_.class_aliases[0].word) + "] ";
  for (const char* key : {"attention_bias", "mlp_bias", "use_bias", "use_qkv_bias"}) {
    const std::string refusal = refusal_of_config({{key, true}});
    EXPECT_EQ(refusal.find(std::string(key) + " asks for biases of linear layers") == std::string::npos, has_key(key))
        << key << ": " << refusal;
  }
  const bool has_experts = model_.facts.experts && !model_.facts.experts->count.empty();
  EXPECT_EQ(refusal_of_config({{"num_local_experts", 8}}),
            has_experts ? "" : at + "mixtures of experts are not supported, but the model has 8 experts");
  EXPECT_EQ(model_.facts.embedding, model_.weight("token_embd").hugging_face);
  const std::string act = refusal_of_config({{"hidden_act", "tanh"}, {"hidden_activation", nullptr}});
  EXPECT_NE(act.find(at + "hidden_act must be "), std::string::npos) << act;
  EXPECT_NE(act.find(", but is \"tanh\""), std::string::npos) << act;
}

INSTANTIATE_TEST_SUITE_P(Models, EveryArchitecture, ::testing::ValuesIn(make_model_registry().architectures()),
                         [](const auto& info) { return info.param; });

class MixtureOfExperts : public EveryArchitecture {};

TEST_P(MixtureOfExperts, NamesAStackThatIsMissingOrLacksAnExpert) {
  SampleCheckpoint lacking = sample_, missing = sample_;
  const std::string stack = "blk.0.ffn_down_exps.weight";
  int count = 0;
  for (const auto& [name, tensor] : sample_.weights()) {
    if (sample_.gguf_name(name) != stack) continue;
    if (++count == 4) lacking.erase(name);
    missing.erase(name);
  }
  ASSERT_EQ(count, 4);
  EXPECT_NE(refusal_of_gguf(lacking).find("tensor " + stack +
                                          " must have the shape [4, 64, 32] that the config gives it, but is "
                                          "f32[3, 64, 32]"),
            std::string::npos)
      << refusal_of_gguf(lacking);
  EXPECT_NE(refusal_of_gguf(missing).find("wanted tensor " + stack + ", but it is not among"), std::string::npos);
}

TEST_P(MixtureOfExperts, NamesNumbersThatContradictEachOther) {
  const auto refusal = [&](const json& changes) { return refusal_of_config(changes); };
  EXPECT_NE(refusal({{"num_experts_per_tok", 5}}).find("num_experts_per_tok must be at most num_experts 4, but is 5"),
            std::string::npos);
  EXPECT_NE(refusal({{"n_group", 3}}).find("n_group must divide num_experts 4, but is 3"), std::string::npos);
  EXPECT_NE(refusal({{"n_group", 4}, {"topk_group", 1}}).find("num_experts_per_tok must be at most 1"),
            std::string::npos);
}

TEST(RouterBias, IsNamedIfItIsMissing) {
  const TemporaryFolder folder;
  const ModelRegistry models = make_model_registry();
  const ModelDefinition& gpt_oss = models.find("gpt_oss", "test");
  SampleCheckpoint sample(gpt_oss);
  const std::string name = "model.layers.1.mlp.router.bias";
  sample.erase(name);
  const Checkpoint checkpoint = Checkpoint::open(sample.write_folder(folder, "without", DType::bf16));
  EXPECT_NE(message_of([&] {
              gpt_oss.check_weights(checkpoint, checkpoint.config(gpt_oss.facts));
            }).find("wanted tensor " + name + ", but it is not among"),
            std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Models, MixtureOfExperts, ::testing::Values("qwen3_moe", "qwen2_moe", "olmoe"),
                         [](const auto& info) { return info.param; });

TEST(ModelRegistry, NamesTheArchitecturesItKnowsAndTheNearest) {
  const ModelRegistry models = make_model_registry();
  for (const auto& [unknown, nearest] : {std::pair{"rwkv", ""}, {"gemma9", ", did you mean \"gemma\"?"}})
    EXPECT_EQ(message_of([&] { models.find(unknown, "config.json"); }),
              fmt::format("[config.json] the architecture \"{}\" is not implemented{}; wanted one of {}", unknown,
                          nearest, fmt::join(models.architectures(), ", ")));
}

TEST(ModelRegistry, FindsTheArchitecturesOfGgufFiles) {
  const ModelRegistry models = make_model_registry();
  for (const auto& [gguf, folder] : {std::pair{"gemma3", "gemma3_text"},
                                     {"phi2", "phi"},
                                     {"hunyuan-dense", "hunyuan_v1_dense"},
                                     {"olmo2", "olmo2"},
                                     {"qwen3moe", "qwen3_moe"}})
    EXPECT_EQ(models.find(gguf, "m.gguf").architectures[0], folder);
}

TEST(CheckWeights, NamesTheBiasForWhichAGgufFileWouldNeedOthers) {
  const ModelDefinition llama = make_model_registry().find("llama", "test");
  const TemporaryFolder folder;
  SampleCheckpoint sample(llama);
  sample.add("x", "blk.0.ffn_up.bias", {96});
  const Checkpoint checkpoint = Checkpoint::open(sample.write_gguf(folder, "m.gguf", DType::f32));
  const std::string message = message_of([&] { llama.check_weights(checkpoint, checkpoint.config(llama.facts)); });
  EXPECT_NE(message.find("wanted tensor blk.0.ffn_gate.bias, but there is only blk.0.ffn_up.bias"), std::string::npos)
      << message;
}

// As transformers does where config.json does not say it.
TEST(SampleConfig, WidthOfHeadsFollowsFromTheirNumber) {
  const ModelRegistry models = make_model_registry();
  for (const char* architecture : {"cohere2", "nemotron"})
    EXPECT_EQ(SampleCheckpoint(models.find(architecture, "test"), {{"head_dim", nullptr}}).config().head_dim, 16)
        << architecture;
}

}  // namespace weft::model_test
