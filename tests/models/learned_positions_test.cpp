// Families with learned positions: GPT-2 and those like it.

#include <fstream>

#include <gtest/gtest.h>

#include "builtin/models.h"
#include "io/safetensors_writer.h"
#include "models/unread_tensors.h"
#include "tests/sample_checkpoint.h"
#include "tests/thrown_message.h"

namespace weft::learned_positions_test {

using nlohmann::json;

class LearnedPositions : public ::testing::Test {
 protected:
  std::string refusal(const std::string& architecture, const json& changes) const {
    const ModelDefinition& model = models_.find(architecture, "test");
    return message_of([&] { model.check(SampleCheckpoint(model, changes).config()); });
  }

  const ModelRegistry models_ = make_model_registry();
  const TemporaryFolder folder_;
};

TEST_F(LearnedPositions, HaveARowForEachPositionOfTheContext) {
  for (const auto& [architecture, more] : {std::pair{"gpt2", 0}, {"gpt_bigcode", 0}, {"gpt_neo", 0}, {"opt", 2}}) {
    const ModelDefinition& model = models_.find(architecture, "test");
    const ModelConfig config = SampleCheckpoint(model, {{"max_position_embeddings", 24}}).config();
    EXPECT_EQ(model.weight("position_embd").shape(config, 0),
              (std::vector<std::int64_t>{24 + more, config.hidden_size}));
    EXPECT_EQ(config.rope_of(0), nullptr);
  }
}

// No dim rotates, so none must be even.
TEST_F(LearnedPositions, MayHaveHeadsOfAnyWidth) {
  const json changes{{"hidden_size", 60}, {"num_attention_heads", 4}};
  for (const char* architecture : {"gpt2", "gpt_bigcode", "gpt_neo", "opt"})
    EXPECT_EQ(SampleCheckpoint(models_.find(architecture, "test"), changes).config().head_dim, 15) << architecture;
}

// tests/data/models has models with these parts; here is which weights there are.
TEST_F(LearnedPositions, OfOptMayHaveProjectionsOfEmbeddingsAndOtherNorms) {
  const ModelDefinition& opt = models_.find("opt", "test");
  const auto has = [&](const json& changes, const char* weight) {
    return opt.has(weight, SampleCheckpoint(opt, changes).config(), 0);
  };
  for (const char* projection : {"token_embd_proj", "output_projection"}) {
    EXPECT_TRUE(has({{"word_embed_proj_dim", 32}}, projection));
    EXPECT_FALSE(has({{"word_embed_proj_dim", 64}}, projection));
  }
  EXPECT_TRUE(has({}, "output_norm") && has({{"do_layer_norm_before", false}}, "attn_norm"));
  EXPECT_FALSE(has({{"do_layer_norm_before", false}}, "output_norm"));
  for (const char* weight : {"attn_norm", "attn_norm.bias", "ffn_norm", "ffn_norm.bias", "output_norm"})
    EXPECT_FALSE(has({{"layer_norm_elementwise_affine", false}}, weight)) << weight;
  EXPECT_NE(refusal("opt", {{"_remove_final_layer_norm", true}}), "");
}

TEST_F(LearnedPositions, OfGpt2AreRefusedWithOtherScalesOfScores) {
  EXPECT_NE(refusal("gpt2", {{"scale_attn_weights", false}}).find("scale_attn_weights asks for "), std::string::npos);
  EXPECT_EQ(refusal("gpt2", {{"reorder_and_upcast_attn", true}}), "") << "the same mathematics";
}

// Published folders have the names without the module around the layers, and masks.
TEST_F(LearnedPositions, MayBeNamedWithoutTheModuleAroundTheLayers) {
  for (const auto& [architecture, module] :
       {std::pair{"gpt2", "transformer."}, {"gpt_neo", "transformer."}, {"opt", "model."}}) {
    SCOPED_TRACE(architecture);
    const ModelDefinition& model = models_.find(architecture, "test");
    const SampleCheckpoint sample(model);
    const std::string path = sample.write_folder(folder_, architecture, DType::f32);
    std::vector<NamedTensor> tensors;
    for (const auto& [name, tensor] : sample.weights())
      tensors.push_back({name.starts_with(module) ? name.substr(std::string(module).size()) : name, tensor});
    const std::string first = tensors[1].name.substr(0, tensors[1].name.find("0.") + 2);
    tensors.push_back({first + "attn.bias", Tensor::empty(Meta::tensor(DType::u8, {1, 1, 128, 128}))});
    tensors.push_back({first + "attn.masked_bias", Tensor::empty(Meta::tensor(DType::f32, {1}))});
    write_safetensors(path + "/model.safetensors", tensors);
    const Checkpoint checkpoint = Checkpoint::open(path);
    const ModelConfig config = checkpoint.config(model.facts);
    EXPECT_NO_THROW(model.check_weights(checkpoint, config));
    const UnreadTensors unread = unread_tensors(checkpoint, model, config);
    EXPECT_EQ(unread.names, std::vector<std::string>());
    EXPECT_EQ(unread.harmless.size(), 1U);
  }
}

}  // namespace weft::learned_positions_test
