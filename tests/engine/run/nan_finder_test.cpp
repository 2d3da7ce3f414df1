// NaN among logits, and the report of its origin.

#include "engine/run/nan_finder.h"

#include <limits>

#include <gtest/gtest.h>

#include "base/error.h"
#include "builtin/context.h"
#include "builtin/cuda_device.h"
#include "builtin/models.h"
#include "tests/engine/tiny_model.h"
#include "tests/sample_checkpoint.h"
#include "tests/thrown_message.h"

namespace weft::nan_finder_test {

class NanAmongLogits : public ::testing::Test {
 protected:
  // A model with one changed weight, and the log while it scores a few tokens.
  std::string said_of(const std::string& name, float factor, std::vector<std::pair<std::string, std::string>> options,
                      DType dtype = DType::f32) {
    SampleCheckpoint sample(model_, {{"torch_dtype", dtype == DType::f32 ? "float32" : "bfloat16"}});
    sample.multiply(name, factor);
    const std::string path = sample.write_folder(folder_, "m" + std::to_string(count_++), dtype);
    auto engine = tiny_engine(path, options);
    const std::string scored = message_of([&] { all_logits(*engine, some_ids(5)); });
    SamplingParameters parameters;
    parameters.max_tokens = 3;
    EXPECT_EQ(message_of([&] { engine->generate(some_ids(5), parameters); }).empty(), scored.empty());
    EXPECT_TRUE(engine->is_idle());
    return scored;
  }

