// Folders whose quantization_config is none that `weft quantize` writes: ModelOpt's, Quark's, FBGEMM's, weights alone,
// scales of inputs that are powers of two. Their logits are compared with those of folders that it writes.

#include <filesystem>
#include <fstream>
#include <functional>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "builtin/models.h"
#include "io/safetensors_writer.h"
#include "quantize/quantize_checkpoint.h"
#include "tests/engine/tiny_model.h"
#include "tests/sample_checkpoint.h"

namespace weft::quantization_schemes_test {

using nlohmann::json;

std::string with_end(const std::string& name, std::string_view end, std::string_view other) {
  return name.substr(0, name.size() - end.size()) + std::string(other);
}

class QuantizationSchemes : public ::testing::Test {
 protected:
  std::string quantized(NumberFormat format) {
    std::vector<LinearInput> inputs;
    for (int layer = 0; layer < 2; ++layer) {
      const auto name = [&](const char* module) {
        return fmt::format("model.layers.{}.{}_proj.weight", layer, module);
      };
      inputs.push_back({{name("self_attn.q"), name("self_attn.k"), name("self_attn.v")}, 4});
      inputs.push_back({{name("self_attn.o")}, 4});
      inputs.push_back({{name("mlp.gate"), name("mlp.up")}, 4});
      inputs.push_back({{name("mlp.down")}, 4});
    }
    const std::string to = folder_ / fmt::format("quantized{}", count_++);
    quantize_checkpoint(Checkpoint::open(plain_), model_, {.format = format, .block = {32, 32}, .inputs = inputs}, to,
                        threads_);
    return to;
  }

  // A copy whose tensors have the names that `rename` gives. Those with "" are left out.
  std::string renamed(const std::string& path, const std::function<std::string(const std::string&, Tensor&)>& rename) {
    std::vector<NamedTensor> tensors;
    const Checkpoint checkpoint = Checkpoint::open(path);
    for (const TensorEntry& entry : checkpoint.tensors()) {
      Tensor copy = Tensor::empty(entry.tensor.meta);
      std::copy_n(entry.tensor.data(), copy.meta.bytes().number(), copy.data());
      const std::string name = rename(entry.name, copy);
      if (!name.empty()) tensors.push_back({name, copy});
    }
    std::string to = folder_ / fmt::format("renamed{}", count_++);
    std::filesystem::copy(path, to);
    write_safetensors(to + "/model.safetensors", tensors);
    return to;
  }

  // ModelOpt's scales of all elements are factors of the numbers.
  static std::string name_of_modelopt(const std::string& name, Tensor& tensor) {
    for (const auto& [end, other] :
         {std::pair{".weight_global_scale", ".weight_scale_2"}, std::pair{".input_global_scale", ".input_scale"}}) {
      if (!name.ends_with(end)) continue;
      *tensor.as<float>() = 1 / *tensor.as<float>();
      return with_end(name, end, other);
    }
    return name.ends_with("_packed") ? with_end(name, "_packed", "") : name;
  }

  json config_of(const std::string& path) {
    json config;
    std::ifstream(path + "/config.json") >> config;
    return config;
  }
  static void write(const json& content, const std::string& path) { std::ofstream(path) << content; }

  static std::vector<std::vector<float>> logits(const std::string& path, const std::string& precision) {
    return all_logits(*tiny_engine(path, {{"activation-precision", precision}, {"kv-cache-dtype", "f32"}}),
                      some_ids(9));
  }

