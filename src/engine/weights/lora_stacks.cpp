#include "engine/weights/lora_stacks.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "io/text_config.h"
#include "tensor/convert.h"

namespace weft {
namespace {

struct ScaledPath {
  std::string path;
  double scale = 1;
};

ScaledPath scaled_path(const std::string& text) {
  const std::size_t at = text.rfind(':');
  USER_CHECK(at != std::string::npos && at > 0, "[--lora-scaled] wanted PATH:SCALE, but is {}", quote(text, 1000));
  return {text.substr(0, at), decimal_number(text.substr(at + 1), "--lora-scaled")};
}

// The names of the model's weights in folders of the language model alone, in which PEFT may leave out the outer
// module.
std::string name_in_model(const std::string& name,
                          const std::map<std::string, ModelDefinition::StoredWeight>& weights) {
  std::string own = name_in_language_model(name);
  const std::string with_module = "model." + own;
  return !weights.contains(own) && weights.contains(with_module) ? with_module : own;
}

// For each row of a weight whose heads have the pairing `to`, its row where they have the other pairing.
std::vector<std::int64_t> rows_by_pairing(std::int64_t rows, std::int64_t heads, std::int64_t rotary_dim,
                                          RotaryPairing to) {
  const std::int64_t dims = rows / heads, half = rotary_dim / 2;
  std::vector<std::int64_t> from(static_cast<std::size_t>(rows));
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t i = row % dims;
    const std::int64_t other = i >= rotary_dim               ? i
                               : to == RotaryPairing::halves ? i % half * 2 + i / half
                                                             : i % 2 * half + i / 2;
    from[static_cast<std::size_t>(row)] = row - i + other;
  }
  return from;
}

// The order of the rows of an adapter's B that is of another format than the model. Formats also differ in the order of
// merged heads and of recurrent layers.
std::vector<std::int64_t> rows_in_adapter(const LoraAdapter& adapter, const std::string& tensor,
                                          const ModelDefinition::StoredWeight& stored, const ModelDefinition& model,
                                          const ModelConfig& config, std::int64_t rows) {
  std::vector<std::int64_t> same(static_cast<std::size_t>(rows));
  std::iota(same.begin(), same.end(), 0);
  if (adapter.format == config.format) return same;
  const ModelWeight& weight = stored.weight;
  const bool is_grouped = model.facts.groups_heads_in_folders && weight.name.starts_with("attn_qkv");
  USER_CHECK(!is_grouped && !weight.name.starts_with("ssm_"),
             "[{}] {} cannot be read for this model: folders and GGUF files order its rows differently, and this is "
             "not implemented for adapters",
             adapter.file, tensor);
  const RotaryPairing of_adapter =
      adapter.format == CheckpointFormat::gguf ? model.facts.pairing_in_gguf : model.facts.pairing_in_folders;
  if (weight.rotated_heads == nullptr || config.rope.pairing == of_adapter) return same;
  return rows_by_pairing(rows, weight.rotated_heads(config), config.rope.rotary_dim, config.rope.pairing);
}

}  // namespace

std::vector<NamedLora> named_loras(const Options& options) {
  std::vector<NamedLora> named;
  for (const std::string& text : options.lora_modules) {
    const std::size_t at = text.find('=');
    CHECK(at != std::string::npos, "the options table lets through the adapter {}", text);
    const std::string name = text.substr(0, at);
    for (const NamedLora& other : named)
      USER_CHECK(other.name != name, "[--lora-modules] two adapters have the name {}", quote(name));
    named.push_back({name, text.substr(at + 1)});
  }
  return named;
}

std::int64_t LoraStacks::Adapted::most_rank(std::int64_t choices) const {
  std::vector<std::int64_t> ranks(static_cast<std::size_t>(choices));
  for (const Part& part : parts) ranks[static_cast<std::size_t>(part.choice)] += part.a.meta.shape[0].number();
  return *std::max_element(ranks.begin(), ranks.end());
}

LoraStacks::LoraStacks(const Options& options, const ModelDefinition& model, const ModelConfig& config,
                       DeviceType device) {
  const std::vector<NamedLora> named = named_loras(options);
  if (options.lora.empty() && options.lora_scaled.empty() && named.empty()) return;
  choices_ = 1 + std::ssize(named);
  is_joined_ = choices_ > 1 && device != DeviceType::cpu;
  model.visit_tensors(config, config.format, [&](const ModelDefinition::StoredWeight& stored) {
    const std::vector<std::int64_t> shape = stored.weight.shape(config, stored.layer);
    if (shape.size() == 2) rows_[stored.key] = shape[0];
  });
  for (const std::string& path : options.lora) add("all requests", path, 0, 1, {model, config});
  for (const std::string& text : options.lora_scaled) {
    const auto [path, scale] = scaled_path(text);
    add(fmt::format("all requests, times {}", scale), path, 0, scale, {model, config});
  }
  std::int64_t choice = 0;
  for (const NamedLora& one : named) add(quote(one.name), one.path, ++choice, 1, {model, config});
}

