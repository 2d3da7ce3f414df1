#include "tests/sample_checkpoint.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <random>

#include "base/error.h"
#include "io/byte_alphabet.h"
#include "io/checkpoint.h"
#include "io/safetensors_writer.h"
#include "tensor/convert.h"
#include "tests/io/gguf_types.h"
#include "tests/sample_layouts.h"
#include "tests/sample_recurrent.h"
#include "tests/sample_weights.h"

namespace weft {
namespace {

using nlohmann::json;

constexpr const char* kEnd = "<end>";

// In gpt-oss's folders.
bool is_of_alternating_pairs(const std::string& name) {
  return name.ends_with("mlp.experts.gate_up_proj") || name.ends_with("mlp.experts.gate_up_proj_bias");
}

Shape stack_of_one(Shape shape) {
  shape.insert(shape.begin(), Dim(1));
  return shape;
}

// Adds a tensor of f32 in another dtype. GGUF files have the innermost extent first.
void add_tensor(testing::GgufBytes& file, const std::string& name, const Tensor& tensor, DType dtype) {
  std::vector<std::uint64_t> extents;
  for (std::size_t i = tensor.meta.rank(); i-- > 0;)
    extents.push_back(static_cast<std::uint64_t>(tensor.meta.shape[i].number()));
  const Tensor stored = stored_as(tensor, dtype);
  const auto bytes = static_cast<std::size_t>(stored.meta.bytes().number());
  file.tensor(name, extents, testing::ggml_id(dtype).value(), {reinterpret_cast<const char*>(stored.data()), bytes});
}

std::string replaced(std::string text, std::string_view from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

void write(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

}  // namespace

SampleCheckpoint::SampleCheckpoint(const ModelDefinition& model, const json& changes, std::uint64_t seed)
    : json_(json::parse(model.sample_config)), facts_(model.facts), gguf_architecture_(model.architecture_in_gguf()) {
  if (!json_.contains("torch_dtype")) json_["torch_dtype"] = "float32";
  for (const auto& [key, value] : changes.items()) json_[key] = value;
  config_ = model_config_from_json(json_.dump(), "sample_config", facts_);
  model.visit_tensors(config_, CheckpointFormat::hugging_face, [&](const ModelDefinition::StoredWeight& stored) {
    const ModelWeight& weight = stored.weight;
    const std::string& name = stored.key;
    if (gguf_names_.contains(name)) return;  // a second part of one tensor
    weights_.emplace_back(name, random_weight(stored.shape, seed * 1000 + weights_.size()));
    // With scores of large size an expert has all the weight or none, and a small error changes which.
    if (weight.name == "ffn_gate_inp") multiply(name, 1.0F / 16);
    gguf_names_[name] = weight.key(CheckpointFormat::gguf, stored.layer);
    if (stored.expert) experts_.insert(name);
    if (is_recurrent_weight(weight.name)) recurrent_[name] = weight.name;
    if (weight.is_transposed_in(CheckpointFormat::hugging_face)) transposed_.insert(name);
    if (weight.shape_of_whole != nullptr) parted_.insert(name);
    if (weight.name == "position_embd" && model.architecture_in_gguf() == "bert") positions_ = name;
    if (facts_.groups_heads_in_folders && weight.name.starts_with("attn_qkv")) grouped_.insert(name);
    if (weight.rotated_heads != nullptr) heads_[name] = static_cast<int>(weight.rotated_heads(config_));
    if (weight.is_less_one_in(CheckpointFormat::hugging_face) && !weight.is_less_one_in(CheckpointFormat::gguf))
      one_plus_.insert(name);
  });
}

void SampleCheckpoint::erase(const std::string& name) {
  std::erase_if(weights_, [&](const auto& weight) { return weight.first == name; });
}

void SampleCheckpoint::reshape(const std::string& name, const std::vector<std::int64_t>& shape) {
  for (auto& [known, tensor] : weights_)
    if (known == name) tensor = random_weight(shape, 1);
  heads_.erase(name);
  grouped_.erase(name);
}

void SampleCheckpoint::add(const std::string& name, const std::string& gguf_name,
                           const std::vector<std::int64_t>& shape) {
  weights_.emplace_back(name, random_weight(shape, weights_.size()));
  gguf_names_[name] = gguf_name;
}

void SampleCheckpoint::add_copy(const std::string& name, const std::string& gguf_name, const std::string& of) {
  const auto from = std::find_if(weights_.begin(), weights_.end(), [&](const auto& one) { return one.first == of; });
  CHECK(from != weights_.end(), "{} is not there", of);
  const Tensor values = from->second;
  weights_.emplace_back(name, values);
  gguf_names_[name] = gguf_name;
}

void SampleCheckpoint::take_weights(const Checkpoint& checkpoint) {
  for (auto& [name, tensor] : weights_) {
    const Tensor& stored = checkpoint.tensor(name);
    const Shape row = tensor.meta.rank() == 1 ? Shape{1, tensor.meta.shape[0]} : tensor.meta.shape;
    CHECK(stored.meta.shape == tensor.meta.shape || stored.meta.shape == row, "{} is {} and not {}", name,
          stored.meta.text(), tensor.meta.text());
    convert_row(stored.meta.dtype, stored.data(), DType::f32, tensor.data(), element_count(stored.meta.shape).number());
  }
}

void SampleCheckpoint::multiply(const std::string& name, float factor) {
  for (auto& [known, tensor] : weights_)
    for (std::int64_t i = 0; known == name && i < element_count(tensor.meta.shape).number(); ++i)
      tensor.as<float>()[i] *= factor;
}

void SampleCheckpoint::multiply_rows(const std::string& name, std::int64_t first, std::int64_t count, float factor) {
  for (auto& [known, tensor] : weights_) {
    const std::int64_t width = tensor.meta.shape.back().number();
    for (std::int64_t i = first * width; known == name && i < (first + count) * width; ++i)
      tensor.as<float>()[i] *= factor;
  }
}

void SampleCheckpoint::divide_columns_by_lengths(const std::string& name) {
  for (auto& [known, tensor] : weights_) {
    if (known != name) continue;
    const std::int64_t rows = tensor.meta.shape[0].number(), width = tensor.meta.shape[1].number();
    for (std::int64_t column = 0; column < width; ++column) {
      double square = 0;
      for (std::int64_t row = 0; row < rows; ++row)
        square += std::pow(static_cast<double>(tensor.as<float>()[row * width + column]), 2);
      for (std::int64_t row = 0; row < rows; ++row)
        tensor.as<float>()[row * width + column] /= static_cast<float>(std::sqrt(square));
    }
  }
}

void SampleCheckpoint::add_errors(const std::string& name, double relative, int seed) {
  for (std::size_t at = 0; at < weights_.size(); ++at) {
    if (weights_[at].first != name) continue;
    const Tensor& from = weights_[at].second;  // which copies of the sample share
    std::mt19937_64 random(static_cast<std::uint64_t>(seed) * 1000 + at);
    std::normal_distribution<double> error(0, relative);
    Tensor changed = Tensor::empty(from.meta);
    for (std::int64_t i = 0; i < element_count(from.meta.shape).number(); ++i)
      changed.as<float>()[i] = static_cast<float>(from.as<const float>()[i] * (1 + error(random)));
    weights_[at].second = changed;
  }
}

void SampleCheckpoint::set_row(const std::string& name, std::int64_t row, std::int64_t column, float value) {
  for (auto& [known, tensor] : weights_) {
    const std::int64_t width = tensor.meta.shape.back().number();
    for (std::int64_t i = 0; known == name && i < width; ++i)
      tensor.as<float>()[row * width + i] = i == column ? value : 0;
  }
}

// Blocks are those of the layout of GGUF files.
void SampleCheckpoint::round_matrices_to(DType dtype) {
  for (auto& [name, tensor] : weights_) {
    if (is_vector(name, tensor)) continue;
    if (transposed_.contains(name)) {
      tensor = transposed(rounded(transposed(tensor), dtype));
    } else if (parted_.contains(name)) {
      const LatentParts parts = latent_parts(tensor, config_);
      tensor = rows_of_latent_parts({rounded(parts.keys, dtype), rounded(parts.values, dtype)}, config_);
    } else {
      tensor = rounded(tensor, dtype);
    }
  }
}

std::vector<std::string> SampleCheckpoint::tokens() const {
  std::vector<std::string> tokens;
  const bool has_all_bytes = config_.vocab_size > 256;
  for (std::int64_t i = 0; i < config_.vocab_size - 1; ++i) {
    std::string text;
    if (i < 256) append_in_byte_alphabet(std::string(1, static_cast<char>(has_all_bytes ? i : 'a' + i)), text);
    tokens.push_back(i < 256 ? text : "<extra_" + std::to_string(i) + ">");
  }
  tokens.push_back(kEnd);
  return tokens;
}

std::string SampleCheckpoint::tokenizer_json() const {
  json vocabulary = json::object(), added = json::array();
  const std::vector<std::string> texts = tokens();
  for (std::size_t id = 0; id < texts.size(); ++id) {
    const bool is_special = id >= 256 || id + 1 == texts.size();
    if (is_special) {
      added.push_back({{"id", id}, {"content", texts[id]}, {"special", true}});
    } else {
      vocabulary[texts[id]] = id;
    }
  }
  const json bytes{{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}};
  return json{{"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", json::array()}}},
              {"pre_tokenizer", bytes},
              {"decoder", {{"type", "ByteLevel"}}},
              {"added_tokens", added}}
      .dump();
}

std::string SampleCheckpoint::write_folder(const TemporaryFolder& folder, const std::string& name, DType dtype,
                                           int files) const {
  const std::string path = folder / name;
  std::filesystem::create_directory(path);
  write(path + "/config.json", config_json());
  write(path + "/tokenizer.json", tokenizer_json());
  std::vector<std::vector<NamedTensor>> parts(static_cast<std::size_t>(files));
  json index = json::object();
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    const std::size_t part = i % parts.size();
    parts[part].push_back({weights_[i].first, stored_as(weights_[i].second, dtype)});
    index[weights_[i].first] = "model-" + std::to_string(part) + ".safetensors";
  }
  if (files == 1) {
    write_safetensors(path + "/model.safetensors", parts[0]);
    return path;
  }
  for (std::size_t part = 0; part < parts.size(); ++part)
    write_safetensors(path + "/model-" + std::to_string(part) + ".safetensors", parts[part]);
  write(path + "/model.safetensors.index.json", json{{"weight_map", index}}.dump());
  return path;
}

