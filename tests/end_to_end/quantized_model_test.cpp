// Every number format that `weft quantize` writes: the tiny checkpoint in it loads, answers nearly as in bf16, has the
// same answers in every mode, and gets every fusion that its model declares. Also the inputs that quantize and loading
// refuse. Four architectures are tried in every way, all others in two formats.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "builtin/models.h"
#include "io/checkpoint.h"
#include "io/safetensors_writer.h"
#include "tensor/convert.h"
#include "tests/program_run.h"
#include "tests/sample_checkpoint.h"

namespace weft::quantized_model_test {

using nlohmann::json;
using Words = std::vector<std::string>;

// `most` is the largest distance of logits from those of bf16. A code of fp8 is off by 2.6 % (root mean square), so a
// product of two by 3.7 %, and the sum over the linears of two layers by about four times that; one of int8 by 0.7 %,
// one of NVFP4 or int4 by 10 %.
struct Format {
  std::string name;
  Words words;  // of quantize
  double most = 0;
};

class QuantizedModel : public ::testing::TestWithParam<std::string> {
 protected:
  // Replaces the folder of an earlier call with this name.
  std::string quantize(const std::string& model, const std::string& name, const Words& words) const {
    std::filesystem::remove_all(folder_ / name);
    Words all{"quantize", model, "-o", folder_ / name};
    all.insert(all.end(), words.begin(), words.end());
    const ProgramRun run = run_weft(all);
    EXPECT_EQ(run.status, 0) << run.err;
    return folder_ / name;
  }
  static std::string refusal_of_quantize(const std::string& model, const Words& words, const std::string& part) {
    Words all{"quantize", model};
    all.insert(all.end(), words.begin(), words.end());
    return breach_of_refusal(run_weft(all), part);
  }
  // The logits of every position, by token.
  static std::vector<std::vector<double>> logits(const std::string& model, const Words& more = {}) {
    Words words{"logits", model, "--ids", "[10,30,55,9,200,77,31]", "--positions", "all", "--top-k", "257"};
    words.insert(words.end(), more.begin(), more.end());
    const ProgramRun run = run_weft(words);
    EXPECT_EQ(run.status, 0) << run.err;
    std::vector<std::vector<double>> rows;
    std::istringstream lines(run.out);
    for (std::string line; std::getline(lines, line);) {
      rows.emplace_back(257);
      const json position = json::parse(line);
      for (const json& pair : position.at("top")) rows.back().at(pair[0].get<std::size_t>()) = pair[1];
    }
    return rows;
  }
  // For each position: the root mean square of the difference, divided by that of the second; it is 1.4 for unrelated
  // logits. Returns the median, because where random attention is nearly undecided between two tokens, the smallest
  // rounding decides.
  static double difference(const std::vector<std::vector<double>>& a, const std::vector<std::vector<double>>& b) {
    std::vector<double> differences;
    EXPECT_EQ(a.size(), b.size());
    for (std::size_t row = 0; row < std::min(a.size(), b.size()); ++row) {
      double apart = 0, size = 0;
      for (std::size_t i = 0; i < a[row].size(); ++i) {
        apart += (a[row][i] - b[row][i]) * (a[row][i] - b[row][i]);
        size += b[row][i] * b[row][i];
      }
      differences.push_back(std::sqrt(apart / size));
    }
    std::sort(differences.begin(), differences.end());
    return differences.at(differences.size() / 2);
  }
  // Rewrites the folder's config.json, or one of its tensors.
  static void change_config(const std::string& model, const std::function<void(json&)>& change) {
    json config = json::parse(read_file(model + "/config.json", 1 << 20));
    change(config);
    std::ofstream(model + "/config.json") << config.dump();
  }
  static void change_tensor(const std::string& model, const std::string& name, const std::optional<Tensor>& tensor) {
    std::vector<NamedTensor> tensors;
    {
      const Checkpoint checkpoint = Checkpoint::open(model);
      for (const TensorEntry& entry : checkpoint.tensors())
        if (entry.name != name) tensors.push_back({entry.name, entry.tensor});
      if (tensor) tensors.push_back({name, *tensor});
      write_safetensors(model + "/model.safetensors", tensors);
    }
  }
  static std::string load_refusal(const std::string& model, const std::string& part) {
    return breach_of_refusal(run_weft({"logits", model, "--ids", "[1,2,3]"}), part);
  }