  const ModelDefinition model_ = make_model_registry().find("llama", "test");
  const TemporaryFolder folder_;
  const std::string plain_ = SampleCheckpoint(model_).write_folder(folder_, "plain", DType::bf16);
  ThreadPool threads_{2};
  int count_ = 0;
};

TEST_F(QuantizationSchemes, Nvfp4OfModelOptHasScalesThatMultiply) {
  const std::string other = quantized(NumberFormat::nvfp4), own = renamed(other, name_of_modelopt);
  json config = config_of(other);
  config["quantization_config"] = {{"quant_method", "modelopt"}, {"quant_algo", "NVFP4"}, {"ignore", {"lm_head*"}}};
  write(config, own + "/config.json");
  EXPECT_LT(logit_difference(logits(other, "exact"), logits(own, "exact")), 1e-5);
  EXPECT_LT(logit_difference(logits(other, "fast"), logits(own, "fast")), 0.02);
}

TEST_F(QuantizationSchemes, Fp8OfModelOptIsReadFromItsOwnFile) {
  const std::string other = quantized(NumberFormat::fp8), own = renamed(other, name_of_modelopt);
  json config = config_of(other);
  config["quantization_config"] = nullptr;
  write(config, own + "/config.json");
  write({{"producer", {{"name", "modelopt"}}},
         {"quantization", {{"quant_algo", "FP8"}, {"kv_cache_quant_algo", "FP8"}, {"exclude_modules", {"lm_head"}}}}},
        own + "/hf_quant_config.json");
  EXPECT_EQ(logits(other, "fast"), logits(own, "fast"));
  const Checkpoint checkpoint = Checkpoint::open(own);
  ASSERT_EQ(checkpoint.notes().size(), 1U);
  EXPECT_NE(checkpoint.notes()[0].find("hf_quant_config.json"), std::string::npos);
  const ModelConfig read = checkpoint.config(model_.facts);
  ASSERT_EQ(read.warnings.size(), 1U);
  EXPECT_NE(read.warnings[0].find("quantization.kv_cache_quant_algo is not applied"), std::string::npos);
}

TEST_F(QuantizationSchemes, Fp8AndInt8OfQuarkAreThoseOfOtherMethods) {
  const auto tensor = [](const char* dtype, const char* scheme, bool is_dynamic) {
    return json{{"dtype", dtype}, {"qscheme", scheme}, {"is_dynamic", is_dynamic}, {"symmetric", nullptr}};
  };
  const json fp8{{"weight", tensor("fp8_e4m3", "per_tensor", false)},
                 {"input_tensors", tensor("fp8_e4m3", "per_tensor", false)}};
  const json int8{{"weight", tensor("int8", "per_channel", false)},
                  {"input_tensors", tensor("int8", "per_channel", true)}};
  json keys = fp8;
  keys["output_tensors"] = tensor("fp8_e4m3", "per_tensor", false);
  for (const NumberFormat format : {NumberFormat::fp8, NumberFormat::int8}) {
    const bool is_fp8 = format == NumberFormat::fp8;
    const std::string path = quantized(format);
    const auto wanted = logits(path, "fast");
    json config = config_of(path);
    config["quantization_config"] = {{"quant_method", "quark"},
                                     {"global_quant_config", is_fp8 ? fp8 : int8},
                                     {"exclude", {"lm_head"}},
                                     {"layer_type_quant_config", json::object()},
                                     {"export", {{"kv_cache_group", json::array()}, {"pack_method", "reorder"}}}};
    if (is_fp8) config["quantization_config"]["layer_quant_config"] = {{"*k_proj", keys}};
    write(config, path + "/config.json");
    EXPECT_EQ(wanted, logits(path, "fast"));
    EXPECT_TRUE(Checkpoint::open(path).config(model_.facts).warnings.empty());
  }
}

TEST_F(QuantizationSchemes, Fp8OfFbgemmIsThatOfRowsAndTokens) {
  const std::string path = quantized(NumberFormat::fp8_per_token);
  const auto wanted = logits(path, "fast");
  json config = config_of(path);
  config["quantization_config"] = {
      {"quant_method", "fbgemm_fp8"}, {"activation_scale_ub", 1200.0}, {"modules_to_not_convert", {"lm_head"}}};
  write(config, path + "/config.json");
  EXPECT_EQ(wanted, logits(path, "fast"));
  const ModelConfig read = Checkpoint::open(path).config(model_.facts);
  ASSERT_EQ(read.warnings.size(), 1U);
  EXPECT_NE(read.warnings[0].find("activation_scale_ub is not applied"), std::string::npos);
}

// As in vLLM's schemes of weights alone. Fast mode gives inputs the codes that it gives to those of GGUF files.
TEST_F(QuantizationSchemes, WeightsAloneNeedNoScalesOfInputs) {
  for (const NumberFormat format : {NumberFormat::int8, NumberFormat::nvfp4}) {
    const std::string path = quantized(format);
    const std::string alone = renamed(
        path, [](const std::string& name, Tensor&) { return name.ends_with(".input_global_scale") ? "" : name; });
    json config = config_of(path);
    config["quantization_config"]["config_groups"]["group_0"]["input_activations"] = nullptr;
    write(config, alone + "/config.json");
    const auto exact = logits(path, "exact");
    EXPECT_EQ(exact, logits(alone, "exact"));
    EXPECT_LT(logit_difference(exact, logits(alone, "fast")), 3 * logit_difference(exact, logits(path, "fast")));
  }
}

TEST_F(QuantizationSchemes, ScalesOfInputsArePowersOfTwoWhereTheConfigSaysSo) {
  const std::string path = quantized(NumberFormat::fp8_block);
  const auto exact = logits(path, "exact"), plain = logits(path, "fast");
  json config = config_of(path);
  config["quantization_config"]["scale_fmt"] = "ue8m0";
  write(config, path + "/config.json");
  EXPECT_EQ(exact, logits(path, "exact"));
  const auto rounded = logits(path, "fast");
  EXPECT_NE(plain, rounded);
  EXPECT_LT(logit_difference(exact, rounded), 3 * logit_difference(exact, plain)) << "codes have a bit less";
}

}  // namespace weft::quantization_schemes_test
