// Tensors of a checkpoint that no weight of the model reads, for every architecture and both kinds of files.

#include "models/unread_tensors.h"

#include <algorithm>
#include <fstream>

#include <gtest/gtest.h>

#include "builtin/models.h"
#include "tests/sample_checkpoint.h"
#include "tests/thrown_message.h"

namespace weft::unread_tensors_test {

class Unread : public ::testing::TestWithParam<std::string> {
 protected:
  UnreadTensors of(const std::string& path) const {
    const Checkpoint checkpoint = Checkpoint::open(path);
    return unread_tensors(checkpoint, model_, checkpoint.config(model_.facts));
  }
  UnreadTensors of_folder(const SampleCheckpoint& sample) {
    return of(sample.write_folder(folder_, "m" + std::to_string(count_++), DType::bf16));
  }
  UnreadTensors of_gguf(const SampleCheckpoint& sample) const {
    return of(sample.write_gguf(folder_, "m.gguf", DType::f32));
  }

  using Names = std::vector<std::string>;
  const ModelDefinition model_ = make_model_registry().find(GetParam(), "test");
  const TemporaryFolder folder_;
  int count_ = 0;
};

TEST_P(Unread, AreNoneOfAWholeModel) {
  const SampleCheckpoint sample(model_);
  for (const UnreadTensors& unread : {of_folder(sample), of_gguf(sample)}) {
    EXPECT_EQ(unread.names, Names());
    EXPECT_EQ(unread.harmless, Names());
  }
}

TEST_P(Unread, AreBiasesAndNormsThatItDoesNotHave) {
  SampleCheckpoint sample(model_);
  Names in_folder_wanted, in_gguf_wanted;
  const auto add = [&](const char* weight, const std::string& folder, const std::string& gguf, std::int64_t width) {
    if (model_.has(weight, sample.config(), 1)) return;
    sample.add(folder, gguf, {width});
    in_folder_wanted.push_back(folder);
    in_gguf_wanted.push_back(gguf);
  };
  add("ffn_down.scale", "model.layers.0.mlp.down_proj.weight_scale", "blk.0.ffn_down.scale", 1);
  add("post_ffw_norm", "model.layers.0.post_feedforward_layernorm.weight", "blk.0.post_ffw_norm.weight", 64);
  add("attn_output.bias", "model.layers.1.self_attn.o_proj.bias", "blk.1.attn_output.bias", 64);
  // In the order of the file, which is the writer's.
  Names in_folder = of_folder(sample).names;
  std::sort(in_folder.begin(), in_folder.end());
  EXPECT_EQ(in_folder, in_folder_wanted);
  EXPECT_EQ(of_gguf(sample).names, in_gguf_wanted);
  EXPECT_FALSE(in_folder.empty());
}

// Layers that predict a later token; not all configs state their number. Layers that share their weights have none.
TEST_P(Unread, AreNotTheLayersBeyondTheirNumber) {
  const SampleCheckpoint sample(model_);
  const auto is_of_layer = [&](const ModelWeight& weight) {
    return weight.is_per_layer() && !weight.shape(sample.config(), 1).empty();
  };
  if (std::none_of(model_.weights.begin(), model_.weights.end(), is_of_layer)) GTEST_SKIP();
  const std::string path = sample.write_folder(folder_, "two", DType::bf16);
  auto config = nlohmann::json::parse(sample.config_json());
  config["num_hidden_layers"] = 1;
  for (const char* words : {"layer_types", "layers_block_type"})
    if (config.contains(words)) config[words] = nlohmann::json::array({config[words][0]});
  std::ofstream(path + "/config.json") << config;
  EXPECT_EQ(of(path).names, Names());
  ASSERT_EQ(of(path).said.size(), 1U);
  const auto of_layers = std::find_if(model_.weights.begin(), model_.weights.end(), [&](const ModelWeight& weight) {
    return weight.is_per_layer() && !weight.shape(sample.config(), 1).empty();
  });
  const std::string key = of_layers->key(CheckpointFormat::hugging_face, 1);
  const std::string layer = key.substr(0, key.find("1.") + 2);
  EXPECT_NE(of(path).said[0].find(layer), std::string::npos) << of(path).said[0];
  config["num_nextn_predict_layers"] = sample.config().layer_count - 1;
  std::ofstream(path + "/config.json") << config;
  EXPECT_EQ(of(path).harmless.size(), 1U);
  EXPECT_EQ(of(path).said, Names());
}

TEST_P(Unread, AreNotThoseThatAreKnownToTakeNoPart) {
  SampleCheckpoint sample(model_, {{"tie_word_embeddings", true}});
  sample.add("model.layers.0.self_attn.rotary_emb.inv_freq", "x", {8});
  sample.add("model.layers.1.self_attn.rotary_emb.inv_freq", "y", {8});
  sample.add_copy("lm_head.weight", "z", model_.weight("token_embd").hugging_face);
  sample.add("vision_tower.embeddings.weight", "v", {8, 8});
  const UnreadTensors unread = of_folder(sample);
  EXPECT_EQ(unread.names, Names());
  ASSERT_EQ(unread.harmless.size(), 3U);
  EXPECT_NE(unread.harmless[0].find("inv_freq is not read (2 such in all)"), std::string::npos) << unread.harmless[0];
}

INSTANTIATE_TEST_SUITE_P(Models, Unread, ::testing::ValuesIn(make_model_registry().architectures()),
                         [](const auto& info) { return info.param; });

// Writers of GPTQ add biases, which matter unless they are zeros.
TEST(UnreadOfGptq, AreNotBiasesOfZeros) {
  const ModelDefinition model = make_model_registry().find("llama", "test");
  const TemporaryFolder folder;
  SampleCheckpoint sample(model);
  const std::string zeros = "model.layers.0.self_attn.o_proj.bias", numbers = "model.layers.1.self_attn.o_proj.bias";
  sample.add(zeros, "x", {64});
  sample.add(numbers, "y", {64});
  sample.multiply(zeros, 0);
  const Checkpoint checkpoint = Checkpoint::open(sample.write_folder(folder, "m", DType::f16));
  ModelConfig config = checkpoint.config(model.facts);
  const auto is_unread = [&](const std::string& name) {
    const std::vector<std::string> names = unread_tensors(checkpoint, model, config).names;
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  EXPECT_TRUE(is_unread(zeros));
  config.quantization = QuantizationConfig{};
  config.quantization->scheme = QuantizationScheme::grouped;
  config.quantization->groups.layout = GroupLayout::gptq;
  EXPECT_FALSE(is_unread(zeros));
  EXPECT_TRUE(is_unread(numbers));
}

TEST(UnreadOfQuantized, AreNotScalesOfKeysAndValues) {
  const ModelDefinition model = make_model_registry().find("llama", "test");
  const TemporaryFolder folder;
  SampleCheckpoint sample(model);
  const std::string layer = "model.layers.0.self_attn.";
  sample.add(layer + "k_scale", "x", {1});
  sample.add(layer + "v_proj.output_scale", "y", {1});
  const Checkpoint checkpoint = Checkpoint::open(sample.write_folder(folder, "m", DType::f16));
  ModelConfig config = checkpoint.config(model.facts);
  EXPECT_EQ(unread_tensors(checkpoint, model, config).names.size(), 2U);
  config.quantization = QuantizationConfig{};
  const UnreadTensors unread = unread_tensors(checkpoint, model, config);
  EXPECT_TRUE(unread.names.empty());
  ASSERT_EQ(unread.harmless.size(), 1U);
  EXPECT_NE(unread.harmless[0].find("(2 such in all): keys and values are stored without scales"), std::string::npos);
}

TEST(CheckUnreadTensors, NamesTheFirstAndTheirNumberOrWarns) {
  const std::vector<std::string> names = {"a", "b", "c", "d", "e"};
  const std::string message = message_of([&] { check_unread_tensors(names, "m.gguf", false); });
  EXPECT_NE(message.find("[m.gguf] no weight of the model reads a, b, c, d, ... (5 in all)"), std::string::npos);
  EXPECT_NE(message.find("--ignore-unread-tensors"), std::string::npos);
  EXPECT_NE(check_unread_tensors(names, "m.gguf", true).find("(5 in all)"), std::string::npos);
  EXPECT_EQ(check_unread_tensors({}, "m.gguf", false), "");
}

}  // namespace weft::unread_tensors_test
