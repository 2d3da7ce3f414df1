// The checkpoints that every architecture refuses, by its table of weights and its check of the config.

#include "models/model.h"

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
    const std::string gguf_name = sample_.gguf_name(name), wanted = shape_text(tensor.meta.shape);
    SampleCheckpoint changed = sample_;
    changed.erase(name);
    EXPECT_NE(refusal_of_folder(changed).find("wanted tensor " + name + ", but it is not among"), std::string::npos);
    // A GGUF file without a head uses the embedding.
    EXPECT_EQ(refusal_of_gguf(changed).find("wanted tensor " + gguf_name + ", but") == std::string::npos,
              gguf_name == "output.weight");
    changed = sample_;
    changed.reshape(name, {7});
    const std::string rest = " must have the shape " + wanted + " that the config gives it, but is ";
    EXPECT_NE(refusal_of_folder(changed).find("tensor " + name + rest + "bf16[7]"), std::string::npos);
    EXPECT_NE(refusal_of_gguf(changed).find("tensor " + gguf_name + rest + "f32[7]"), std::string::npos);
  }
}

TEST_P(EveryArchitecture, NamesTheFirstWeightThatHeadsOfAnotherWidthDoNotFit) {
  const std::int64_t width = sample_.config().head_dim, heads = sample_.config().head_count;
  const SampleCheckpoint narrow(model_, {{"head_dim", width / 2}});
  // The weights of one, the config of the other.
  const std::string path = sample_.write_folder(folder_, "mixed", DType::bf16);
  const Checkpoint checkpoint = Checkpoint::open(path);
  const std::string message = message_of([&] { model_.check_weights(checkpoint, narrow.config()); });
  EXPECT_EQ(message, "[" + path + "] tensor model.layers.0.self_attn.q_proj.weight must have the shape " +
                         shape_text({heads * width / 2, 64}) + " that the config gives it, but is bf16" +
                         shape_text({heads * width, 64}));
}

TEST_P(EveryArchitecture, NamesWhatItsConfigMayNotAskFor) {
  const std::string at = "[" + GetParam() + "] ";
  EXPECT_EQ(refusal_of_config({{"attention_bias", true}}),
            at + "biases of linear layers are not supported by this architecture");
  EXPECT_EQ(refusal_of_config({{"mlp_bias", true}}),
            at + "biases of linear layers are not supported by this architecture");
  EXPECT_EQ(refusal_of_config({{"num_local_experts", 8}}),
            at + "mixtures of experts are not supported, but the model has 8 experts");
  const std::string act = refusal_of_config({{"hidden_act", "relu"}, {"hidden_activation", nullptr}});
  EXPECT_NE(act.find(at + "hidden_act must be "), std::string::npos) << act;
  EXPECT_NE(act.find(", but is \"relu\""), std::string::npos) << act;
}

INSTANTIATE_TEST_SUITE_P(Models, EveryArchitecture, ::testing::ValuesIn(make_model_registry().architectures()),
                         [](const auto& info) { return info.param; });

TEST(ModelRegistry, NamesTheArchitecturesItKnowsBesideOneItDoesNot) {
  const ModelRegistry models = make_model_registry();
  // Gemma 2 and 3 also have norms after the halves of a layer: they are not Gemma with other numbers.
  for (const char* unknown : {"gemma2", "gemma3_text", "gemma3", "qwen3_moe", "mamba"})
    EXPECT_EQ(message_of([&] { models.find(unknown, "config.json"); }),
              std::string("[config.json] the architecture must be one of gemma, llama, mistral, qwen3, but is \"") +
                  unknown + "\"");
}

}  // namespace weft::model_test
