#include "tests/sample_lora.h"

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "io/safetensors_writer.h"
#include "tests/io/gguf_bytes.h"
#include "tests/sample_layouts.h"
#include "tests/sample_weights.h"

namespace weft {
namespace {

std::string bytes_text(const Tensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.data()), static_cast<std::size_t>(tensor.meta.bytes().number())};
}

std::vector<std::uint64_t> extents_of(const Tensor& matrix) {
  return {static_cast<std::uint64_t>(matrix.meta.shape[1].number()),
          static_cast<std::uint64_t>(matrix.meta.shape[0].number())};
}

}  // namespace

std::set<std::string> names_of_linear_layers() {
  return {"attn_q", "attn_k", "attn_v", "attn_qkv", "attn_output", "ffn_gate", "ffn_up", "ffn_down", "ffn_gate_up"};
}

SampleLora::SampleLora(const ModelDefinition& model, const SampleCheckpoint& base, const std::set<std::string>& names,
                       Settings settings)
    : settings_(settings), architecture_(model.architecture_in_gguf()), config_(base.config()) {
  const ModelConfig& config = config_;
  const bool turns = model.facts.pairing_in_folders != model.facts.pairing_in_gguf;
  model.visit_tensors(config, CheckpointFormat::hugging_face, [&](const ModelDefinition::StoredWeight& stored) {
    const ModelWeight& weight = stored.weight;
    const std::vector<std::int64_t> shape = weight.shape(config, stored.layer);
    if (!names.contains(weight.name) || shape.size() != 2 || stored.expert) return;
    const std::uint64_t seed = settings.seed * 1000 + pairs_.size() * 2;
    const bool has_heads = turns && weight.rotated_heads != nullptr;
    pairs_.push_back({.name = stored.key,
                      .gguf_name = weight.key(CheckpointFormat::gguf, stored.layer),
                      .a = random_weight({settings.rank, shape[1]}, seed),
                      .b = random_weight({shape[0], settings.rank}, seed + 1),
                      .is_transposed = weight.is_transposed_in(CheckpointFormat::hugging_face),
                      .rotated_heads = has_heads ? static_cast<int>(weight.rotated_heads(config)) : 0,
                      .is_grouped = model.facts.groups_heads_in_folders && weight.name.starts_with("attn_qkv")});
  });
}

void SampleLora::merge_into(const SampleCheckpoint& checkpoint, double factor) const {
  const double scale = factor * settings_.alpha / static_cast<double>(settings_.rank);
  for (const Pair& pair : pairs_)
    for (const auto& [name, weight] : checkpoint.weights()) {
      if (name != pair.name) continue;
      const std::int64_t rows = pair.b.meta.shape[0].number(), columns = pair.a.meta.shape[1].number();
      for (std::int64_t row = 0; row < rows; ++row)
        for (std::int64_t column = 0; column < columns; ++column) {
          double sum = 0;
          for (std::int64_t i = 0; i < settings_.rank; ++i)
            sum += static_cast<double>(pair.b.as<float>()[row * settings_.rank + i]) *
                   static_cast<double>(pair.a.as<float>()[i * columns + column]);
          const std::int64_t at = pair.is_transposed ? column * rows + row : row * columns + column;
          weight.as<float>()[at] += static_cast<float>(scale * sum);
        }
    }
}

std::string SampleLora::write_folder(const TemporaryFolder& folder, const std::string& name, DType dtype,
                                     const nlohmann::json& changes) const {
  const std::string path = folder / name;
  std::filesystem::create_directory(path);
  nlohmann::json config{{"peft_type", "LORA"},
                        {"r", settings_.rank},
                        {"lora_alpha", settings_.alpha},
                        {"bias", "none"},
                        {"target_modules", "all-linear"}};
  config.update(changes);
  std::ofstream(path + "/adapter_config.json") << config;
  std::vector<NamedTensor> tensors;
  for (const Pair& pair : pairs_) {
    const std::string module = "base_model.model." + pair.name.substr(0, pair.name.rfind(".weight"));
    tensors.push_back({module + ".lora_A.weight", stored_as(pair.a, dtype)});
    tensors.push_back({module + ".lora_B.weight", stored_as(pair.b, dtype)});
  }
  write_safetensors(path + "/adapter_model.safetensors", tensors);
  return path;
}

std::string SampleLora::write_gguf(const TemporaryFolder& folder, const std::string& name) const {
  testing::GgufBytes file;
  file.text("general.type", "adapter").text("general.architecture", architecture_).text("adapter.type", "lora");
  file.f32("adapter.lora.alpha", static_cast<float>(settings_.alpha));
  for (const Pair& pair : pairs_) {
    const Tensor b = pair.rotated_heads > 0 ? neighbours_from_halves(pair.b, pair.rotated_heads)
                     : pair.is_grouped      ? ungrouped_rows(pair.b, config_)
                                            : pair.b;
    file.tensor(pair.gguf_name + ".lora_a", extents_of(pair.a), testing::kGgmlF32, bytes_text(pair.a));
    file.tensor(pair.gguf_name + ".lora_b", extents_of(b), testing::kGgmlF32, bytes_text(b));
  }
  const std::string path = folder / name;
  std::ofstream(path, std::ios::binary) << file.bytes();
  return path;
}

}  // namespace weft