void LoraStacks::add(const std::string& title, const std::string& path, std::int64_t choice, double factor,
                     const Model& model) {
  adapters_.push_back(read_lora_adapter(path));
  const LoraAdapter& adapter = adapters_.back();
  const std::string& architecture = model.definition.architecture_in_gguf();
  USER_CHECK(adapter.architecture.empty() || adapter.architecture == architecture,
             "[{}] general.architecture must be that of the model, {}, but is {}", path, architecture,
             quote(adapter.architecture));
  std::map<std::string, ModelDefinition::StoredWeight> weights;  // by the names of the adapter's format
  model.definition.visit_tensors(model.config, adapter.format, [&](const ModelDefinition::StoredWeight& stored) {
    weights.emplace(stored.key, stored);
  });
  std::set<std::int64_t> ranks;
  for (const LoraPair& pair : adapter.pairs) {
    add_pair(adapter, pair, choice, factor, model, weights);
    ranks.insert(pair.rank());
  }
  notes_.push_back(fmt::format("[lora] the adapter {} is for {}: {} weight{}, rank {}", quote(path, 1000), title,
                               adapter.pairs.size(), adapter.pairs.size() == 1 ? "" : "s", fmt::join(ranks, ", ")));
}

void LoraStacks::add_pair(const LoraAdapter& adapter, const LoraPair& pair, std::int64_t choice, double factor,
                          const Model& model, const std::map<std::string, ModelDefinition::StoredWeight>& weights) {
  const auto found = weights.find(name_in_model(pair.weight, weights));
  USER_CHECK(found != weights.end(), "[{}] {} adapts {}, but the model has no such weight", adapter.file, pair.tensors,
             pair.weight);
  const auto& [weight, layer, expert, name, stored_shape] = found->second;
  const std::vector<std::int64_t> shape = expert ? stored_shape : weight.shape(model.config, layer);
  USER_CHECK(weight.name != "token_embd" && shape.size() == 2,
             "[{}] {} adapts {}, which is no matrix of a linear layer: this is not implemented", adapter.file,
             pair.tensors, pair.weight);
  const Meta& a = pair.a.meta;
  const Meta& b = pair.b.meta;
  USER_CHECK(a.shape[1] == Dim(shape[1]) && b.shape[0] == Dim(shape[0]),
             "[{}] {} adapts {} [{}, {}]: wanted A of [{}, {}] and B of [{}, {}], but they are {} and {}", adapter.file,
             pair.tensors, pair.weight, shape[0], shape[1], pair.rank(), shape[1], shape[0], pair.rank(), a.text(),
             b.text());
  std::string key = weight.key(model.config.format, layer);
  if (expert && is_name_of_experts(key)) key = name_of_expert(key, *expert);
  Adapted& adapted = adapted_[key];
  adapted.columns = shape[1];
  if (adapted.source.empty()) adapted.source = fmt::format("[{}] {}", adapter.file, pair.tensors);
  adapted.parts.push_back(
      {choice, factor * pair.scale, pair.a, pair.b,
       rows_in_adapter(adapter, pair.tensors, found->second, model.definition, model.config, shape[0])});
}

bool LoraStacks::adapts(const std::vector<std::string>& keys) const {
  bool adapts = false;
  for (const std::string& key : keys) {
    if (!adapted_.contains(key)) continue;
    read_.insert(key);
    adapts = true;
  }
  return adapts;
}

void LoraStacks::check_all_read() const {
  for (const auto& [key, adapted] : adapted_)
    USER_CHECK(read_.contains(key),
               "{} adapts {}, by which no plain linear layer multiplies: adapters of experts, routers and convolutions "
               "are not implemented",
               adapted.source, key);
}

std::int64_t LoraStacks::rank_of(const std::vector<std::string>& keys) const {
  std::int64_t rank = 0;
  for (const std::string& key : keys)
    if (const auto found = adapted_.find(key); found != adapted_.end()) rank += found->second.most_rank(choices_);
  constexpr std::int64_t kWhole = 8;  // matrix products of GPUs read 16 bytes at a time
  return (rank + kWhole - 1) / kWhole * kWhole;
}