std::string SampleCheckpoint::write_stacked_folder(const TemporaryFolder& folder, const std::string& name, DType dtype,
                                                   bool is_transposed) const {
  SampleCheckpoint stacked = *this;
  stacked.weights_ = weights_in_modules(stacked_weights());
  for (auto& [key, weight] : stacked.weights_)
    if (is_transposed && weight.meta.rank() == 3) weight = transposed(weight);
  return stacked.write_folder(folder, name, dtype);
}

// The matrices of experts that a folder has one by one, as the stack that a GGUF file has.
std::vector<std::pair<std::string, Tensor>> SampleCheckpoint::stacked_weights() const {
  std::vector<std::pair<std::string, Tensor>> stacked;
  std::string last;
  for (const auto& [name, weight] : weights_) {
    const std::string gguf_name = gguf_names_.at(name);
    const bool is_expert = experts_.contains(name);
    if (is_expert && last == gguf_name) {
      Tensor& stack = stacked.back().second;
      std::vector<std::byte> bytes(stack.data(), stack.data() + stack.meta.bytes().number());
      bytes.insert(bytes.end(), weight.data(), weight.data() + weight.meta.bytes().number());
      Meta meta = stack.meta;
      meta.shape[0] = meta.shape[0] + 1;
      stack = Tensor::from_bytes(meta, bytes.data());
    } else {
      stacked.emplace_back(name, weight);
      if (is_expert) stacked.back().second.meta = Meta::tensor(DType::f32, stack_of_one(weight.meta.shape));
    }
    last = gguf_name;
  }
  return stacked;
}

