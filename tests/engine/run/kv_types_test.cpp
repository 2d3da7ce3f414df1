// The types of KV pages: answers near those of f32 pages, the same however the model is run, and a name for a type that
// a model's heads do not fit.

#include <gtest/gtest.h>

#include "base/error.h"
#include "builtin/models.h"
#include "tests/engine/tiny_model.h"
#include "tests/sample_checkpoint.h"

namespace weft::kv_types_test {

using Settings = std::vector<std::pair<std::string, std::string>>;
using Logits = std::vector<std::vector<float>>;

class KvTypes : public ::testing::Test {
 protected:
  // Logits of 60 positions.
  Logits logits_of(const char* pages, Settings settings = {}) const {
    settings.insert(settings.end(), {{"dtype", "f32"}, {"activation-precision", "exact"}, {"kv-cache-dtype", pages}});
    return all_logits(*tiny_engine(path_, settings), some_ids(60));
  }

  const ModelRegistry models_ = make_model_registry();
  const TemporaryFolder folder_;
  const std::string path_ =
      SampleCheckpoint(models_.find("qwen3", "test"), {{"head_dim", 32}}, 7).write_folder(folder_, "m", DType::f32);
};

// A code of q8_0 is off by at most 1/254 of its block's largest value (0.6 % in the mean of a block of normal numbers),
// one of f8e4m3 by 1/16 of its own. Each of the two layers adds its part.
TEST_F(KvTypes, CodesAreNearNumbers) {
  const Logits wanted = logits_of("f32");
  const double q8 = logit_difference(logits_of("q8_0"), wanted), fp8 = logit_difference(logits_of("fp8"), wanted);
  EXPECT_GT(q8, 0);
  EXPECT_LT(q8, 0.03);
  EXPECT_GT(fp8, q8);
  EXPECT_LT(fp8, 0.1);
}

TEST_F(KvTypes, LogitsAreTheSameHoweverTheModelIsRun) {
  for (const char* pages : {"q8_0", "fp8"}) {
    const Logits wanted = logits_of(pages);
    EXPECT_EQ(logits_of(pages, {{"enforce-eager", "true"}}), wanted) << pages;
    EXPECT_EQ(logits_of(pages, {{"max-num-batched-tokens", "1"}}), wanted) << pages;
    EXPECT_EQ(logits_of(pages, {{"max-num-batched-tokens", "7"}}), wanted) << pages;
    EXPECT_EQ(logits_of(pages, {{"block-size", "5"}}), wanted) << pages;
  }
}

TEST_F(KvTypes, NameATypeThatHeadsDoNotFill) {
  const std::string narrow = write_tiny_model(folder_);  // heads of 16
  EXPECT_NO_THROW(tiny_engine(narrow, {{"kv-cache-dtype", "fp8"}}));
  try {
    tiny_engine(narrow, {{"kv-cache-dtype", "q8_0"}});
    ADD_FAILURE() << "was accepted";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("q8_0"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("16"), std::string::npos) << error.what();
  }
}

TEST_F(KvTypes, OfCodesAreRefusedOnAGpu) {
  for (const char* pages : {"q8_0", "fp8"})
    EXPECT_THROW(tiny_engine(path_, {{"device", "fake-cuda"}, {"kv-cache-dtype", pages}}), UserError) << pages;
}

// A value that no code holds shows in the logits instead of being rounded to one that does.
TEST_F(KvTypes, AnInfiniteKeyIsAnError) {
  SampleCheckpoint sample(models_.find("qwen3", "test"), {{"head_dim", 32}}, 7);
  sample.multiply("model.layers.1.self_attn.v_proj.weight", 1e38F);
  const std::string path = sample.write_folder(folder_, "infinite", DType::f32);
  const auto engine =
      tiny_engine(path, {{"dtype", "f32"}, {"activation-precision", "exact"}, {"kv-cache-dtype", "q8_0"}});
  EXPECT_THROW(all_logits(*engine, some_ids(5)), UserError);
}

}  // namespace weft::kv_types_test
