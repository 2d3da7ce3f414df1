// Models whose matrices are of each block type of GGUF files.

#include <cmath>
#include <fstream>
#include <map>

#include <gtest/gtest.h>

#include "builtin/models.h"
#include "tensor/block_format.h"
#include "tests/engine/tiny_model.h"
#include "tests/io/gguf_types.h"
#include "tests/sample_checkpoint.h"
#include "tests/thrown_message.h"

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

// Whether a GGUF file may have factors of the weight's blocks: it is of a linear layer.
bool may_have_factors(const std::string& name) { return name.ends_with("_proj.weight") || name == "lm_head.weight"; }

// Tensors X.scale of factors, one of a matrix or of each expert, are factors of the numbers.
TEST(FactorsOfBlocks, MultiplyTheNumbersOfBlocks) {
  const TemporaryFolder folder;
  for (const auto& [architecture, changes, most] : kModels) {
    SCOPED_TRACE(architecture);
    const SampleCheckpoint sample(make_model_registry().find(architecture, "test"), changes);
    SampleCheckpoint numbers = sample;
    numbers.round_matrices_to(DType::nvfp4);
    std::map<std::string, std::string> factors;  // the bytes of each tensor
    float factor = 0.5f;
    for (const auto& [name, weight] : sample.weights()) {
      if (!may_have_factors(name)) continue;
      factor = factor > 1.5f ? 0.5f : factor + 0.125f;
      numbers.multiply(name, factor);
      const std::string gguf = sample.gguf_name(name);
      factors[gguf.substr(0, gguf.size() - std::string("weight").size()) + "scale"] += testing::raw(factor);
    }
    testing::GgufBytes file = sample.gguf(DType::nvfp4);
    for (const auto& [name, bytes] : factors)
      file.tensor(name, {bytes.size() / sizeof(float)}, testing::kGgmlF32, bytes);
    std::ofstream(folder / "m.gguf", std::ios::binary) << file.bytes();
    const auto logits = [](const std::string& path, const Settings& settings) {
      return all_logits(*tiny_engine(path, settings), some_ids(5));
    };
    const Settings exact{{"activation-precision", "exact"}, {"kv-cache-dtype", "f32"}, {"dtype", "f32"}};
    const Logits wanted = logits(numbers.write_folder(folder, architecture, DType::f32), exact);
    EXPECT_LT(logit_difference(logits(folder / "m.gguf", exact), wanted), 1e-5);
    const Logits codes = logits(folder / "m.gguf", {{"kv-cache-dtype", "f32"}, {"dtype", "f32"}});
    EXPECT_LT(logit_difference(codes, wanted), most);
  }
}

// An embedding is gathered without them.
TEST(FactorsOfBlocks, AreRefusedOfAnEmbedding) {
  const TemporaryFolder folder;
  const SampleCheckpoint sample(make_model_registry().find("qwen3", "test"), kModels[0].changes);
  testing::GgufBytes file = sample.gguf(DType::nvfp4);
  file.tensor("token_embd.scale", {1}, testing::kGgmlF32, testing::raw(0.5f));
  std::ofstream(folder / "m.gguf", std::ios::binary) << file.bytes();
  EXPECT_NE(message_of([&] { tiny_engine(folder / "m.gguf", {}); }).find("token_embd.scale"), std::string::npos);
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
