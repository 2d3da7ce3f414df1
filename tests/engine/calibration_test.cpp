#include "engine/calibration.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/engine/tiny_model.h"

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

TEST_F(Calibration, RefusesATextWithoutTokens) { EXPECT_THROW(inputs(""), UserError); }

}  // namespace weft::calibration_test
