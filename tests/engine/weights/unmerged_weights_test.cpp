// Query, key and value, or gate and up, whose blocks of scales cross the borders between them, are multiplied one by
// one, which changes no result.

#include <algorithm>
#include <fstream>

#include <gtest/gtest.h>

#include "builtin/context.h"
#include "builtin/cuda_device.h"
#include "builtin/models.h"
#include "io/safetensors_writer.h"
#include "quantize/quantize_checkpoint.h"
#include "tests/engine/tiny_model.h"
#include "tests/sample_checkpoint.h"

namespace weft::unmerged_weights_test {

using nlohmann::json;
using Settings = std::vector<std::pair<std::string, std::string>>;

class UnmergedWeights : public ::testing::Test {
 protected:
  UnmergedWeights() {
    ThreadPool threads(2);
    const QuantizeRecipe recipe{.format = NumberFormat::fp8_block, .block = {32, 32}, .inputs = {}};
    quantize_checkpoint(Checkpoint::open(sample_.write_folder(folder_, "plain", DType::bf16)), model_, recipe,
                        folder_ / "quantized", threads);
  }

  // The quantized model with blocks of so many rows. All scales are equal, so that its numbers are the same for any.
  std::string with_blocks_of(std::int64_t rows) const {
    const std::string from = folder_ / "quantized", to = folder_ / std::to_string(rows);
    std::filesystem::copy(from, to, std::filesystem::copy_options::recursive);
    json config;
    std::ifstream(from + "/config.json") >> config;
    config["quantization_config"]["weight_block_size"] = {rows, 32};
    std::ofstream(to + "/config.json") << config;
    const Checkpoint checkpoint = Checkpoint::open(from);
    std::vector<NamedTensor> tensors;
    for (const TensorEntry& entry : checkpoint.tensors()) {
      NamedTensor tensor{entry.name, entry.tensor};
      const std::size_t suffix = entry.name.rfind("_scale_inv");
      if (suffix != std::string::npos) {
        const std::int64_t height = checkpoint.tensor(entry.name.substr(0, suffix)).meta.shape[0].number();
        tensor.tensor =
            Tensor::empty(Meta::tensor(DType::f32, {(height + rows - 1) / rows, entry.tensor.meta.shape[1]}));
        std::fill_n(tensor.tensor.as<float>(), tensor.tensor.meta.bytes().number() / 4, 0.005F);
      }
      tensors.push_back(tensor);
    }
    write_safetensors(to + "/model.safetensors", tensors);
    return to;
  }

  std::unique_ptr<Engine> engine(const std::string& path, Settings settings) const {
    settings.emplace_back("max-num-batched-tokens", "16");
    return tiny_engine(path, settings);
  }

  const ModelDefinition model_ = make_model_registry().find("llama", "test");
  const TemporaryFolder folder_;
  const SampleCheckpoint sample_{model_};
};

TEST_F(UnmergedWeights, AreMultipliedOneByOneInEachMode) {
  // Rows of query, key and value: 64, 32, 32; of gate and up: 96 each.
  const std::string whole = with_blocks_of(32), crossing = with_blocks_of(64), last = with_blocks_of(48);
  for (const Settings& settings :
       {Settings{}, Settings{{"enforce-eager", "true"}}, Settings{{"activation-precision", "exact"}},
        Settings{{"check-replay", "true"}}, Settings{{"dtype", "bf16"}}}) {
    const auto wanted = all_logits(*engine(whole, settings), some_ids(6));
    EXPECT_EQ(all_logits(*engine(crossing, settings), some_ids(6)), wanted);
    EXPECT_EQ(all_logits(*engine(last, settings), some_ids(6)), wanted);
  }
}

TEST_F(UnmergedWeights, AreNamedWithTheReason) {
  const auto notes = [&](std::int64_t rows, const Settings& settings = {}) {
    const auto made = engine(with_blocks_of(rows), settings);
    std::filesystem::remove_all(folder_ / std::to_string(rows));
    return made->runner().notes();
  };
  EXPECT_TRUE(notes(32).empty());
  const std::vector<std::string> crossing = notes(64);
  ASSERT_EQ(crossing.size(), 1u) << "one line for all layers";
  EXPECT_NE(crossing[0].find("model.layers.0.mlp.gate_proj.weight"), std::string::npos) << crossing[0];
  EXPECT_NE(crossing[0].find("3 more"), std::string::npos) << crossing[0];
  EXPECT_NE(crossing[0].find("blocks of 64 rows"), std::string::npos) << crossing[0];
  EXPECT_NE(notes(48)[0].find("1 more"), std::string::npos) << "96 rows of gate are whole blocks of 48";
  EXPECT_TRUE(notes(64, {{"activation-precision", "exact"}}).empty()) << "numbers can be merged";
}

TEST_F(UnmergedWeights, RunOnADevice) {
  const std::string path = with_blocks_of(64);
  Options options;
  set_option(options, "device", "fake-cuda", "test");
  set_option(options, "dtype", "bf16", "test");
  set_option(options, "max-num-batched-tokens", "16", "test");
  for (const int capability : {80, 90}) {
    const auto context = make_context(options);
    put_on_fake_cuda(*context, {.compute_capability = capability}, {});
    Engine engine(context, Checkpoint::open(path), make_model_registry());
    EXPECT_EQ(engine.generate(some_ids(6), {.max_tokens = 2, .ignore_end = true}).tokens.size(), 2u);
  }
}

}  // namespace weft::unmerged_weights_test
