// Folders whose head has codes: its logits are those of the numbers that the codes stand for.

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "builtin/models.h"
#include "io/quantized_weight.h"
#include "io/safetensors_writer.h"
#include "quantize/quantize_checkpoint.h"
#include "quantize/weight_codes.h"
#include "tensor/convert.h"
#include "tests/engine/tiny_model.h"
#include "tests/sample_checkpoint.h"
#include "tests/thrown_message.h"

namespace weft::quantized_head_test {

using nlohmann::json;

constexpr const char* kHead = "lm_head.weight";

class QuantizedHead : public ::testing::Test {
 protected:
  // A folder in this format, whose head has codes, too.
  std::string write(NumberFormat format) {
    const std::string plain = sample_.write_folder(folder_, "plain", DType::bf16), to = folder_ / "quantized";
    quantize_checkpoint(Checkpoint::open(plain), model_, {.format = format, .block = {1, 32}}, to, threads_);
    json config;
    std::ifstream(to + "/config.json") >> config;
    config["quantization_config"]["ignore"] = json::array();
    std::ofstream(to + "/config.json") << config;
    return with_head(to, codes_of_head(format));
  }

  // The tensors of the head in this format.
  std::vector<NamedTensor> codes_of_head(NumberFormat format) {
    const Tensor weight = head();
    const std::int64_t shape[] = {weight.meta.shape[0].number(), weight.meta.shape[1].number()};
    if (format == NumberFormat::w4a16) {
      const CodesAndScales packed = quantize_int4(weight, 32, threads_);
      return {{"lm_head.weight_packed", packed.codes},
              {"lm_head.weight_scale", packed.scales},
              {"lm_head.weight_shape", Tensor::from_bytes(Meta::tensor(DType::i64, {2}), shape)}};
    }
    const DType codes = format == NumberFormat::int8 ? DType::i8 : DType::f8e4m3;
    const CodesAndScales scaled = quantize_blocks(weight, codes, 1, shape[1], threads_);
    return {{kHead, scaled.codes}, {"lm_head.weight_scale", scaled.scales}};
  }

  Tensor head() const {
    for (const auto& [name, weight] : sample_.weights())
      if (name == kHead) return weight;
    return {};
  }

  // The folder with these tensors in place of those of its head.
  static std::string with_head(const std::string& path, const std::vector<NamedTensor>& head) {
    std::vector<NamedTensor> tensors = head;
    {
      const Checkpoint checkpoint = Checkpoint::open(path);
      for (const TensorEntry& entry : checkpoint.tensors()) {
        if (entry.name.starts_with("lm_head.")) continue;
        Tensor copy = Tensor::empty(entry.tensor.meta);
        std::copy_n(entry.tensor.data(), copy.meta.bytes().number(), copy.data());
        tensors.push_back({entry.name, copy});
      }
    }
    write_safetensors(path + "/model.safetensors", tensors);
    return path;
  }

  static std::vector<std::vector<float>> logits(const std::string& path, const std::string& precision) {
    return all_logits(*tiny_engine(path, {{"activation-precision", precision}, {"kv-cache-dtype", "f32"}}),
                      some_ids(9));
  }

  const ModelDefinition model_ = make_model_registry().find("llama", "test");
  const TemporaryFolder folder_;
  const SampleCheckpoint sample_{model_,
                                 {{"tie_word_embeddings", false}, {"torch_dtype", "float32"}, {"vocab_size", 264}}};
  ThreadPool threads_{2};
};

TEST_F(QuantizedHead, GivesTheLogitsOfItsNumbers) {
  for (const NumberFormat format : {NumberFormat::w4a16, NumberFormat::int8, NumberFormat::fp8_per_token}) {
    SCOPED_TRACE(number_format_text(format));
    const std::string path = write(format);
    const auto exact = logits(path, "exact"), fast = logits(path, "fast");
    const Checkpoint checkpoint = Checkpoint::open(path);
    const QuantizationConfig config = checkpoint.config(model_.facts).quantization.value();
    ASSERT_TRUE(config.quantizes(kHead));
    const Tensor numbers = dequantized_weight(checkpoint, *config.of(kHead), kHead);
    const std::string plain = with_head(path, {{kHead, numbers}});
    EXPECT_FALSE(Checkpoint::open(plain).config(model_.facts).quantization.value().quantizes(kHead));
    EXPECT_LT(logit_difference(exact, logits(plain, "exact")), 1e-5);
    // In fast mode the head's inputs have codes, too.
    const double rounding = logit_difference(fast, logits(plain, "fast"));
    EXPECT_LT(rounding, 0.05);
    EXPECT_GT(rounding, 1e-5);
    std::filesystem::remove_all(path);
    std::filesystem::remove_all(folder_ / "plain");
  }
}

TEST_F(QuantizedHead, IsWrittenAsNumbers) {
  const std::string path = write(NumberFormat::w4a16), to = folder_ / "numbers";
  quantize_checkpoint(Checkpoint::open(path), model_, {.format = NumberFormat::bf16}, to, threads_);
  const Checkpoint checkpoint = Checkpoint::open(path), written = Checkpoint::open(to);
  const QuantizationConfig config = checkpoint.config(model_.facts).quantization.value();
  const Tensor wanted = dequantized_weight(checkpoint, config, kHead), &came = written.tensor(kHead);
  ASSERT_EQ(came.meta, Meta::tensor(DType::bf16, wanted.meta.shape));
  for (std::int64_t i = 0; i < element_count(wanted.meta.shape).number(); ++i)
    ASSERT_NEAR(load_float(DType::bf16, came.data(), i), wanted.as<float>()[i], 1e-2);
}

// GPTQ states whether the head has codes, and a file without them is wrong.
TEST_F(QuantizedHead, IsMissingByNameWhereTheConfigWantsIt) {
  const std::string path = sample_.write_folder(folder_, "gptq", DType::bf16);
  json config;
  std::ifstream(path + "/config.json") >> config;
  config["quantization_config"] = {{"quant_method", "gptq"}, {"bits", 4},
                                   {"group_size", 32},       {"desc_act", false},
                                   {"lm_head", true},        {"dynamic", {{"-:model", json::object()}}}};
  std::ofstream(path + "/config.json") << config;
  EXPECT_NE(message_of([&] { tiny_engine(path); }).find("lm_head.qweight"), std::string::npos);
}

}  // namespace weft::quantized_head_test