void SampleCheckpoint::add_gate_and_up(testing::GgufBytes& file, const std::string& whole_name, const Tensor& tensor,
                                       DType dtype) const {
  const Shape half{tensor.meta.shape[0].number() / 2, tensor.meta.shape[1]};
  const Tensor gate{Meta::tensor(DType::f32, half), tensor.storage, tensor.byte_offset};
  const Tensor up{gate.meta, tensor.storage, tensor.byte_offset + gate.meta.bytes().number()};
  add_tensor(file, replaced(whole_name, "gate_up", "gate"), gate, dtype);
  add_tensor(file, replaced(whole_name, "gate_up", "up"), up, dtype);
}

// The weight is named as the list, in a layer.
std::string SampleCheckpoint::list_in_gguf(const std::string& name) const {
  for (const LayerNumbersKey& list : facts_.layer_numbers)
    if (gguf_names_.at(name).find("." + std::string(list.gguf) + ".") != std::string::npos)
      return std::string(list.gguf);
  return "";
}

void SampleCheckpoint::add_query_key_value(testing::GgufBytes& file, const std::string& whole_name,
                                           const Tensor& tensor, DType dtype) const {
  std::int64_t first = 0;
  for (const auto& [part, heads] : {std::pair{"attn_q", config_.head_count}, std::pair{"attn_k", config_.kv_head_count},
                                    std::pair{"attn_v", config_.kv_head_count}}) {
    Tensor rows = tensor;
    rows.meta.shape[0] = heads * config_.head_dim;
    rows.byte_offset +=
        Meta::tensor(DType::f32, rows.meta.shape).bytes().number() / rows.meta.shape[0].number() * first;
    first += heads * config_.head_dim;
    const bool is_rotated = std::string_view(part) != "attn_v";
    add_tensor(file, replaced(whole_name, "attn_qkv", part),
               is_rotated ? neighbours_from_halves(rows, static_cast<int>(heads)) : rows, dtype);
  }
}

