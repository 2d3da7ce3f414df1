// Folders whose weights have codes in groups: the models compute with the numbers that the codes stand for.

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "builtin/context.h"
#include "builtin/cuda_device.h"
#include "builtin/models.h"
#include "io/quantized_weight.h"
#include "io/safetensors_writer.h"
#include "quantize/quantize_checkpoint.h"
#include "tensor/group_blocks.h"
#include "tests/engine/tiny_model.h"
#include "tests/sample_checkpoint.h"

namespace weft::grouped_weights_test {

using nlohmann::json;
using Logits = std::vector<std::vector<float>>;
using Settings = std::vector<std::pair<std::string, std::string>>;

class GroupedWeights : public ::testing::Test {
 protected:
  // `changes` are members of the architecture's sample config.
  explicit GroupedWeights(const std::string& architecture = "llama", const json& changes = json::object())
      : model_(make_model_registry().find(architecture, "test")), sample_(model_, changes) {
    ThreadPool threads(2);
    const QuantizeRecipe recipe{.format = NumberFormat::w4a16, .block = {1, 32}, .inputs = {}};
    quantize_checkpoint(Checkpoint::open(sample_.write_folder(folder_, "plain", DType::bf16)), model_, recipe,
                        folder_ / "packed", threads);
  }

  // A folder with this quantization_config and these tensors; other files are those of "packed".
  std::string write(const std::string& name, const json& quantization, const std::vector<NamedTensor>& tensors) const {
    const std::string from = folder_ / "packed", to = folder_ / name;
    std::filesystem::copy(from, to, std::filesystem::copy_options::recursive);
    json config;
    std::ifstream(from + "/config.json") >> config;
    config.erase("quantization_config");
    if (!quantization.is_null()) config["quantization_config"] = quantization;
    std::ofstream(to + "/config.json") << config;
    write_safetensors(to + "/model.safetensors", tensors);
    return to;
  }

  static QuantizationConfig config_of(const Checkpoint& checkpoint, const ModelDefinition& model) {
    return checkpoint.config(model.facts).quantization.value();
  }

  // The weights with codes, by their names.
  std::vector<std::string> quantized_weights() const {
    std::vector<std::string> names;
    const QuantizationConfig config = config_of(Checkpoint::open(folder_ / "packed"), model_);
    for (const auto& [name, weight] : sample_.weights())
      if (weight.meta.rank() == 2 && config.quantizes(name)) names.push_back(name);
    return names;
  }

  // The tensors of "packed" that are not of these weights.
  std::vector<NamedTensor> other_tensors() const {
    std::vector<NamedTensor> tensors;
    const Checkpoint packed = Checkpoint::open(folder_ / "packed");
    for (const TensorEntry& entry : packed.tensors())
      if (entry.name.find(".weight_") == std::string::npos) tensors.push_back({entry.name, entry.tensor});
    return tensors;
  }

  // "packed" with groups that are columns from all over the row. `factor` decides which ones.
  std::string write_reordered(const std::string& name, const std::function<int(const std::string&)>& factor) const {
    json config;
    std::ifstream(folder_ / "packed/config.json") >> config;
    json quantization = config["quantization_config"];
    quantization["config_groups"]["group_0"]["weights"]["actorder"] = "group";
    std::vector<NamedTensor> tensors;
    const Checkpoint packed = Checkpoint::open(folder_ / "packed");
    for (const TensorEntry& entry : packed.tensors()) tensors.push_back({entry.name, entry.tensor});
    for (const std::string& weight : quantized_weights()) {
      const std::int64_t columns = shape_of(weight)[1].number();
      Tensor groups = Tensor::empty(Meta::tensor(DType::i32, {columns}));
      for (std::int64_t k = 0; k < columns; ++k)
        groups.as<std::int32_t>()[k] = static_cast<std::int32_t>((k * factor(weight) + 5) % columns / 32);
      tensors.push_back({weight + "_g_idx", groups});
    }
    return write(name, quantization, tensors);
  }

