#include "engine/weights/lora_reader.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "io/text_config.h"

namespace weft {
namespace {

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

bool adapts_any(const LoraParts& parts, const std::vector<std::string>& keys) {
  return std::any_of(keys.begin(), keys.end(), [&](const std::string& key) { return parts.contains(key); });
}

LoraAdapter LoraReader::read(const std::string& path, double factor, LoraParts& parts) const {
  LoraAdapter adapter = read_lora_adapter(path);
  const std::string& architecture = model_.architecture_in_gguf();
  USER_CHECK(adapter.architecture.empty() || adapter.architecture == architecture,
             "[{}] general.architecture must be that of the model, {}, but is {}", path, architecture,
             quote(adapter.architecture));
  Weights weights;
  model_.visit_tensors(config_, adapter.format,
                       [&](const ModelDefinition::StoredWeight& stored) { weights.emplace(stored.key, stored); });
  for (const LoraPair& pair : adapter.pairs) add_pair(adapter, pair, factor, weights, parts);
  return adapter;
}

void LoraReader::add_pair(const LoraAdapter& adapter, const LoraPair& pair, double factor, const Weights& weights,
                          LoraParts& parts) const {
  const std::string embedding = embedding_of_head(pair.weight, adapter.format);
  const auto found = weights.find(embedding.empty() ? name_in_model(pair.weight, weights) : embedding);
  USER_CHECK(found != weights.end(), "[{}] {} adapts {}, but the model has no such weight", adapter.file, pair.tensors,
             pair.weight);
  const auto& [weight, layer, expert, name, stored_shape] = found->second;
  const std::vector<std::int64_t> shape = expert ? stored_shape : weight.shape(config_, layer);
  USER_CHECK((weight.name != "token_embd" || !embedding.empty()) && shape.size() == 2,
             "[{}] {} adapts {}, which is no matrix of a linear layer: this is not implemented", adapter.file,
             pair.tensors, pair.weight);
  const Meta& a = pair.a.meta;
  const Meta& b = pair.b.meta;
  USER_CHECK(a.shape[1] == Dim(shape[1]) && b.shape[0] == Dim(shape[0]),
             "[{}] {} adapts {} [{}, {}]: wanted A of [{}, {}] and B of [{}, {}], but they are {} and {}", adapter.file,
             pair.tensors, pair.weight, shape[0], shape[1], pair.rank(), shape[1], shape[0], pair.rank(), a.text(),
             b.text());
  std::string key = weight.key(config_.format, layer);
  if (expert && is_name_of_experts(key)) key = name_of_expert(key, *expert);
  parts[key].push_back({.scale = factor * pair.scale,
                        .a = pair.a,
                        .b = pair.b,
                        .rows = rows_in_adapter(adapter, pair.tensors, found->second, model_, config_, shape[0]),
                        .source = fmt::format("[{}] {}", adapter.file, pair.tensors)});
}

// The embedding, if the weight is a head that is the embedding: the adapter changes the product of the head alone.
std::string LoraReader::embedding_of_head(const std::string& weight, CheckpointFormat format) const {
  if (!config_.tie_word_embeddings) return "";
  std::string head, embedding;
  for (const ModelWeight& one : model_.weights) {
    if (one.name == "output") head = one.key(format, -1);
    if (one.name == "token_embd") embedding = one.key(format, -1);
  }
  return !head.empty() && weight == head ? embedding : "";
}

std::string lora_note(const LoraAdapter& adapter, const std::string& title) {
  std::set<std::int64_t> ranks;
  for (const LoraPair& pair : adapter.pairs) ranks.insert(pair.rank());
  return fmt::format("[lora] the adapter {} is for {}: {} weight{}, rank {}", quote(adapter.path, 1000), title,
                     adapter.pairs.size(), adapter.pairs.size() == 1 ? "" : "s", fmt::join(ranks, ", "));
}

}  // namespace weft
