#include "models/unread_tensors.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include <fmt/ranges.h>

#include "base/error.h"
#include "io/embedding_head.h"
#include "io/quantized_weight.h"
#include "io/scaled_blocks.h"

namespace weft {
namespace {

// Returns the number after `prefix` when the name is `prefix`, a number, a dot and more; else nothing.
std::optional<std::int64_t> layer_after(std::string_view prefix, std::string_view name) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  std::int64_t layer = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), layer);
  if (error != std::errc() || end == name.data() + name.size() || *end != '.') return std::nullopt;
  return layer;
}

// The layer to which the tensor of a folder belongs.
std::optional<std::int64_t> layer_in_folder(std::string_view name) {
  for (const char* layers : {"model.layers.", "model.decoder.layers.", "backbone.layers.", "gpt_neox.layers.",
                             "transformer.h.", "transformer.encoder.layers.", "bert.encoder.layer.",
                             "distilbert.transformer.layer.", "nomic_bert.encoder.layers.", "transformer.blocks."})
    if (const auto layer = layer_after(layers, name)) return layer;
  return std::nullopt;
}

bool is_inverse_frequencies(std::string_view name, const ModelConfig&) {
  return name.ends_with("rotary_emb.inv_freq") || name.ends_with("rotary_pos_emb.inv_freq");
}

// The other two parameters of Apertus's activation are the same in all models (src/models/apertus.cpp).
bool is_usual_parameter(const TensorEntry& entry, const ModelConfig& config) {
  const bool is_beta = entry.name.ends_with(".act_fn.beta"), is_eps = entry.name.ends_with(".act_fn.eps");
  const bool is_number = element_count(entry.tensor.meta.shape) == Dim(1);
  if (config.hidden_act != "xielu" || !(is_beta || is_eps) || !is_number) return false;
  const float value = number_in(entry.tensor), usual = is_beta ? 0.5F : -1e-6F;
  return std::abs(value - usual) < 0.01F * std::abs(usual);  // bf16 rounds the second one
}

// Modules of GPT-2 and of later ones like it store which tokens attend to which, [1, 1, positions, positions], and the
// score of the others.
bool is_causal_mask(const TensorEntry& entry, const ModelConfig&) {
  const std::string_view name = entry.name;
  const Shape& shape = entry.tensor.meta.shape;
  if (name.ends_with(".masked_bias")) return element_count(shape) == Dim(1);
  const bool is_of_attention = name.ends_with(".attn.bias") || name.ends_with(".attention.bias");
  return is_of_attention && shape.size() == 4 && shape[2] == shape[3];
}

bool is_copy_of_embedding(std::string_view name, const ModelConfig& config) {
  return name == "lm_head.weight" && config.tie_word_embeddings;
}

bool predicts_later_token(std::string_view name, const ModelConfig& config) {
  if (name.starts_with("mtp.") || name.starts_with("model.mtp_")) return true;
  const bool is_gguf = config.format == CheckpointFormat::gguf;
  const auto layer = is_gguf ? layer_after("blk.", name) : layer_in_folder(name);
  return layer && *layer >= config.layer_count && *layer < config.layer_count + config.next_token_layers;
}

// Not all configs state the number of the layers that predict a later token.
bool is_after_last_layer(std::string_view name, const ModelConfig& config) {
  const auto layer = config.format == CheckpointFormat::gguf ? std::nullopt : layer_in_folder(name);
  return layer && *layer >= config.layer_count;
}

// Published checkpoints have keys and values of the layers that read those of earlier ones.
bool is_of_shared_keys(std::string_view name, const ModelConfig& config) {
  for (const std::string_view prefix : {"model.layers.", "blk."}) {
    const auto layer = layer_after(prefix, name);
    if (!layer || *layer >= config.layer_count || config.has_own_kv(static_cast<int>(*layer))) continue;
    const std::string of_layer = std::string(prefix) + std::to_string(*layer) + ".";
    for (const char* part : {"self_attn.k_proj.", "self_attn.v_proj.", "self_attn.k_norm.", "self_attn.v_norm.",
                             "attn_k.", "attn_v.", "attn_k_norm."})
      if (name.starts_with(of_layer + part)) return true;
  }
  return false;
}

bool is_in_joined_latents(std::string_view name, const ModelConfig& config) {
  const bool is_part = name.ends_with(".attn_k_b.weight") || name.ends_with(".attn_v_b.weight");
  return config.latents && config.latents->is_joined && layer_after("blk.", name) && is_part;
}

bool is_unused_scale(std::string_view name, const ModelConfig& config) {
  return !config.scales_active_stream && name.ends_with(".altup.correct_output_scale");
}

bool is_of_index(std::string_view name, const ModelConfig& config) {
  return config.indexed_tokens > 0 && name.find(".self_attn.indexer.") != std::string_view::npos;
}

bool is_of_images_or_sound(std::string_view name, const ModelConfig&) {
  if (name.starts_with("model.")) name.remove_prefix(std::string_view("model.").size());
  const auto is_in = [&](std::string_view module) { return name.starts_with(module); };
  return is_in("vision_tower.") || is_in("vision_model.") || is_in("visual.") || is_in("audio_tower.") ||
         is_in("multi_modal_projector.") || is_in("embed_vision.") || is_in("embed_audio.");
}

// What is after the layers of models that score texts, and of encoders: the head of their training, and what
// io/embedding_head.h reads. Older folders of encoders have the numbers of positions, too.
bool is_of_pooled_head(std::string_view name, const ModelConfig& config) {
  if (config.format == CheckpointFormat::gguf) return is_of_embedding_head(name);
  if (config.is_causal) return config.is_classifier() && name.starts_with("score.");
  for (const char* module :
       {"bert.pooler.", "cls.", "lm_head.", "head.", "decoder.", "qa_outputs.", "classifier.", "pre_classifier.",
        "vocab_transform.", "vocab_layer_norm.", "vocab_projector.", "predictions.", "sop_classifier.",
        "discriminator_predictions.", "generator_predictions.", "generator_lm_head."})
    if (name.starts_with(module)) return true;
  return name == "bert.embeddings.position_ids" || name == "bert.embeddings.token_type_ids";
}