Meta LoraStacks::meta(const std::vector<std::string>& keys, WeightRole role, DType dtype) const {
  const std::int64_t rank = rank_of(keys), ranks = is_joined_ ? choices_ * rank : rank;
  if (role == WeightRole::lora_mask) return Meta::tensor(dtype, {choices_, ranks});
  Shape shape{ranks, 0};
  if (role == WeightRole::lora_a) {
    for (const std::string& key : keys)
      if (const auto found = adapted_.find(key); found != adapted_.end()) shape[1] = found->second.columns;
  } else {
    shape = {0, ranks};
    for (const std::string& key : keys) shape[0] = shape[0] + rows_.at(key);
  }
  if (choices_ > 1 && !is_joined_) shape.insert(shape.begin(), choices_);
  return Meta::tensor(dtype, shape);
}

Tensor LoraStacks::stack(const std::vector<std::string>& keys, WeightRole role, DType dtype) const {
  const Meta meta = this->meta(keys, role, dtype);
  if (role == WeightRole::lora_mask) return mask(meta);
  return role == WeightRole::lora_a ? stack_of_a(keys, meta) : stack_of_b(keys, meta);
}

Tensor LoraStacks::mask(const Meta& meta) const {
  Tensor mask = Tensor::empty(meta);
  const std::int64_t columns = meta.shape[1].number(), rank = columns / choices_;
  for (std::int64_t choice = 0; choice < choices_; ++choice)
    for (std::int64_t i = 0; i < rank; ++i) store_float(meta.dtype, mask.data(), choice * (columns + rank) + i, 1);
  return mask;
}

// The rows of A of one choice: those of each weight, and for each of them those of each adapter that is summed.
Tensor LoraStacks::stack_of_a(const std::vector<std::string>& keys, const Meta& meta) const {
  Tensor stack = Tensor::empty(meta);
  const std::int64_t rank = rank_of(keys), columns = meta.shape.back().number();
  std::int64_t first = 0;
  for (const std::string& key : keys) {
    const auto found = adapted_.find(key);
    if (found == adapted_.end()) continue;
    std::vector<std::int64_t> next(static_cast<std::size_t>(choices_), first);
    for (const Part& part : found->second.parts) {
      std::int64_t& row = next[static_cast<std::size_t>(part.choice)];
      const std::int64_t rows = part.a.meta.shape[0].number(), at = part.choice * rank + std::exchange(row, row + rows);
      convert_row(part.a.meta.dtype, part.a.data(), meta.dtype, stack.data() + bytes_of(meta.dtype, at * columns),
                  rows * columns);
    }
    first += found->second.most_rank(choices_);
  }
  return stack;
}

// The columns of B are in the order of the rows of A, and have the scale.
Tensor LoraStacks::stack_of_b(const std::vector<std::string>& keys, const Meta& meta) const {
  Tensor stack = Tensor::empty(meta);
  const std::int64_t rows = meta.shape[meta.rank() - 2].number(), rank = rank_of(keys);
  // Of an element of B in a choice.
  const auto place = [&](std::int64_t choice, std::int64_t row, std::int64_t column) {
    return is_joined_ ? (row * choices_ + choice) * rank + column : (choice * rows + row) * rank + column;
  };
  std::int64_t first = 0, first_row = 0;
  for (const std::string& key : keys) {
    const std::int64_t own_rows = rows_.at(key);
    const std::int64_t row_of_key = std::exchange(first_row, first_row + own_rows);
    const auto found = adapted_.find(key);
    if (found == adapted_.end()) continue;
    std::vector<std::int64_t> next(static_cast<std::size_t>(choices_), first);
    for (const Part& part : found->second.parts) {
      std::int64_t& column = next[static_cast<std::size_t>(part.choice)];
      const std::int64_t own_rank = part.b.meta.shape[1].number(), at = std::exchange(column, column + own_rank);
      std::vector<float> numbers(static_cast<std::size_t>(own_rank));
      auto* const bytes = reinterpret_cast<std::byte*>(numbers.data());
      const auto scale = static_cast<float>(part.scale);
      for (std::int64_t row = 0; row < own_rows; ++row) {
        const DType stored = part.b.meta.dtype;
        const std::int64_t from = part.rows[static_cast<std::size_t>(row)] * own_rank;
        convert_row(stored, part.b.data() + bytes_of(stored, from), DType::f32, bytes, own_rank);
        for (float& number : numbers) number *= scale;
        const std::int64_t to = place(part.choice, row_of_key + row, at);
        convert_row(DType::f32, bytes, meta.dtype, stack.data() + bytes_of(meta.dtype, to), own_rank);
      }
    }
    first += found->second.most_rank(choices_);
  }
  return stack;
}

}  // namespace weft
