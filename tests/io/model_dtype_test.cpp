#include "io/model_dtype.h"

#include <string>

#include <gtest/gtest.h>

#include "base/files.h"
#include "builtin/models.h"
#include "tests/io/tiny_config.h"
#include "tests/sample_checkpoint.h"

namespace weft::model_dtype_test {

using namespace tiny_config;

TEST(ModelDtype, IsWhatTheConfigStates) {
  for (const auto& [text, dtype] : {std::pair{"float16", DType::f16}, std::pair{"torch.bfloat16", DType::bf16}}) {
    auto config = tiny_json();
    config["torch_dtype"] = text;
    EXPECT_EQ(read(config).dtype, dtype);
    EXPECT_TRUE(read(config).has_dtype);
  }
  auto config = tiny_json();
  config["torch_dtype"] = "auto";
  EXPECT_FALSE(read(config).has_dtype);
  EXPECT_EQ(refusal("torch_dtype", "float8_e4m3fn"),
            "[config.json] torch_dtype must be float32, float16 or bfloat16, but is \"float8_e4m3fn\"");
}

TEST(ModelDtype, IsElseThatOfTheTensors) {
  const ModelDefinition model = make_model_registry().find("llama", "test");
  const TemporaryFolder folder;
  const SampleCheckpoint sample(model, {{"torch_dtype", nullptr}});
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    const std::string path = sample.write_folder(folder, std::string(dtype_text(dtype)), dtype);
    const ModelConfig config = Checkpoint::open(path).config(model.facts);
    EXPECT_EQ(config.dtype, dtype);
    EXPECT_TRUE(config.warnings.empty());
  }
  const std::string path = folder / "bf16";
  const auto weights = [&](const Checkpoint& checkpoint) { return model.tensors(checkpoint.config(model.facts)); };
  const ModelConfig assumed = Checkpoint::open_dummy(path, weights).config(model.facts);
  EXPECT_EQ(assumed.dtype, DType::bf16);
  ASSERT_EQ(assumed.warnings.size(), 1U);
  EXPECT_NE(assumed.warnings[0].find("states no dtype: bfloat16 is assumed"), std::string::npos);
}

// In folders of mlx-lm the codes of embeddings, and their scales, may be integers.
TEST(ModelDtype, MayBeThatOfANorm) {
  const std::string path = WEFT_TEST_DATA "/models/mlx_qwen3";
  auto json = nlohmann::json::parse(read_file(path + "/config.json", 1 << 20));
  json.erase("dtype");
  const TemporaryFolder folder;
  write_then_rename(folder / "config.json", json.dump());
  write_then_rename(folder / "model.safetensors", read_file(path + "/model.safetensors", 1 << 24));
  const Checkpoint checkpoint = Checkpoint::open(folder.path());
  const ModelConfig config = checkpoint.config(make_model_registry().find(checkpoint).facts);
  EXPECT_EQ(config.dtype, DType::f32);
  EXPECT_TRUE(config.warnings.empty());
}

}  // namespace weft::model_dtype_test
