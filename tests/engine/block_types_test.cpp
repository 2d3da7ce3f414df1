// Models whose matrices are of each block type of GGUF files.

#include <cmath>

#include <gtest/gtest.h>

#include "builtin/models.h"
#include "tensor/block_format.h"
#include "tests/engine/tiny_model.h"
#include "tests/io/gguf_types.h"
#include "tests/sample_checkpoint.h"

namespace weft::block_types_test {

using Logits = std::vector<std::vector<float>>;
using Settings = std::vector<std::pair<std::string, std::string>>;

// An architecture whose files have the rows of its matrices as folders have them.
struct Model {
  std::string architecture;
  nlohmann::json changes;
  double most;  // the difference that codes of 8 bits of the activations make
};
// All experts of the mixture compute each token, since another choice of experts would hide what the codes change. They
// change the weights of the experts, too.
const std::vector<Model> kModels{
    {"qwen3", {{"hidden_size", 256}, {"intermediate_size", 512}, {"head_dim", 64}}, 0.05},
    {"qwen3_moe",
     {{"hidden_size", 256}, {"moe_intermediate_size", 256}, {"head_dim", 64}, {"num_experts_per_tok", 4}},
     0.1}};

// Other ways to run a model. With a sanitizer none, because each compiles the same code once more.
Settings other_ways() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return {};
#else
  return {{"enforce-eager", "true"}, {"max-num-batched-tokens", "2"}, {"threads", "3"}};
#endif
}

class BlockTypes : public ::testing::TestWithParam<DType> {
 protected:
  static Logits logits(const std::string& path, const Settings& settings) {
    return all_logits(*tiny_engine(path, settings), some_ids(5));
  }

  void expect_the_numbers(const SampleCheckpoint& sample, double most) const;

  const TemporaryFolder folder_;
};

void BlockTypes::expect_the_numbers(const SampleCheckpoint& sample, double most) const {
  SampleCheckpoint numbers = sample;
  numbers.round_matrices_to(GetParam());
  const std::string name = sample.config().architecture;
  const std::string blocks = sample.write_gguf(folder_, name + ".gguf", GetParam());
  const Settings exact{{"activation-precision", "exact"}, {"kv-cache-dtype", "f32"}, {"dtype", "f32"}};
  const Logits wanted = logits(numbers.write_folder(folder_, name, DType::f32), exact);
  EXPECT_LT(logit_difference(logits(blocks, exact), wanted), 1e-5);
  const Settings fast{{"kv-cache-dtype", "f32"}, {"dtype", "f32"}};
  const Logits codes = logits(blocks, fast);
  for (const auto& way : other_ways()) {
    Settings settings = fast;
    settings.push_back(way);
    EXPECT_EQ(codes, logits(blocks, settings)) << way.first;
  }
  EXPECT_LT(logit_difference(codes, wanted), most);
  EXPECT_GT(logit_difference(codes, wanted), 1e-5);
}

TEST_P(BlockTypes, AreComputedWithAsTheNumbersThatTheyStandFor) {
  for (const auto& [architecture, changes, most] : kModels) {
    SCOPED_TRACE(architecture);
    expect_the_numbers(SampleCheckpoint(make_model_registry().find(architecture, "test"), changes), most);
  }
}

std::vector<DType> types() {
  std::vector<DType> all;
  for (const BlockFormat& format : block_formats())
    if (testing::ggml_id(format.dtype)) all.push_back(format.dtype);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Every, BlockTypes, ::testing::ValuesIn(types()),
                         [](const auto& type) { return std::string(dtype_text(type.param)); });

}  // namespace weft::block_types_test
