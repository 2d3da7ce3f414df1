#include <gtest/gtest.h>

#include "base/error.h"
#include "builtin/context.h"
#include "builtin/models.h"
#include "engine/run/model_runner.h"
#include "ir/print.h"
#include "tests/sample_checkpoint.h"
#include "tests/thrown_message.h"

namespace weft::gemma_test {

using nlohmann::json;

class Gemma : public ::testing::Test {
 protected:
  // The traced forward graph of a folder with these members of the sample config changed.
  std::string graph(const json& changes, const std::string& dtype) const {
    const SampleCheckpoint sample(models_.find("gemma", "test"), changes);
    const std::string path = sample.write_folder(folder_, "m" + std::to_string(count_++), DType::bf16);
    Options options;
    apply_environment(options, process_environment());
    set_option(options, "dtype", dtype, "test");
    ModelRunner runner(make_context(options), Checkpoint::open(path), models_);
    return display(*runner.model().phases()[0].forward.traced);
  }
  static int count_of(const std::string& text, const std::string& part) {
    int count = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
    return count;
  }

  const ModelRegistry models_ = make_model_registry();
  const TemporaryFolder folder_;
  mutable int count_ = 0;
};

TEST_F(Gemma, TakesGeluOfHiddenActForTheApproximationAndThatOfHiddenActivationForTheFunction) {
  const auto count = [&](const json& changes, const char* op) { return count_of(graph(changes, "f32"), op); };
  for (const char* act : {"gelu", "gelu_pytorch_tanh"})
    for (const json& activation : {json(nullptr), json("gelu_pytorch_tanh")}) {
      const json changes{{"hidden_act", act}, {"hidden_activation", activation}};
      EXPECT_EQ(count(changes, " gelu_tanh_and_mul("), 2) << changes;
      EXPECT_EQ(count(changes, " gelu_and_mul("), 0) << changes;
    }
  const json exact{{"hidden_activation", "gelu"}};
  EXPECT_EQ(count(exact, " gelu_and_mul("), 2);
  EXPECT_EQ(count(exact, " gelu_tanh_and_mul("), 0);
  EXPECT_EQ(message_of([&] {
              graph({{"hidden_activation", "silu"}}, "f32");
            }),
            "[gemma] hidden_activation must be gelu_pytorch_tanh or gelu, but is \"silu\"");
}

// The root of 72 is 8.485281...
TEST_F(Gemma, ScalesTheEmbeddingByTheRootOfItsWidthInTheDtypeOfTheStream) {
  const json changes{{"hidden_size", 72}};
  EXPECT_EQ(count_of(graph(changes, "bf16"), "mul_scalar(%embedding_0, value=8.5)"), 1) << graph(changes, "bf16");
  EXPECT_EQ(count_of(graph(changes, "f16"), "mul_scalar(%embedding_0, value=8.484375)"), 1);
  EXPECT_EQ(count_of(graph(changes, "f32"), "mul_scalar(%embedding_0, value=8.48528"), 1);
}

TEST_F(Gemma, KeepsTheWeightsOfNormsInF32) {
  const std::string text = graph({}, "bf16");
  EXPECT_EQ(count_of(text, "_norm.0: f32[64]") + count_of(text, "_norm.1: f32[64]"), 4) << text;
  EXPECT_EQ(count_of(text, "%output_norm: f32[64]"), 1);
  EXPECT_EQ(count_of(text, " add("), 0) << "1 + w is computed at each step";
}

// The key is Gemma 2's.
TEST_F(Gemma, CapsNoAttentionScoresInGemma3) {
  const ModelRegistry models = make_model_registry();
  const auto softcap = [&](const char* architecture) {
    return SampleCheckpoint(models.find(architecture, "test"), {{"attn_logit_softcapping", 5.0}})
        .config()
        .attention_softcap;
  };
  EXPECT_EQ(softcap("gemma2"), 5.0);
  EXPECT_EQ(softcap("gemma3_text"), 0.0);
}

}  // namespace weft::gemma_test