  static constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const ModelDefinition model_ = make_model_registry().find("llama", "test");
  const TemporaryFolder folder_;
  int count_ = 0;
};

using Settings = std::vector<std::pair<std::string, std::string>>;

TEST_F(NanAmongLogits, NamesTheLayerOrTheHead) {
  for (const Settings& options : {Settings{}, Settings{{"enforce-eager", "true"}}}) {
    EXPECT_EQ(said_of("lm_head.weight", 1, options), "");
    EXPECT_NE(said_of("lm_head.weight", kNan, options)
                  .find("[logits] some are not numbers (NaN), and the first NaN is the result of "
                        "the head; WEFT_LOGS=+nan finds the op"),
              std::string::npos);
    EXPECT_NE(
        said_of("model.layers.1.self_attn.k_proj.weight", kNan, options).find("layer 0 or layer 1, which has NaN"),
        std::string::npos);
    EXPECT_NE(said_of("model.layers.0.self_attn.k_proj.weight", kNan, options)
                  .find("the embedding or layer 0, which has NaN"),
              std::string::npos);
    EXPECT_NE(said_of("model.layers.1.mlp.down_proj.weight", kNan, options)
                  .find("layer 1, which is the last one, or the norm"),
              std::string::npos);
  }
}

TEST_F(NanAmongLogits, TheOpIsFoundWhereTheLogAsksForIt) {
  const Settings options{{"logs", "+nan"}};
  const std::string down = said_of("model.layers.0.mlp.down_proj.weight", kNan, options);
  EXPECT_NE(down.find("the first op with NaN is linear in layer 0, from a weight that has NaN"), std::string::npos)
      << down;
  const std::string head = said_of("lm_head.weight", kNan, options);
  EXPECT_NE(head.find("linear in the head"), std::string::npos) << head;
}

// Keys beyond 65504, and queries so small that scores are as they were.
TEST_F(NanAmongLogits, AnOverflowOfKeysNamesTypeAndLayer) {
  const std::string keys = "model.layers.1.self_attn.k_proj.weight";
  const std::string said = said_of(keys, 1e6F, {{"kv-cache-dtype", "f16"}});
  EXPECT_NE(said.find("[kv cache] the key of token "), std::string::npos) << said;
  EXPECT_NE(said.find(" in layer 1 is beyond what f16 holds"), std::string::npos) << said;
  EXPECT_EQ(said_of(keys, 1e6F, {}), "");
  EXPECT_EQ(said_of(keys, 1e6F, {}, DType::bf16), "");
}

// A key beyond f16 makes the score plus or minus infinity. Minus infinity hides the token, and the logits are numbers.
TEST(InfiniteKeys, AreFoundWithLayerAndPosition) {
  const Meta meta = Meta::pages({.dtype = DType::f16, .block = 4, .heads = 2, .head_dim = 3});
  std::vector<Tensor> pages{Tensor::empty(meta, 6), Tensor::empty(meta, 6)};
  const std::vector<std::int32_t> blocks{5, 0, 2};
  EXPECT_FALSE(find_infinite_key(pages, blocks, 0, 11));
  for (const std::uint16_t infinity : {0x7c00, 0xfc00})
    for (std::int64_t position = 0; position < 11; ++position)
      for (std::int64_t head = 0; head < 2; ++head) {
        const std::int32_t page = blocks[static_cast<std::size_t>(position / 4)];
        std::uint16_t& element =
            pages[1].as<std::uint16_t>()[kv_key_offset(meta.kv, page, head) + 2 * meta.kv.block + position % 4];
        element = infinity;
        const auto found = find_infinite_key(pages, blocks, 0, 11);
        ASSERT_TRUE(found) << position;
        EXPECT_EQ(found->pages, 1U);
        EXPECT_EQ(found->position, position);
        EXPECT_TRUE(found->is_key);
        EXPECT_TRUE(find_infinite_key(pages, blocks, position, position + 1));
        EXPECT_FALSE(find_infinite_key(pages, blocks, position + 1, 11));
        EXPECT_FALSE(find_infinite_key(pages, blocks, 0, position));
        element = 0x7bff;  // the largest number
        EXPECT_FALSE(find_infinite_key(pages, blocks, 0, 11));
      }
}

// Keys of either sign, also in chunks of a prompt that have no logits yet.
TEST_F(NanAmongLogits, AnOverflowOfKeysIsAnErrorWhateverItsScores) {
  for (const float factor : {1e6F, -1e6F, 1e30F})
    for (const Settings& options :
         {Settings{{"kv-cache-dtype", "f16"}}, Settings{{"kv-cache-dtype", "f16"}, {"enforce-eager", "true"}},
          Settings{{"kv-cache-dtype", "f16"}, {"max-num-batched-tokens", "2"}}}) {
      const std::string said = said_of("model.layers.0.self_attn.k_proj.weight", factor, options);
      EXPECT_NE(said.find(" in layer 0 is beyond what f16 holds"), std::string::npos) << said;
    }
}

TEST_F(NanAmongLogits, OnADeviceNamesTheLayer) {
  SampleCheckpoint sample(model_, {{"torch_dtype", "bfloat16"}});
  sample.multiply("model.layers.1.self_attn.k_proj.weight", kNan);
  const std::string path = sample.write_folder(folder_, "device", DType::bf16);
  for (const bool hides : {false, true}) {
    Options options;
    set_option(options, "device", "fake-cuda", "test");
    set_option(options, "max-num-batched-tokens", "16", "test");
    const auto context = make_context(options);
    cuda::FakeSettings fake;
    fake.hides_memory = hides;
    put_on_fake_cuda(*context, std::move(fake), {});
    Engine engine(context, Checkpoint::open(path), make_model_registry());
    const std::string said = message_of([&] { all_logits(engine, some_ids(5)); });
    EXPECT_NE(said.find("layer 0 or layer 1, which has NaN"), std::string::npos) << said;
  }
}

TEST_F(NanAmongLogits, OnADeviceAnOverflowOfKeysIsFoundAtTheEndOfTheAnswer) {
  for (const float factor : {1.0F, 1e6F, -1e6F}) {
    SampleCheckpoint sample(model_, {{"torch_dtype", "bfloat16"}});
    sample.multiply("model.layers.1.self_attn.k_proj.weight", factor);
    const std::string path = sample.write_folder(folder_, "overflow" + std::to_string(count_++), DType::bf16);
    Options options;
    for (const auto& [name, value] :
         Settings{{"device", "fake-cuda"}, {"max-num-batched-tokens", "16"}, {"kv-cache-dtype", "f16"}})
      set_option(options, name, value, "test");
    const auto context = make_context(options);
    cuda::FakeSettings fake;
    fake.hides_memory = true;
    put_on_fake_cuda(*context, std::move(fake), {});
    Engine engine(context, Checkpoint::open(path), make_model_registry());
    SamplingParameters parameters;
    parameters.max_tokens = 3;
    for (const std::string& said : {message_of([&] { all_logits(engine, some_ids(5)); }),
                                    message_of([&] { engine.generate(some_ids(5), parameters); })}) {
      EXPECT_EQ(said.find(" in layer 1 is beyond what f16 holds") != said.npos, factor != 1.0F) << factor << said;
    }
    EXPECT_TRUE(engine.is_idle());
  }
}

TEST_F(NanAmongLogits, PagesAreAsWideAsTheModelsType) {
  const SampleCheckpoint sample(model_);
  const auto pages = [&](const std::string& path, const Settings& options) {
    return tiny_engine(path, options)->runner().facts().kv.dtype;
  };
  const SampleCheckpoint half(model_, {{"torch_dtype", "bfloat16"}});
  const std::string folder = half.write_folder(folder_, "bf16", DType::bf16);
  EXPECT_EQ(pages(folder, {}), DType::bf16);
  EXPECT_EQ(pages(folder, {{"dtype", "f32"}}), DType::f32);
  EXPECT_EQ(pages(folder, {{"kv-cache-dtype", "f16"}}), DType::f16);
  EXPECT_EQ(pages(folder, {{"activation-precision", "exact"}}), DType::f32);
  for (const auto& [stored, wanted] : {std::pair{DType::f32, DType::f32},
                                       {DType::bf16, DType::bf16},
                                       {DType::f16, DType::f16},
                                       {DType::q4_1, DType::f16},
                                       {DType::q8_0, DType::f16}})
    EXPECT_EQ(pages(sample.write_gguf(folder_, std::string(dtype_text(stored)) + ".gguf", stored), {}), wanted)
        << dtype_text(stored);
}

}  // namespace weft::nan_finder_test
