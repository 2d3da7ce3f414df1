#include "engine/calibration.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "builtin/models.h"
#include "tests/engine/tiny_model.h"
#include "tests/sample_checkpoint.h"
#include "tests/thrown_message.h"

namespace weft::calibration_test {

class Calibration : public ::testing::Test {
 protected:
  std::vector<LinearInput> inputs(const std::string& text, const std::string& batched = "512",
                                  const std::string& longest = "128") const {
    const auto engine = tiny_engine(
        path_, {{"enforce-eager", "true"}, {"max-num-batched-tokens", batched}, {"max-model-len", longest}});
    return calibrate(*engine, text);
  }

  TemporaryFolder folder_;
  std::string path_ = write_tiny_model(folder_);
};

TEST_F(Calibration, SeesEveryLinearLayerOnceInTheOrderOfTheModel) {
  std::vector<std::string> layers;
  for (const LinearInput& input : inputs("The sea")) {
    EXPECT_GT(input.magnitude, 0);
    std::string names;
    for (const std::string& weight : input.weights) names += weight.substr(0, weight.rfind('.')) + " ";
    layers.push_back(names);
  }
  EXPECT_EQ(layers, (std::vector<std::string>{"blk.0.attn_q blk.0.attn_k blk.0.attn_v ", "blk.0.attn_output ",
                                              "blk.0.ffn_gate blk.0.ffn_up ", "blk.0.ffn_down ",
                                              "blk.1.attn_q blk.1.attn_k blk.1.attn_v ", "blk.1.attn_output ",
                                              "blk.1.ffn_gate blk.1.ffn_up ", "blk.1.ffn_down "}));
}

TEST_F(Calibration, KeepsTheLargestOfAllSteps) {
  const auto whole = inputs("The sea is deep"), steps = inputs("The sea is deep", "4"), part = inputs("The sea");
  ASSERT_EQ(whole.size(), steps.size());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_EQ(steps[i].magnitude, whole[i].magnitude);
    EXPECT_GE(whole[i].magnitude, part[i].magnitude);
  }
  // A text longer than the context is read in several sequences.
  EXPECT_GE(inputs(std::string(40, 'a') + "The sea", "512", "40")[0].magnitude, part[0].magnitude);
}

// What is quantized with a scale of its input is what calibration observes, in both kinds of files. Tied heads are
// embeddings, which are not quantized.
TEST(CalibrationOfEveryModel, SeesTheInputOfEachWeightThatIsQuantized) {
  const ModelRegistry models = make_model_registry();
  ThreadPool threads(2);
  int folders = 0;
  for (const std::string& name : text_architectures(models))
    for (const bool is_tied : {false, true}) {
      SCOPED_TRACE(name + (is_tied ? ", tied" : ""));
      const ModelDefinition& model = models.find(name, "test");
      const SampleCheckpoint sample(model, {{"tie_word_embeddings", is_tied}});
      const TemporaryFolder folder;
      const std::string paths[] = {sample.write_folder(folder, "m", DType::bf16),
                                   sample.write_gguf(folder, "m.gguf", DType::f32)};
      for (const std::string& path : paths) {
        const auto engine = tiny_engine(path, {{"enforce-eager", "true"}});
        const Checkpoint checkpoint = Checkpoint::open(path);
        const QuantizeRecipe recipe{.format = NumberFormat::fp8, .inputs = calibrate(*engine, "The sea")};
        const std::string message = message_of([&] {
          quantize_checkpoint(checkpoint, models.find_for_folder(checkpoint), recipe,
                              folder / path.substr(path.rfind('/') + 1) + "-w", threads);
        });
        EXPECT_EQ(message.find("wanted the inputs of"), std::string::npos) << message;
        folders += message.empty();
      }
    }
  EXPECT_GT(folders, 150);
}

TEST_F(Calibration, RefusesATextWithoutTokens) { EXPECT_THROW(inputs(""), UserError); }

}  // namespace weft::calibration_test
