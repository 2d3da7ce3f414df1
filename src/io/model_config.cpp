#include "io/model_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <utility>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/sort.h"
#include "base/text.h"
#include "io/architecture_name.h"
#include "io/config_defaults.h"
#include "io/config_fields.h"
#include "io/expert_config.h"
#include "io/feed_forward_config.h"
#include "io/gguf_vocabulary.h"
#include "io/half_config.h"
#include "io/known_keys.h"
#include "io/latent_config.h"
#include "io/layer_config.h"
#include "io/model_dtype.h"
#include "io/own_fields.h"
#include "io/recurrent_config.h"
#include "io/rope_config.h"
#include "io/task_config.h"
#include "io/vocabulary.h"

namespace weft {
namespace {

constexpr Range<std::int64_t> kVocabulary = {1, 1 << 24};
constexpr Range<double> kEpsilons = {1e-12, 1};

void set_norm(const NormFacts& norm, ModelConfig& config) {
  config.norm = norm.kind;
  config.norm_has_bias = norm.has_bias;
}

// Checks what may differ from layer to layer.
void check_layers(const std::string& where, const ModelConfig& config) {
  for (int layer = 0; layer < config.layer_count; ++layer) {
    if (!config.attends(layer)) continue;
    USER_CHECK(config.kv_layer_of(layer) >= 0,
               "[{}] of {} layers, the last {} share keys and values, but no layer of the kind of layer {} is before "
               "them",
               where, config.layer_count, config.shared_kv_layer_count, layer);
    USER_CHECK(config.head_count % config.kv_head_count_of(layer) == 0,
               "[{}] the key and value heads of layer {} must divide the {} heads, but are {}", where, layer,
               config.head_count, config.kv_head_count_of(layer));
  }
}

// Sets what follows from the other fields.
void complete(const ArchitectureFacts& facts, ModelConfig& config) {
  if (facts.complete != nullptr) facts.complete(config);
  // Files state the width of a window of both sides, without the token between them.
  if (!config.is_causal && config.sliding_window) config.sliding_window = *config.sliding_window / 2 + 1;
  if (config.attention_scale != 0) return;
  const double width = config.query_width > 0 ? config.query_width : static_cast<double>(config.head_dim);
  config.attention_scale = 1 / std::sqrt(width);
}

// The width of a head if the file does not have it.
template <class Fields>
std::int64_t default_head_dim(const Fields& fields, const ModelConfig& config, std::string_view heads,
                              std::string_view width) {
  USER_CHECK(config.hidden_size % config.head_count == 0, "[{}] {} must divide {} {}, but is {}", fields.where(),
             fields.name(heads), fields.name(width), config.hidden_size, config.head_count);
  const auto head_dim = config.hidden_size / config.head_count;
  USER_CHECK(head_dim >= kHeadDims.least && head_dim <= kHeadDims.greatest, "[{}] {} / {} must be {} to {}, but is {}",
             fields.where(), fields.name(width), fields.name(heads), kHeadDims.least, kHeadDims.greatest, head_dim);
  return head_dim;
}

template <class Fields>
void check_kv_heads(const Fields& fields, const ModelConfig& config, std::string_view heads,
                    std::string_view kv_heads) {
  USER_CHECK(config.head_count % config.kv_head_count == 0, "[{}] {} must divide {} {}, but is {}", fields.where(),
             fields.name(kv_heads), fields.name(heads), config.head_count, config.kv_head_count);
}

// Some published models name a first token that they do not have.
template <class Fields>
std::optional<std::int64_t> first_id(const Fields& fields, std::string_view key, ModelConfig& config) {
  const auto id = fields.find_integer(key);
  if (!id || (*id >= 0 && *id < config.vocab_size)) return id;
  config.warnings.push_back(no_such_token(fields.where(), fields.name(key), *id));
  return std::nullopt;
}

// No text has the token that fills batches. Files of the first Llama models use -1 for none.
template <class Fields>
std::optional<std::int64_t> padding_id(const Fields& fields, std::string_view key, ModelConfig& config) {
  const auto id = fields.find_integer(key);
  if (!id || (*id >= 0 && *id < config.vocab_size)) return id;
  if (*id != -1) config.warnings.push_back(no_such_token(fields.where(), fields.name(key), *id));
  return std::nullopt;
}

// Returns the ids that are tokens of the model. Any other id ends nothing and adds a warning.
std::vector<std::int64_t> ids_in_vocabulary(const std::vector<std::int64_t>& ids, std::int64_t count,
                                            const std::string& where, const std::string& key,
                                            std::vector<std::string>& warnings) {
  std::vector<std::int64_t> result;
  for (const auto id : ids) {
    if (id >= 0 && id < count) {
      result.push_back(id);
    } else {
      warnings.push_back(no_such_token(where, key, id));
    }
  }
  return result;
}

// ---- config.json ----

void read_token_ids(const JsonFields& fields, ModelConfig& config) {
  config.bos_token_id = first_id(fields, "bos_token_id", config);
  config.eos_token_ids = ids_in_vocabulary(fields.find_integers("eos_token_id"), config.vocab_size, fields.where(),
                                           "eos_token_id", config.warnings);
  sort_without_repeats(config.eos_token_ids);
  config.pad_token_id = padding_id(fields, "pad_token_id", config);
}

// ---- GGUF ----

// Files of models without attention have 0.
std::int64_t head_count(const GgufFields& fields, const ModelConfig& config) {
  constexpr const char* kKey = "attention.head_count";
  const bool attends =
      config.halves.empty() || std::count(config.halves.begin(), config.halves.end(), HalfKind::attention) > 0;
  return attends ? needed_integer_in(fields, kKey, kHeads)
                 : std::max<std::int64_t>(1, integer_in(fields, kKey, {0, kHeads.greatest}).value_or(0));
}

// A list of key heads has a 0 for a layer without attention.
void read_kv_heads(const GgufFields& fields, const Gguf& gguf, bool may_be_zero, ModelConfig& config) {
  constexpr const char* kKey = "attention.head_count_kv";
  config.kv_head_count = config.head_count;
  const GgufValue* value = gguf.find(fields.name(kKey));
  if (value == nullptr) return;
  if (value->is_array && may_be_zero) {
    const std::vector<std::int64_t> numbers = gguf.find_integers(fields.name(kKey)).value();
    const auto first = std::find_if(numbers.begin(), numbers.end(), [](std::int64_t heads) { return heads != 0; });
    if (first == numbers.end()) return;  // no layer has attention
    USER_CHECK(*first >= kHeads.least && *first <= kHeads.greatest, "[{}] {} must have numbers of {} to {}, but has {}",
               fields.where(), fields.name(kKey), kHeads.least, kHeads.greatest, *first);
    config.kv_head_count = *first;
  } else {
    if (value->is_array) {
      const std::vector<std::int64_t> numbers = gguf.find_integers(fields.name(kKey)).value();
      USER_CHECK(std::count(numbers.begin(), numbers.end(), 0) == 0,
                 "[{}] {} has 0: layers without attention are not supported for {}", fields.where(), fields.name(kKey),
                 config.architecture);
    }
    config.kv_head_count = first_or_only(fields, gguf, kKey, kHeads);
  }
  check_kv_heads(fields, config, "attention.head_count", kKey);
}

std::int64_t gguf_vocabulary(const Gguf& gguf, const GgufFields& fields) {
  if (const auto size = integer_in(fields, "vocab_size", kVocabulary)) return *size;
  const auto* tokens = gguf.find("tokenizer.ggml.tokens");
  USER_CHECK(tokens != nullptr, "[{}] wanted {} or tokenizer.ggml.tokens, but there is neither", gguf.where(),
             fields.name("vocab_size"));
  USER_CHECK(tokens->is_array && tokens->count >= 1 && tokens->count <= kVocabulary.greatest,
             "[{}] tokenizer.ggml.tokens must be an array of 1 to {}, but is {}", gguf.where(), kVocabulary.greatest,
             tokens->type_name());
  return static_cast<std::int64_t>(tokens->count);
}

// The width of keys, which must be that of values.
void check_value_width(const GgufFields& fields, std::int64_t width, std::string_view key) {
  const auto value = integer_in(fields, key, kHeadDims);
  USER_CHECK(!value || *value == width, "[{}] {} must be that of keys, {}, but is {}", fields.where(), fields.name(key),
             width, *value);
}

// Files with two widths have the one of layers without a window under the usual key.
void read_head_dim(const GgufFields& fields, ModelConfig& config) {
  const auto width = integer_in(fields, "attention.key_length", kHeadDims);
  config.head_dim = width ? *width : default_head_dim(fields, config, "attention.head_count", "embedding_length");
  check_value_width(fields, config.head_dim, "attention.value_length");
  const auto sliding = integer_in(fields, "attention.key_length_swa", kHeadDims);
  if (!sliding) return;
  check_value_width(fields, *sliding, "attention.value_length_swa");
  if (*sliding != config.head_dim) config.full_head_dim = config.head_dim;
  config.head_dim = *sliding;
}

// The layers of a GGUF file are counted with those that predict a later token.
void read_layer_count(const GgufFields& fields, ModelConfig& config) {
  const std::int64_t all = needed_integer_in(fields, "block_count", kLayers);
  config.next_token_layers = integer_in(fields, "nextn_predict_layers", {0, all - 1}).value_or(0);
  config.layer_count = all - config.next_token_layers;
}

void read_token_ids(const Gguf& gguf, ModelConfig& config) {
  const GgufFields tokenizer(gguf, "tokenizer.ggml.");
  config.bos_token_id = first_id(tokenizer, "bos_token_id", config);
  config.pad_token_id = padding_id(tokenizer, "padding_token_id", config);
  const auto add_end = [&](std::string_view key) {
    const auto id = tokenizer.find_integer(key);
    if (!id) return;
    const auto ends = ids_in_vocabulary({*id}, config.vocab_size, gguf.where(), tokenizer.name(key), config.warnings);
    config.eos_token_ids.insert(config.eos_token_ids.end(), ends.begin(), ends.end());
  };
  add_end("eos_token_id");
  for (const std::string_view key : gguf_end_keys()) add_end(key);
  sort_without_repeats(config.eos_token_ids);
}

}  // namespace

ModelConfig model_config_from_json(std::string_view text, const std::string& where, const ArchitectureFacts& facts) {
  const Json json = whole_config(text, where, facts);
  const JsonFields fields(json, where, facts.key_names);
  ModelConfig config;
  config.architecture = architecture_of(fields);
  config.architecture_class = architecture_class(fields, facts.bidirectional);
  config.unknown_keys =
      unknown_keys(KeyTable::config, json, where, "", own_keys(facts, CheckpointFormat::hugging_face));

  config.hidden_size = needed_integer_in(fields, "hidden_size", kWidths);
  config.intermediate_size = feed_forward_width(fields, facts, config.hidden_size);
  if (facts.halves) {
    read_halves(fields, *facts.halves, config);
  } else {
    config.layer_count = needed_integer_in(fields, "num_hidden_layers", kLayers);
  }
  config.head_count = needed_integer_in(fields, "num_attention_heads", kHeads);
  config.kv_head_count = integer_in(fields, "num_key_value_heads", kHeads).value_or(config.head_count);
  check_kv_heads(fields, config, "num_attention_heads", "num_key_value_heads");
  const auto head_dim = integer_in(fields, "head_dim", kHeadDims);
  // Heads of latents have widths of their own, of which one is rotated.
  config.head_dim = head_dim            ? *head_dim
                    : facts.has_latents ? needed_integer_in(fields, "qk_rope_head_dim", kHeadDims)
                                        : default_head_dim(fields, config, "num_attention_heads", "hidden_size");
  read_own_counts(fields, facts, config);
  config.vocab_size = needed_integer_in(fields, "vocab_size", kVocabulary);
  config.context_length = needed_integer_in(fields, "max_position_embeddings", kContexts);
  set_norm(facts.norm, config);
  config.norm_eps = needed_real_in(fields, facts.norm.epsilon, kEpsilons);
  read_recurrent(fields, facts.recurrent, config);
  read_windows(fields, facts, config);
  read_layer_overrides(fields, config);
  read_rope(fields, facts, config);
  read_rotated_layers(fields, facts, config);
  if (facts.has_latents) read_latents(fields, config);
  read_gate_cuts(fields, config);

  config.groups_heads = facts.groups_heads_in_folders;
  config.hidden_act = fields.find_text("hidden_act").value_or(config.hidden_act);
  config.activation_key = fields.name("hidden_act");
  config.hidden_activation = fields.find_text("hidden_activation").value_or("");
  config.tie_word_embeddings = fields.find_boolean("tie_word_embeddings").value_or(false);
  read_own_fields(fields, facts, config);
  config.is_causal = is_causal(fields, facts.bidirectional);
  read_experts(fields, facts.experts, config);
  config.next_token_layers = integer_in(fields, "num_nextn_predict_layers", {0, kLayers.greatest}).value_or(0);
  config.quantization = quantization_from_json(fields);
  if (config.quantization) {
    config.quantization->embedding = facts.embedding;
    const std::vector<std::string>& unknown = config.quantization->unknown_keys;
    config.unknown_keys.insert(config.unknown_keys.end(), unknown.begin(), unknown.end());
    const std::vector<std::string>& warnings = config.quantization->warnings;
    config.warnings.insert(config.warnings.end(), warnings.begin(), warnings.end());
  }
  read_dtype(fields, config);
  read_token_ids(fields, config);
  complete(facts, config);
  if (!config.generates()) {
    config.tie_word_embeddings = true;
    config.head_bias = false;
  }
  check_layers(where, config);
  return config;
}

ModelConfig model_config_from_gguf(const Gguf& gguf, const ArchitectureFacts& facts) {
  ModelConfig config;
  config.format = CheckpointFormat::gguf;
  config.architecture = architecture_from_gguf(gguf);
  const GgufFields fields(gguf, config.architecture + ".");
  config.hidden_size = needed_integer_in(fields, "embedding_length", kWidths);
  read_layer_count(fields, config);
  if (facts.halves) read_halves(gguf, config);
  config.intermediate_size = feed_forward_width(fields, gguf, facts, config);
  config.head_count = head_count(fields, config);
  read_kv_heads(fields, gguf, facts.recurrent.has_value(), config);
  config.norm_eps = needed_real_in(fields, facts.norm.epsilon_in_gguf(), kEpsilons);
  read_recurrent(fields, gguf, facts.recurrent, config);
  if (facts.has_latents) {
    read_latents(fields, gguf, config);
  } else {
    read_head_dim(fields, config);
  }
  read_own_counts(fields, gguf, facts, config);
  config.vocab_size = gguf_vocabulary(gguf, fields);
  config.context_length = needed_integer_in(fields, "context_length", kContexts);
  set_norm(facts.norm, config);
  read_windows(fields, gguf, facts.window, config);
  read_layer_lists(fields, gguf, config);
  read_gate_cuts(fields, gguf, config);
  read_rope(fields, gguf, facts, config);
  read_rotated_layers(fields, facts, config);
  std::vector<std::string_view> own = own_keys(facts, CheckpointFormat::gguf);
  own.push_back(facts.norm.epsilon_in_gguf());
  config.unknown_keys = unknown_gguf_keys(gguf, config.architecture, own);

  const Json defaults = parse_json(facts.defaults);
  config.hidden_act = defaults.value("hidden_act", config.hidden_act);
  config.tie_word_embeddings = gguf.find_tensor("output.weight") == nullptr;
  config.is_causal = is_causal(fields, facts.bidirectional);
  read_own_fields(fields, gguf, facts, config);
  int attending = 0;  // the first layer with attention
  while (attending + 1 < config.layer_count && !config.attends(attending)) ++attending;
  config.merges_query_key_value = gguf.find_tensor(fmt::format("blk.{}.attn_qkv.weight", attending)) != nullptr;
  read_experts(fields, gguf, facts.experts, config);
  read_token_ids(gguf, config);
  complete(facts, config);
  check_layers(gguf.where(), config);
  return config;
}

}  // namespace weft