  const TemporaryFolder folder_;
  // Widths are multiples of 64, as the fusions with groups need. Each token chooses all experts if the family allows
  // it: where two of them have nearly the same score, the smallest rounding would decide which is chosen. The seeds are
  // ones with which no other choice is that near.
  static SampleCheckpoint sample_with_all_experts() {
    const ModelRegistry models = make_model_registry();
    const ModelDefinition& model = models.find(GetParam(), "test");
    const json widths{{"hidden_size", 128}, {"intermediate_size", 192}};
    json changes = widths;
    if (const auto experts = SampleCheckpoint(model).config().experts) {
      changes["num_experts_per_tok"] = experts->count;
      if (experts->groups > 1) changes["topk_group"] = experts->groups;
      if (!is_allowed(model, SampleCheckpoint(model, changes).config())) changes = widths;
    }
    return SampleCheckpoint(model, changes, changes.contains("num_experts_per_tok") ? 12 : 7);
  }
  static bool is_allowed(const ModelDefinition& model, const ModelConfig& config) {
    try {
      if (model.check) model.check(config);
      return true;
    } catch (const UserError&) {
      return false;
    }
  }

  const SampleCheckpoint sample_ = sample_with_all_experts();
  const std::string folder_model_ = sample_.write_folder(folder_, "plain", DType::bf16);
  const std::string gguf_model_ = sample_.write_gguf(folder_, "plain.gguf", DType::f32);
  const std::string text_ = [this] {
    std::ofstream(folder_ / "text") << "The sea is deep, and the boats go out at 5 in the morning.";
    return folder_ / "text";
  }();
  const std::vector<Format> formats_ = {{"fp8-block", {"--format", "fp8-block"}, 0.2},
                                        {"fp8-per-token", {"--format", "fp8-per-token"}, 0.2},
                                        {"int8", {"--format", "int8"}, 0.06},
                                        {"fp8", {"--format", "fp8"}, 0.2},
                                        {"fp8-static", {"--format", "fp8", "--calibrate", text_}, 0.2},
                                        {"nvfp4", {"--format", "nvfp4", "--calibrate", text_}, 0.7},
                                        {"w4a16", {"--format", "w4a16", "--group-size", "64"}, 0.7}};
};

TEST_P(QuantizedModel, AnswersNearlyAsInBf16) {
  const auto wanted = logits(folder_model_);
  for (const Format& format : formats_) {
    const std::string model = quantize(folder_model_, format.name, format.words);
    const double fast = difference(logits(model), wanted);
    const double exact = difference(logits(model, {"--activation-precision", "exact"}), wanted);
    EXPECT_GT(fast, 1e-2) << format.name << ": as if nothing were quantized";
    EXPECT_LT(fast, format.most) << format.name;
    EXPECT_GT(exact, 1e-2) << format.name;
    EXPECT_LT(exact, format.most) << format.name;
  }
}

TEST_P(QuantizedModel, AnswersTheSameHoweverItIsRun) {
  for (const Format& format : formats_) {
    const std::string model = quantize(folder_model_, format.name, format.words);
    const auto wanted = logits(model);
    for (const Words& way : {Words{"--enforce-eager"}, Words{"-cc.pass_config.fuse_norm_quant=false"},
                             Words{"-cc.pass_config.fuse_act_quant=false"},
                             Words{"-cc.pass_config.fuse_attn_quant=false"}, Words{"--max-num-batched-tokens", "3"}})
      EXPECT_EQ(logits(model, way), wanted) << format.name << " " << way[0];
    const bool is_static = format.name == "nvfp4" || format.name == "fp8-static";
    const std::string fusions = is_static ? "act_quant=2,rms_quant=4,attn_quant=2" : "act_quant=2,rms_quant=4";
    EXPECT_EQ(logits(model, {"--expect-fusions=" + fusions}), wanted) << format.name;
    EXPECT_EQ(logits(model, {"--expect-fusions=all"}), wanted) << format.name;
  }
}

TEST_P(QuantizedModel, FromAGgufFileIsTheSameAsFromTheFolder) {
  for (const Format& format : formats_) {
    const std::string a = quantize(folder_model_, format.name, format.words);
    const std::string b = quantize(gguf_model_, format.name + "-of-gguf", format.words);
    // The observations of a calibration depend on the dtype of the residual stream.
    if (format.name == "nvfp4" || format.name == "fp8-static") {
      EXPECT_LT(difference(logits(b), logits(a)), format.most) << format.name;
    } else {
      EXPECT_EQ(read_file(a + "/model.safetensors", 1 << 24), read_file(b + "/model.safetensors", 1 << 24))
          << format.name;
      EXPECT_EQ(logits(a), logits(b)) << format.name;
    }
  }
}

TEST_P(QuantizedModel, InBf16HoldsTheSameNumbersAndTokens) {
  const std::string exact[] = {"--activation-precision", "exact", "--dtype", "f32"};
  const Words words(std::begin(exact), std::end(exact));
  const ArchitectureFacts facts = make_model_registry().find(GetParam(), "test").facts;
  const auto wanted = logits(folder_model_, words);
  for (const std::string& source : {folder_model_, gguf_model_}) {
    const std::string model =
        quantize(source, "bf16-" + std::string(source.ends_with("gguf") ? "gguf" : "folder"), {"--format", "bf16"});
    EXPECT_EQ(logits(model, words), wanted) << source;
    const auto ids = [](const std::string& path) { return run_weft({"tokenize", path, "-p", "Sea  21<end> x"}).out; };
    EXPECT_EQ(ids(model), ids(source));
    EXPECT_FALSE(ids(model).empty());
    EXPECT_EQ(Checkpoint::open(model).config(facts).quantization, std::nullopt);
  }
}

TEST_P(QuantizedModel, OfAQuantizedModelHoldsItsNumbers) {
  const std::string first = quantize(folder_model_, "first", {"--format", "fp8-per-token"});
  const std::string again = quantize(first, "again", {"--format", "fp8-per-token"});
  EXPECT_LT(difference(logits(again), logits(first)), 1e-2);
}

TEST_P(QuantizedModel, MayScaleTheInputsOfMergedWeightsDifferently) {
  const std::string model = quantize(folder_model_, "s", {"--format", "fp8", "--calibrate", text_});
  const auto wanted = logits(model);
  // Codes of twice the scale lose a bit of range that nothing used, and no precision but of the least.
  const std::string name = "model.layers.0.mlp.up_proj.input_scale";
  Tensor scale = contiguous(Checkpoint::open(model).tensor(name));
  const float twice = 2 * *scale.as<float>();
  change_tensor(model, name, Tensor::from_bytes(scale.meta, &twice));
  const auto got = logits(model);
  EXPECT_LT(difference(got, wanted), 0.1);
  EXPECT_EQ(logits(model, {"--enforce-eager"}), got);
}

TEST_P(QuantizedModel, IsRefusedWhereBlocksDoNotDivide) {
  const std::string out = folder_ / "out";
  EXPECT_EQ(refusal_of_quantize(folder_model_, {"-o", out, "--format", "fp8-block", "--block", "128x128"},
                                "[--block] 128x128 must divide the weights of all linear layers, but "
                                "model.layers.0.self_attn.k_proj.weight is 64x128"),
            "");
  EXPECT_FALSE(std::filesystem::exists(out)) << "left something behind";
  const std::string model = quantize(folder_model_, "b", {"--format", "fp8-block"});
  change_config(model, [](json& c) { c["quantization_config"]["weight_block_size"] = {64, 96}; });
  EXPECT_EQ(load_refusal(model, "model.layers.0.mlp.down_proj.weight_scale_inv must be f32[2, 2]"), "");
}

TEST_P(QuantizedModel, MultipliesWeightsOneByOneWhereTheirBlocksCrossBorders) {
  const std::string model = quantize(folder_model_, "b", {"--format", "fp8-block"});
  change_config(model, [](json& c) { c["quantization_config"]["weight_block_size"] = {128, 64}; });
  for (const int layer : {0, 1})
    for (const auto& [name, rows] :
         {std::pair{"self_attn.q_proj", 1}, std::pair{"self_attn.k_proj", 1}, std::pair{"self_attn.v_proj", 1},
          std::pair{"self_attn.o_proj", 1}, std::pair{"mlp.gate_proj", 2}, std::pair{"mlp.up_proj", 2},
          std::pair{"mlp.down_proj", 1}}) {
      Tensor scales = Tensor::empty(Meta::tensor(DType::f32, {rows, std::string(name) == "mlp.down_proj" ? 3 : 2}));
      std::fill_n(scales.as<float>(), element_count(scales.meta.shape).number(), 0.001f);
      change_tensor(model, fmt::format("model.layers.{}.{}.weight_scale_inv", layer, name), scales);
    }
  const ProgramRun compiled = run_weft({"logits", model, "-p", "abc"});
  EXPECT_EQ(compiled.status, 0) << compiled.err;
  EXPECT_NE(compiled.err.find("model.layers.0.mlp.gate_proj.weight"), std::string::npos) << compiled.err;
  EXPECT_NE(compiled.err.find("one by one"), std::string::npos) << compiled.err;
  EXPECT_EQ(run_weft({"logits", model, "-p", "abc", "--enforce-eager"}).out, compiled.out);
}

TEST_P(QuantizedModel, IsRefusedWhereTensorsAndConfigDisagree) {
  const std::string up = "model.layers.1.mlp.up_proj.";
  const auto broken = [&](const Format& format, const std::string& tensor, const std::optional<Tensor>& value) {
    const std::string model = quantize(folder_model_, "broken", format.words);
    change_tensor(model, up + tensor, value);
    return model;
  };
  const auto empty = [](DType dtype, const Shape& shape) { return Tensor::empty(Meta::tensor(dtype, shape)); };
  const Format &block = formats_[0], &token = formats_[1], &fixed = formats_[4], &nvfp4 = formats_[5];
  EXPECT_EQ(load_refusal(broken(block, "weight_scale_inv", {}), "wanted tensor " + up + "weight_scale_inv"), "");
  EXPECT_EQ(load_refusal(broken(block, "weight_scale_inv", empty(DType::f32, {2, 2})),
                         up + "weight_scale_inv must be f32[3, 2] as quantization_config says, but is f32[2, 2]"),
            "");
  EXPECT_EQ(load_refusal(broken(token, "weight", empty(DType::f8e5m2, {192, 128})),
                         up + "weight must be f8e4m3[192, 128] as quantization_config says, but is f8e5m2[192, 128]"),
            "");
  EXPECT_EQ(load_refusal(broken(token, "weight_scale", empty(DType::f32, {191, 1})),
                         up + "weight_scale must be f32[1] or f32[192, 1] as quantization_config says"),
            "");
  EXPECT_EQ(load_refusal(broken(fixed, "input_scale", {}), "wanted tensor " + up + "input_scale"), "");
  EXPECT_EQ(load_refusal(broken(fixed, "input_scale", empty(DType::f32, {1})),
                         up + "input_scale must be above 0 and finite, but is 0"),
            "");
  EXPECT_EQ(load_refusal(broken(nvfp4, "weight_packed", empty(DType::u8, {192, 128})),
                         up + "weight_packed must be u8[192, 64] as quantization_config says, but is u8[192, 128]"),
            "");
  EXPECT_EQ(load_refusal(broken(nvfp4, "weight_global_scale", {}), "wanted tensor " + up + "weight_global_scale"), "");
  const std::string model = quantize(folder_model_, "broken", token.words);
  change_config(model, [](json& c) { c.erase("quantization_config"); });
  EXPECT_EQ(load_refusal(model, "must hold floating point numbers or blocks, but is f8e4m3[128, 128]"), "");
}

TEST_P(QuantizedModel, IsRefusedForWordsThatDoNotFit) {
  const std::string out = folder_ / "out";
  const auto refusal = [&](const Words& words, const std::string& part) {
    return refusal_of_quantize(folder_model_, words, part);
  };
  EXPECT_EQ(refusal({"-o", out, "--format", "fp9"}, "[--format] must be one of bf16, fp8,"), "");
  EXPECT_EQ(refusal({"-o", out, "--format", "fp8-block", "--block", "64"}, "[--block] must be rows and columns"), "");
  EXPECT_EQ(refusal({"-o", out, "--format", "fp8-block", "--block", "0x64"}, "[--block] rows and columns must be"), "");
  EXPECT_EQ(refusal({"-o", out, "--format", "int8", "--block", "64x64"}, "[--block] is of use for fp8-block"), "");
  EXPECT_EQ(refusal({"-o", out, "--format", "int8", "--group-size", "64"}, "[--group-size] is of use for w4a16"), "");
  EXPECT_EQ(refusal({"-o", out, "--format", "w4a16", "--group-size", "48"}, "[--group-size] must be 32, 64 or 128"),
            "");
  EXPECT_EQ(refusal({"-o", out, "--format", "int8", "--calibrate", text_}, "[--calibrate] is of use for fp8"), "");
  EXPECT_EQ(refusal({"-o", out, "--format", "fp8", "--calibrate", folder_ / "no"}, "no"), "");
  EXPECT_EQ(refusal({"-o", folder_model_, "--format", "fp8"}, "[-o] must be a new or empty folder"), "");
  EXPECT_FALSE(std::filesystem::exists(out));
  std::filesystem::create_directory(out);
  std::ofstream(out + "/hf_quant_config.json") << "{}";
  // Before the calibration, which writes a note.
  EXPECT_EQ(refusal({"-o", out, "--format", "nvfp4"}, "\"hf_quant_config.json\""), "");
}

INSTANTIATE_TEST_SUITE_P(Architectures, QuantizedModel, ::testing::Values("gemma", "llama", "mistral", "qwen3"),
                         [](const auto& info) { return info.param; });

// Random models amplify errors by different factors, so each is compared with its own answers to errors of known size.
class EveryQuantizedModel : public QuantizedModel {
 protected:
  // A code of fp8 is off by 2.6 % (root mean square), so a product of two by 3.7 %.
  static constexpr double kErrorOfProducts = 0.037;

