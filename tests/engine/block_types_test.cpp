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

class BlockTypes : public ::testing::TestWithParam<DType> {
 protected:
  static Logits logits(const std::string& path, const Settings& settings) {
    return all_logits(*tiny_engine(path, settings), some_ids(5));
  }

  const TemporaryFolder folder_;
  // Files of this architecture have the rows of its matrices as folders have them.
  const SampleCheckpoint sample_{make_model_registry().find("qwen3", "test"),
                                 {{"hidden_size", 256}, {"intermediate_size", 512}, {"head_dim", 64}}};
};

TEST_P(BlockTypes, AreComputedWithAsTheNumbersThatTheyStandFor) {
  SampleCheckpoint numbers = sample_;
  numbers.round_matrices_to(GetParam());
  const std::string blocks = sample_.write_gguf(folder_, "m.gguf", GetParam());
  const Settings exact{{"activation-precision", "exact"}, {"kv-cache-dtype", "f32"}, {"dtype", "f32"}};
  const Logits wanted = logits(numbers.write_folder(folder_, "numbers", DType::f32), exact);
  EXPECT_LT(logit_difference(logits(blocks, exact), wanted), 1e-5);
  const Settings fast{{"kv-cache-dtype", "f32"}, {"dtype", "f32"}};
  Settings eager = fast;
  eager.emplace_back("enforce-eager", "true");
  const Logits codes = logits(blocks, fast);
  EXPECT_EQ(codes, logits(blocks, eager));
  // Activations have codes of 8 bits.
  EXPECT_LT(logit_difference(codes, wanted), 0.05);
  EXPECT_GT(logit_difference(codes, wanted), 1e-5);
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