// Of compressed-tensors, fp8 and ModelOpt. The config has a warning that they are not applied.
bool is_scale_of_kv_cache(const TensorEntry& entry, const ModelConfig& config) {
  if (!config.quantization || entry.name.find(".self_attn.") == std::string::npos) return false;
  for (const char* end : {".k_scale", ".v_scale", ".kv_scale", ".q_scale", ".k_proj.output_scale",
                          ".v_proj.output_scale", ".k_zero_point", ".v_zero_point"})
    if (entry.name.ends_with(end)) return true;
  return false;
}

// Writers of GPTQ add a bias to each layer.
bool is_bias_of_zeros(const TensorEntry& entry, const ModelConfig& config) {
  const auto& quantization = config.quantization;
  const bool is_gptq = quantization && quantization->scheme == QuantizationScheme::grouped &&
                       quantization->groups.layout == GroupLayout::gptq;
  if (!is_gptq || !entry.name.ends_with(".bias")) return false;
  const std::byte* bytes = entry.tensor.data();
  return std::all_of(bytes, bytes + entry.tensor.meta.bytes().number(),
                     [](std::byte one) { return one == std::byte{}; });
}

template <bool (*is_one)(std::string_view name, const ModelConfig& config)>
bool has_name(const TensorEntry& entry, const ModelConfig& config) {
  return is_one(entry.name, config);
}

struct Harmless {
  bool (*is_one)(const TensorEntry& entry, const ModelConfig& config);
  const char* reason;
  bool is_said = false;  // to all users
};
constexpr Harmless kHarmless[] = {
    {has_name<is_inverse_frequencies>, "frequencies of rotary positions follow from the config"},
    {has_name<is_copy_of_embedding>, "the head is the embedding, by tie_word_embeddings"},
    {has_name<predicts_later_token>, "layers that predict a later token take no part in the next one"},
    {has_name<is_after_last_layer>, "num_hidden_layers does not count its layer, which should predict a later token",
     true},
    {has_name<is_of_shared_keys>, "the layer reads keys and values of an earlier layer"},
    {has_name<is_in_joined_latents>, "attn_kv_b has the keys and values of latents, too"},
    {has_name<is_unused_scale>, "altup_correct_scale is off"},
    {has_name<is_of_index>, "the index chooses all tokens of the context"},
    {has_name<is_of_images_or_sound>, "text passes through no part for images or sound"},
    {has_name<is_of_pooled_head>, "it is no part of the layers: embeddings and scores are made of their results"},
    {is_usual_parameter, "the model computes with the usual value"},
    {is_causal_mask, "each token attends to those before it"},
    {is_scale_of_kv_cache, "keys and values are stored without scales"},
    {is_bias_of_zeros, "a bias of zeros changes nothing"},
};

// The factors of blocks, which matrices are read with. An embedding is not.
std::vector<std::string> factors_of_matrices(const Checkpoint& checkpoint, const ModelDefinition& model,
                                             const ModelConfig& config) {
  std::vector<std::string> names;
  model.visit_tensors(config, config.format, [&](const ModelDefinition::StoredWeight& stored) {
    if (stored.weight.name == "token_embd" || stored.weight.name == "layer_input_embd") return;
    std::string factors = factors_of_blocks(checkpoint, stored.key);
    if (!factors.empty()) names.push_back(std::move(factors));
  });
  return names;
}

}  // namespace

UnreadTensors unread_tensors(const Checkpoint& checkpoint, const ModelDefinition& model, const ModelConfig& config) {
  UnreadTensors unread;
  const std::vector<std::string> names = model.tensor_names(config);
  std::set<std::string_view> read(names.begin(), names.end());
  read.insert(config.rope.frequency_factors);
  std::vector<std::string> factors = factors_of_matrices(checkpoint, model, config);
  read.insert(factors.begin(), factors.end());
  if (config.rope.scaling.type == RopeScalingType::longrope) read.insert({kLongFactors, kShortFactors});
  std::map<const Harmless*, std::vector<std::string_view>> by_reason;
  for (const TensorEntry& entry : checkpoint.tensors()) {
    if (read.contains(entry.name)) continue;
    const auto* const harmless = std::find_if(std::begin(kHarmless), std::end(kHarmless),
                                              [&](const Harmless& one) { return one.is_one(entry, config); });
    if (harmless == std::end(kHarmless)) {
      unread.names.push_back(entry.name);
    } else {
      by_reason[harmless].push_back(entry.name);
    }
  }
  for (const auto& [harmless, its_names] : by_reason)
    (harmless->is_said ? unread.said : unread.harmless)
        .push_back(fmt::format("[{}] {} is not read ({} such in all): {}", checkpoint.path(), its_names[0],
                               its_names.size(), harmless->reason));
  return unread;
}

std::string check_unread_tensors(const std::vector<std::string>& names, const std::string& path, bool is_ignored) {
  if (names.empty()) return "";
  constexpr std::size_t kShown = 4;
  const std::span<const std::string> first(names.data(), std::min(names.size(), kShown));
  const std::string text = fmt::format("[{}] no weight of the model reads {}{} ({} in all)", path,
                                       fmt::join(first, ", "), names.size() > kShown ? ", ..." : "", names.size());
  USER_CHECK(is_ignored, "{}; --ignore-unread-tensors computes without such tensors", text);
  return text;
}

}  // namespace weft