  // The distance from `wanted` of the logits of the model whose weights have random errors, where `quantized` has
  // codes: the root mean square over several models with other errors.
  double difference_by_random_errors(const std::string& quantized,
                                     const std::vector<std::vector<double>>& wanted) const {
    constexpr int kModels = 4;
    double squares = 0;
    for (int i = 0; i < kModels; ++i) {
      SampleCheckpoint changed = sample_;
      const Checkpoint codes = Checkpoint::open(quantized);
      for (const auto& [name, weight] : sample_.weights())
        if (codes.find(name + "_scale") != nullptr) changed.add_errors(name, kErrorOfProducts, i);
      const TemporaryFolder folder;
      const double one = difference(logits(changed.write_folder(folder, "m", DType::bf16)), wanted);
      squares += one * one / kModels;
    }
    return std::sqrt(squares);
  }
};

TEST_P(EveryQuantizedModel, AnswersNearlyAsInBf16AndGetsItsFusions) {
  const auto wanted = logits(folder_model_);
  double by_errors = 0;
  for (const Format& format : formats_) {
    if (format.name != "fp8-per-token" && format.name != "fp8-static") continue;
    const std::string model = quantize(folder_model_, format.name, format.words);
    const auto fast = logits(model);
    if (by_errors == 0) by_errors = difference_by_random_errors(model, wanted);
    EXPECT_LT(by_errors, 0.5) << "answers that say little";
    EXPECT_GT(difference(fast, wanted), by_errors / 4) << format.name << ": as if nothing were quantized";
    EXPECT_LT(difference(fast, wanted), by_errors * 2) << format.name;
    EXPECT_EQ(logits(model, {"--enforce-eager"}), fast) << format.name;
    EXPECT_EQ(logits(model, {"--expect-fusions=all"}), fast) << format.name;
  }
}

void expect_same_numbers(const Checkpoint& a, const Checkpoint& b, const std::string& name) {
  const Tensor &one = a.tensor(name), &other = b.tensor(name);
  ASSERT_EQ(one.meta, other.meta) << name;
  for (std::int64_t i = 0; i < element_count(one.meta.shape).number(); ++i)
    ASSERT_EQ(load_float(one.meta.dtype, one.data(), i), load_float(other.meta.dtype, other.data(), i)) << name << i;
}

TEST_P(EveryQuantizedModel, FromAGgufFileIsTheSameAsFromTheFolder) {
  const ArchitectureFacts facts = make_model_registry().find(GetParam(), "test").facts;
  const bool is_merged = sample_.config().experts && facts.experts->is_merged_in_folders;
  if (is_merged) {
    const Words words{"-o", folder_ / "b", "--format", "fp8-per-token"};
    EXPECT_EQ(refusal_of_quantize(gguf_model_, words, "wanted the folder that it was made from"), "");
    return;
  }
  if (sample_.config().rope.scaling.type == RopeScalingType::proportional) {
    const Words words{"-o", folder_ / "b", "--format", "fp8-per-token"};
    EXPECT_EQ(refusal_of_quantize(gguf_model_, words, "rope_freqs.weight"), "");
    return;
  }
  // Files of ChatGLM become folders of GLM, whose weights are not merged, and others those of Llama.
  const ModelRegistry models = make_model_registry();
  if (models.find_for_folder(Checkpoint::open(gguf_model_)).architectures[0] != GetParam()) return;
  // The rows of queries and keys have another order there, and those of the one weight are not moved.
  if (sample_.config().merges_query_key_value && facts.pairing_in_gguf != facts.pairing_in_folders) {
    const Words words{"-o", folder_ / "b", "--format", "fp8-per-token"};
    EXPECT_EQ(refusal_of_quantize(gguf_model_, words, "wanted the folder that it was made from"), "");
    return;
  }
  const std::string a = quantize(folder_model_, "a", {"--format", "fp8-per-token"});
  const std::string b = quantize(gguf_model_, "b", {"--format", "fp8-per-token"});
  // Numbers, and not bytes: decays come back from their logarithms without the sign of zero.
  const Checkpoint from_folder = Checkpoint::open(a), from_gguf = Checkpoint::open(b);
  for (const TensorEntry& entry : from_folder.tensors()) expect_same_numbers(from_folder, from_gguf, entry.name);
  EXPECT_EQ(logits(a), logits(b));
}

INSTANTIATE_TEST_SUITE_P(Architectures, EveryQuantizedModel,
                         ::testing::ValuesIn(text_architectures(make_model_registry())),
                         [](const auto& info) { return info.param; });

}  // namespace weft::quantized_model_test