void SampleCheckpoint::add_latent_parts(testing::GgufBytes& file, const std::string& whole_name, const Tensor& tensor,
                                        DType dtype) const {
  const LatentParts parts = latent_parts(tensor, config_);
  add_tensor(file, replaced(whole_name, "attn_kv_b", "attn_k_b"), parts.keys, dtype);
  add_tensor(file, replaced(whole_name, "attn_kv_b", "attn_v_b"), parts.values, dtype);
}

namespace {

bool is_query_key_or_value(const std::string& name) {
  return name.find(".q_proj.") != std::string::npos || name.find(".k_proj.") != std::string::npos ||
         name.find(".v_proj.") != std::string::npos;
}

}  // namespace

testing::GgufBytes SampleCheckpoint::gguf(DType dtype, GgufAge age) const {
  testing::GgufBytes file;
  add_metadata(file, age);
  std::map<std::string, int> experts;    // written so far, by the name of the stack
  std::map<std::string, Tensor> merged;  // rows of queries and keys so far, by layer and weight or bias
  for (const auto& [name, weight] : age == GgufAge::early ? weights_ : stacked_weights()) {
    if (const auto recurrent = recurrent_.find(name); recurrent != recurrent_.end()) {
      const bool is_early = age == GgufAge::early;
      for (const auto& [key, part] :
           recurrent_weights_in_gguf(recurrent->second, gguf_names_.at(name), weight, config_, is_early))
        add_tensor(file, key, part, is_vector(name, weight) ? DType::f32 : stored_dtype(part, dtype));
      continue;
    }
    const auto heads = heads_.find(name);
    const bool moves = facts_.pairing_in_gguf != facts_.pairing_in_folders && heads != heads_.end();
    Tensor tensor = moves ? neighbours_from_halves(weight, heads->second) : weight;
    if (one_plus_.contains(name)) tensor = one_plus(tensor);
    if (grouped_.contains(name)) tensor = ungrouped_rows(tensor, config_);
    if (transposed_.contains(name) && weight.meta.rank() > 1) tensor = transposed(tensor);
    if (name == positions_ && weight.meta.rank() > 1) {
      const std::int64_t first = config_.first_position_row, width = tensor.meta.shape[1].number();
      tensor.meta.shape[0] = tensor.meta.shape[0] - first;
      tensor.byte_offset += bytes_of(tensor.meta.dtype, first * width);
    }
    if (is_of_alternating_pairs(name) && weight.meta.rank() > 1) tensor = halves_from_pairs(tensor);
    if (age == GgufAge::early && experts_.contains(name)) {
      const std::string& stack = gguf_names_.at(name);
      add_tensor(file, replaced(stack, "_exps", "." + std::to_string(experts[stack]++)), tensor,
                 stored_dtype(tensor, dtype));
      continue;
    }
    if (age == GgufAge::current && parted_.contains(name) && weight.meta.rank() == 2) {
      add_latent_parts(file, gguf_names_.at(name), tensor, dtype);
      continue;
    }
    if (is_gate_and_up(name)) {
      add_gate_and_up(file, gguf_names_.at(name), tensor, stored_dtype(tensor, dtype));
      continue;
    }
    const DType stored = is_vector(name, weight) ? DType::f32 : stored_dtype(tensor, dtype);
    if (is_split_in_gguf(name)) {
      add_query_key_value(file, gguf_names_.at(name), tensor, stored);
      continue;
    }
    if (is_metadata_in_gguf(name)) continue;
    if (age == GgufAge::merged && name.find(".self_attn.") != std::string::npos && is_query_key_or_value(name)) {
      Tensor& rows = merged[name.substr(0, name.find(".self_attn.")) + name.substr(name.rfind('.'))];
      rows = rows.defined() ? joined_rows(rows, tensor) : tensor;
      if (name.find(".v_proj.") == std::string::npos) continue;
      add_tensor(file, replaced(gguf_names_.at(name), "attn_v", "attn_qkv"), std::exchange(rows, Tensor()), stored);
      continue;
    }
    add_tensor(file, gguf_names_.at(name), tensor, stored);
  }
  const RopeScaling& scaling = config_.rope.scaling;
  for (const auto& [name, factors] :
       {std::pair{kShortFactors, &scaling.short_factors}, std::pair{kLongFactors, &scaling.long_factors}}) {
    if (factors->empty()) continue;
    Tensor tensor = Tensor::empty(Meta::tensor(DType::f32, {static_cast<std::int64_t>(factors->size())}));
    std::copy(factors->begin(), factors->end(), tensor.as<float>());
    add_tensor(file, name, tensor, DType::f32);
  }
  if (scaling.type == RopeScalingType::proportional) {
    const std::int64_t pairs = config_.rope.rotary_dim / 2;
    Tensor factors = Tensor::empty(Meta::tensor(DType::f32, {pairs}));
    for (std::int64_t i = 0; i < pairs; ++i)
      factors.as<float>()[i] = static_cast<double>(i) < scaling.rotated_part * static_cast<double>(pairs) ? 1 : 1e30F;
    add_tensor(file, kFrequencyFactors, factors, DType::f32);
  }
  return file;
}

std::vector<std::string> text_architectures(const ModelRegistry& models) {
  std::vector<std::string> architectures = models.architectures();
  std::erase_if(architectures, [&](const std::string& architecture) {
    return models.find(architecture, "test").facts.bidirectional == Bidirectional::always;
  });
  return architectures;
}

std::string SampleCheckpoint::write_gguf(const TemporaryFolder& folder, const std::string& name, DType dtype,
                                         GgufAge age) const {
  write(folder / name, gguf(dtype, age).bytes());
  return folder / name;
}

}  // namespace weft