  // Codes of 8 bits whose values with this zero point are those of the codes of 4 bits with 8.
  static Tensor widened(const Tensor& words, int zero_point) {
    Tensor wide = Tensor::empty(Meta::tensor(DType::i32, {words.meta.shape[0], words.meta.shape[1] * 2}));
    const auto* bytes = words.as<const std::uint8_t>();
    for (std::int64_t i = 0; i < words.meta.bytes().number(); ++i) {
      wide.as<std::uint8_t>()[2 * i] = static_cast<std::uint8_t>((bytes[i] & 15) + zero_point - 8);
      wide.as<std::uint8_t>()[2 * i + 1] = static_cast<std::uint8_t>((bytes[i] >> 4) + zero_point - 8);
    }
    return wide;
  }

  // "packed" with codes of 8 bits in some modules: of values and of down_proj without zero points, of up_proj with them
  // and in an order of its own.
  std::string write_mixed(const std::string& name) const {
    constexpr int kMiddle = 128, kOther = 77;
    json config;
    std::ifstream(folder_ / "packed/config.json") >> config;
    json quantization = config["quantization_config"];
    json group = quantization["config_groups"]["group_0"];
    group["weights"]["num_bits"] = 8;
    group["targets"] = {"re:.*v_proj", "re:.*down_proj"};
    quantization["config_groups"]["group_1"] = group;
    group["weights"].update({{"symmetric", false}, {"actorder", "group"}});
    group["targets"] = {"re:.*up_proj"};
    quantization["config_groups"]["group_2"] = group;
    std::vector<NamedTensor> tensors;
    const Checkpoint packed = Checkpoint::open(folder_ / "packed");
    for (const TensorEntry& entry : packed.tensors()) {
      const bool is_up = entry.name.find("up_proj") != std::string::npos;
      const bool is_wide =
          is_up || entry.name.find("v_proj") != std::string::npos || entry.name.find("down_proj") != std::string::npos;
      const bool has_codes = is_wide && entry.name.ends_with("_packed");
      tensors.push_back({entry.name, has_codes ? widened(entry.tensor, is_up ? kOther : kMiddle) : entry.tensor});
      if (!has_codes || !is_up) continue;
      const std::string weight = entry.name.substr(0, entry.name.size() - std::string("_packed").size());
      const std::int64_t rows = shape_of(weight)[0].number(), columns = shape_of(weight)[1].number();
      Tensor zeros = Tensor::empty(Meta::tensor(DType::i32, {rows / 4, columns / 32}));
      std::memset(zeros.data(), kOther, static_cast<std::size_t>(zeros.meta.bytes().number()));
      Tensor groups = Tensor::empty(Meta::tensor(DType::i32, {columns}));
      for (std::int64_t k = 0; k < columns; ++k)
        groups.as<std::int32_t>()[k] = static_cast<std::int32_t>((k * 37 + 5) % columns / 32);
      tensors.push_back({weight + "_zero_point", zeros});
      tensors.push_back({weight + "_g_idx", groups});
    }
    return write(name, quantization, tensors);
  }

  std::string write_nf4(const std::string& name) const {
    std::vector<NamedTensor> tensors = other_tensors();
    std::uint32_t seed = 1;
    for (const std::string& weight : quantized_weights()) {
      const std::int64_t rows = shape_of(weight)[0].number(), columns = shape_of(weight)[1].number();
      Tensor codes = Tensor::empty(Meta::tensor(DType::u8, {rows * columns / 2, 1}));
      for (std::int64_t i = 0; i < rows * columns / 2; ++i)
        codes.as<std::uint8_t>()[i] = static_cast<std::uint8_t>((seed = seed * 1664525 + 1013904223) >> 24);
      Tensor scales = Tensor::empty(Meta::tensor(DType::f32, {rows * columns / 64}));
      for (std::int64_t i = 0; i < rows * columns / 64; ++i)
        scales.as<float>()[i] = 0.2f + 0.001f * static_cast<float>(i % 50);
      const std::string state = json{{"quant_type", "nf4"}, {"blocksize", 64}, {"shape", {rows, columns}}}.dump();
      tensors.push_back({weight, codes});
      tensors.push_back({weight + ".absmax", scales});
      tensors.push_back({weight + ".quant_map", Tensor::from_bytes(Meta::tensor(DType::f32, {16}), kNf4Values)});
      tensors.push_back(
          {weight + ".quant_state.bitsandbytes__nf4",
           Tensor::from_bytes(Meta::tensor(DType::u8, {static_cast<std::int64_t>(state.size())}), state.data())});
    }
    return write(name, {{"quant_method", "bitsandbytes"}, {"load_in_4bit", true}, {"bnb_4bit_quant_type", "nf4"}},
                 tensors);
  }

