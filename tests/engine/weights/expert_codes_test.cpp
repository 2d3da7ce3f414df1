// Experts in folders with codes stay codes, and the logits in exact mode are those of a folder of their numbers. A note
// names what is stored as numbers.

#include <algorithm>
#include <fstream>

#include <gtest/gtest.h>

#include "builtin/models.h"
#include "io/quantized_weight.h"
#include "io/safetensors_writer.h"
#include "quantize/quantize_checkpoint.h"
#include "tests/engine/tiny_model.h"
#include "tests/sample_checkpoint.h"

namespace weft::expert_codes_test {

using nlohmann::json;
using Settings = std::vector<std::pair<std::string, std::string>>;

struct Case {
  NumberFormat format;
  std::int64_t block;     // rows and columns of fp8_block
  std::string stored_as;  // "": codes stay codes
};

class ExpertCodes : public ::testing::Test {
 protected:
  ExpertCodes() { sample_.write_folder(folder_, "plain", DType::bf16); }

  // The sample in the format.
  std::string write_codes(const Case& one) const {
    const std::string path = folder_ / "codes";
    std::filesystem::remove_all(path);
    ThreadPool threads(2);
    QuantizeRecipe recipe{.format = one.format, .block = {one.block, one.block}, .inputs = {}};
    for (const auto& [name, weight] : sample_.weights())
      if (one.format == NumberFormat::nvfp4 && weight.meta.rank() == 2) recipe.inputs.push_back({{name}, 4.0f});
    quantize_checkpoint(Checkpoint::open(folder_ / "plain"), model_, recipe, path, threads);
    return path;
  }

  // The numbers of a folder with codes.
  std::string write_numbers(const std::string& codes) const {
    const std::string path = folder_ / "numbers";
    std::filesystem::remove_all(path);
    std::filesystem::copy(folder_ / "plain", path, std::filesystem::copy_options::recursive);
    const Checkpoint checkpoint = Checkpoint::open(codes);
    const QuantizationConfig config = checkpoint.config(model_.facts).quantization.value();
    std::vector<NamedTensor> tensors;
    for (const auto& [name, weight] : sample_.weights())
      tensors.push_back({name, config.quantizes(name) && weight.meta.rank() == 2
                                   ? dequantized_weight(checkpoint, config, name)
                                   : checkpoint.tensor(name)});
    write_safetensors(path + "/model.safetensors", tensors);
    return path;
  }

  static std::vector<std::vector<float>> exact_logits(const std::string& path, Settings settings = {}) {
    settings.insert(settings.end(), {{"activation-precision", "exact"}, {"dtype", "f32"}, {"kv-cache-dtype", "f32"}});
    return all_logits(*tiny_engine(path, settings), some_ids(5));
  }

  const ModelDefinition model_ = make_model_registry().find("qwen3_moe", "test");
  const TemporaryFolder folder_;
  const SampleCheckpoint sample_{model_, {{"moe_intermediate_size", 128}}};
};

TEST_F(ExpertCodes, AreTheirNumbersAndTheDtypeIsNamed) {
  using enum NumberFormat;
  for (const Case& one : {Case{fp8, 0, ""}, Case{fp8_per_token, 0, ""}, Case{fp8_block, 32, ""},
                          Case{fp8_block, 16, "bf16"}, Case{int8, 0, ""}, Case{nvfp4, 0, ""}}) {
    SCOPED_TRACE(fmt::format("{} {} as {}", number_format_text(one.format), one.block, one.stored_as));
    const std::string path = write_codes(one);
    const auto wanted = exact_logits(write_numbers(path));
    EXPECT_EQ(exact_logits(path), wanted);
    EXPECT_EQ(exact_logits(path, {{"ir-op-priority.grouped_linear", "reference"}}),
              exact_logits(folder_ / "numbers", {{"ir-op-priority.grouped_linear", "reference"}}));
    std::string notes;
    const auto engine = tiny_engine(path, {{"max-num-batched-tokens", "16"}});
    for (const std::string& note : engine->runner().notes()) notes += note + "\n";
    EXPECT_EQ(engine->generate(some_ids(6), {.max_tokens = 2, .ignore_end = true}).tokens.size(), 2u);
    if (one.stored_as.empty()) {
      EXPECT_EQ(notes.find("stored as"), std::string::npos) << notes;
    } else {
      EXPECT_NE(notes.find("stored as " + one.stored_as + ", model.layers.0.mlp.experts"), std::string::npos) << notes;
    }
  }
}

}  // namespace weft::expert_codes_test