  // The folder of the numbers that the codes of another folder stand for.
  std::string write_numbers(const std::string& name, const std::string& grouped) const {
    const Checkpoint checkpoint = Checkpoint::open(grouped);
    const QuantizationConfig config = config_of(checkpoint, model_);
    std::vector<NamedTensor> tensors = other_tensors();
    for (const std::string& weight : quantized_weights())
      tensors.push_back({weight, dequantized_weight(checkpoint, *config.of(weight), weight)});
    return write(name, nullptr, tensors);
  }

  Shape shape_of(const std::string& weight) const {
    const auto found = std::find_if(sample_.weights().begin(), sample_.weights().end(),
                                    [&](const auto& one) { return one.first == weight; });
    return found->second.meta.shape;
  }

  static Logits logits(const std::string& path, Settings settings) {
    settings.insert(settings.end(), {{"kv-cache-dtype", "f32"}, {"dtype", "f32"}, {"max-num-batched-tokens", "16"}});
    return all_logits(*tiny_engine(path, settings), some_ids(5));
  }

  // In exact mode the numbers; in fast mode activations have codes of 8 bits if the weights have integer codes.
  void expect_as_numbers(const std::string& grouped, bool has_integer_codes) const {
    const std::string numbers = write_numbers(std::filesystem::path(grouped).filename().string() + "_numbers", grouped);
    const Logits wanted = logits(numbers, {});
    EXPECT_LT(logit_difference(logits(grouped, {{"activation-precision", "exact"}}), wanted), 1e-5);
    const Logits fast = logits(grouped, {});
    EXPECT_EQ(logits(grouped, {{"enforce-eager", "true"}}), fast);
    EXPECT_LT(logit_difference(fast, wanted), has_integer_codes ? 0.05 : 1e-5);
    if (has_integer_codes) {
      EXPECT_GT(logit_difference(fast, wanted), 1e-5);
    }
    // Kernels that read no panels.
    const Settings reference{{"activation-precision", "exact"}, {"ir-op-priority.linear", "reference"}};
    EXPECT_LT(logit_difference(logits(grouped, reference), wanted), 1e-5);
  }

  const ModelDefinition model_;
  const TemporaryFolder folder_;
  const SampleCheckpoint sample_;
};

// A model with experts, and with latents of two groups.
class GroupedWeightsOfDeepSeek : public GroupedWeights {
 protected:
  GroupedWeightsOfDeepSeek() : GroupedWeights("deepseek_v3", {{"kv_lora_rank", 64}}) {}

  // Fast mode is left out: it may choose other experts.
  void expect_exact_numbers(const std::string& grouped) const {
    const Settings exact{{"activation-precision", "exact"}};
    const Logits came = logits(grouped, exact);
    const std::string numbers = write_numbers(std::filesystem::path(grouped).filename().string() + "_numbers", grouped);
    EXPECT_LT(logit_difference(came, logits(numbers, exact)), 1e-5);
    EXPECT_EQ(logits(grouped, {{"activation-precision", "exact"}, {"enforce-eager", "true"}}), came);
  }
};

TEST_F(GroupedWeights, OfCompressedTensorsAreNumbers) { expect_as_numbers(folder_ / "packed", true); }

TEST_F(GroupedWeights, InAnOrderOfTheirOwnAreNumbers) {
  expect_as_numbers(write_reordered("reordered", [](const std::string&) { return 37; }), true);
}

TEST_F(GroupedWeights, OfGroupsOfModulesAreNumbers) {
  const std::string mixed = write_mixed("mixed");
  expect_as_numbers(mixed, true);
  const auto engine = tiny_engine(mixed, {{"max-num-batched-tokens", "16"}});
  const std::vector<std::string> notes = engine->runner().notes();
  const auto has_note = [&](const std::string& a, const std::string& b) {
    return std::any_of(notes.begin(), notes.end(), [&](const std::string& note) {
      return note.find(a) != std::string::npos && note.find(b) != std::string::npos;
    });
  };
  EXPECT_TRUE(has_note("up_proj", "stored as bf16"));
  EXPECT_TRUE(has_note("gate_proj", "different types"));
}

// Where some experts have codes that only numbers can stand for, all are numbers.
TEST_F(GroupedWeightsOfDeepSeek, OfGroupsOfModulesAreNumbers) { expect_exact_numbers(write_mixed("mixed")); }

TEST_F(GroupedWeights, OfNf4AreNumbers) { expect_as_numbers(write_nf4("nf4"), false); }

// Query and key have one order here, value has another.
TEST_F(GroupedWeights, InDifferentOrdersAreMultipliedOneByOne) {
  const std::string grouped = write_reordered(
      "different", [](const std::string& weight) { return weight.find("v_proj") == std::string::npos ? 37 : 11; });
  expect_as_numbers(grouped, true);
  const auto engine = tiny_engine(grouped, {{"max-num-batched-tokens", "16"}});
  const std::vector<std::string> notes = engine->runner().notes();
  EXPECT_TRUE(std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
    return note.find("q_proj.weight") != std::string::npos && note.find("orders") != std::string::npos;
  }));
}

TEST_F(GroupedWeightsOfDeepSeek, AreNumbers) { expect_exact_numbers(folder_ / "packed"); }

// Each expert has an order of its own, and in the second folder each of its weights.
TEST_F(GroupedWeightsOfDeepSeek, InAnOrderOfTheirOwnAreNumbers) {
  const std::string part = ".experts.";
  const auto expert = [&](const std::string& weight) {
    const std::size_t at = weight.find(part);
    return at == std::string::npos ? 0 : std::stoul(weight.substr(at + part.size())) % 4;
  };
  const auto of_expert = [&](const std::string& weight) { return std::array{7, 11, 13, 17}[expert(weight)]; };
  const auto of_weight = [&](const std::string& weight) {
    return weight.find("up_proj") == std::string::npos ? of_expert(weight) : 37;
  };
  for (const std::string& path : {write_reordered("by_expert", of_expert), write_reordered("by_weight", of_weight)}) {
    expect_exact_numbers(path);
    const auto engine = tiny_engine(path, {{"max-num-batched-tokens", "16"}});
    for (const std::string& note : engine->runner().notes())
      EXPECT_EQ(note.find("stored as"), std::string::npos) << note;
  }
}

// A GPU has numbers in the order of their input.
TEST_F(GroupedWeights, RunOnADevice) {
  Options options;
  for (const auto& [name, value] :
       Settings{{"device", "fake-cuda"}, {"dtype", "bf16"}, {"max-num-batched-tokens", "16"}})
    set_option(options, name, value, "test");
  for (const std::string& path : {write_nf4("nf4"), write_reordered("order", [](const auto&) { return 37; })}) {
    const auto context = make_context(options);
    put_on_fake_cuda(*context, {.compute_capability = 90}, {});
    Engine engine(context, Checkpoint::open(path), make_model_registry());
    EXPECT_EQ(engine.generate(some_ids(6), {.max_tokens = 2, .ignore_end = true}).tokens.size(), 2u);
  }
}

// A config does not state whether the orders of query, key and value are equal.
TEST_F(GroupedWeights, WithoutFilesAreMergedWithANote) {
  const auto has_note = [](const std::string& path, const Settings& settings) {
    const auto engine = tiny_engine(path, settings);
    const std::vector<std::string> notes = engine->runner().notes();
    return std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
      return note.find("as if their orders were equal") != std::string::npos;
    });
  };
  const std::string path = write_reordered("order", [](const auto&) { return 37; });
  EXPECT_FALSE(has_note(path, {}));
  EXPECT_TRUE(has_note(path, {{"load-format", "dummy"}}));
}

TEST_F(GroupedWeights, OfZerosNeedNoFiles) {
  for (const std::string& path : {write_nf4("nf4"), write_reordered("order", [](const auto&) { return 37; })}) {
    std::filesystem::remove(path + "/model.safetensors");
    EXPECT_EQ(all_logits(*tiny_engine(path, {{"load-format", "dummy"}, {"max-num-batched-tokens", "16"}}), some_ids(2))
                  .size(),
              2u);
  }
}

}  // namespace weft::grouped_weights_test
