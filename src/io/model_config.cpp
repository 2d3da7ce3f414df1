#include "io/model_config.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/sort.h"
#include "base/text.h"
#include "io/config_fields.h"
#include "io/known_keys.h"
#include "io/rope_config.h"
#include "io/vocabulary.h"

namespace weft {
namespace {

// Far above the widths of existing models, and so small that a product of several of them fits into 63 bits.
constexpr Range<std::int64_t> kWidths = {1, 1 << 20};
constexpr Range<std::int64_t> kLayers = {1, 4096};
constexpr Range<std::int64_t> kHeads = {1, 65536};
constexpr Range<std::int64_t> kHeadDims = {2, 4096};
constexpr Range<std::int64_t> kVocabulary = {1, 1 << 24};
constexpr Range<std::int64_t> kExperts = {0, 65536};
constexpr Range<double> kEpsilons = {1e-12, 1};

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

template <class Fields>
std::optional<std::int64_t> token_id(const Fields& fields, std::string_view key, const ModelConfig& config) {
  return integer_in(fields, key, {0, config.vocab_size - 1});
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

// Reads from layer_types, for each layer, whether it has a window. Empty if the key is absent.
std::vector<bool> layers_with_window(const JsonFields& fields, const ModelConfig& config) {
  std::vector<bool> layers;
  const Json* types = fields.value("layer_types");
  if (types == nullptr) return layers;
  USER_CHECK(types->is_array() && static_cast<std::int64_t>(types->size()) == config.layer_count,
             "[{}] layer_types must be a list of num_hidden_layers {} words, but is {}", fields.where(),
             config.layer_count, json_text(*types));
  for (const Json& type : *types) {
    USER_CHECK(type == "full_attention" || type == "sliding_attention",
               "[{}] layer_types must be full_attention or sliding_attention, but has {}", fields.where(),
               json_text(type));
    layers.push_back(type == "sliding_attention");
  }
  return layers;
}

// Checks the config of an architecture without a window. For these, transformers computes all layers without one and
// ignores the key, but other programs apply it. So a window that would change the result is an error.
void check_has_no_window(const JsonFields& fields, const ModelConfig& config) {
  const auto length = integer_in(fields, "sliding_window", kContexts);
  USER_CHECK(!length || *length >= config.context_length || !fields.find_boolean("use_sliding_window").value_or(true),
             "[{}] sliding_window must be null: the layers of {} have no window, but is {}", fields.where(),
             config.architecture, *length);
}

// Sets which layers have a window, with the rules of transformers.
void read_windows(const JsonFields& fields, const std::optional<WindowFacts>& window, ModelConfig& config) {
  const bool is_asked_for = fields.find_boolean("use_sliding_window").value_or(!window || !window->first_layer);
  if (!window) {
    check_has_no_window(fields, config);
  } else if (is_asked_for && !fields.is_null("sliding_window")) {
    config.sliding_window = integer_in(fields, "sliding_window", kContexts).value_or(window->length);
  }
  std::vector<bool> layers = layers_with_window(fields, config);
  if (!config.sliding_window) {
    USER_CHECK(std::count(layers.begin(), layers.end(), true) == 0,
               "[{}] layer_types has sliding_attention, which wants a sliding_window, but {}", fields.where(),
               is_asked_for ? "there is none" : "use_sliding_window is off");
    return;
  }
  USER_CHECK(!layers.empty() || !fields.has("sliding_window_pattern"),
             "[{}] sliding_window_pattern is not supported without layer_types", fields.where());
  if (layers.empty() && window->first_layer) {
    const auto first = integer_in(fields, "max_window_layers", {0, kLayers.greatest});
    for (std::int64_t layer = 0; layer < config.layer_count; ++layer)
      layers.push_back(layer >= first.value_or(*window->first_layer));
  }
  const auto count = std::count(layers.begin(), layers.end(), true);
  if (!layers.empty() && count == 0) config.sliding_window.reset();
  if (count > 0 && count < config.layer_count) config.has_window = std::move(layers);
}

std::string architecture_of(const JsonFields& fields) {
  const auto architecture = fields.find_text("model_type");
  USER_CHECK(architecture && !architecture->empty(), "[{}] wanted model_type, the architecture's name, but it is {}",
             fields.where(), architecture ? "empty" : "missing");
  return *architecture;
}

DType residual_dtype(const JsonFields& fields) {
  for (const auto key : {"dtype", "torch_dtype"}) {
    const auto text = fields.find_text(key);
    if (!text) continue;
    if (*text == "float32") return DType::f32;
    if (*text == "float16") return DType::f16;
    if (*text == "bfloat16") return DType::bf16;
    fail_user("[{}] {} must be float32, float16 or bfloat16, but is {}", fields.where(), key, quote(*text));
  }
  return DType::f32;
}

void read_token_ids(const JsonFields& fields, ModelConfig& config) {
  config.bos_token_id = token_id(fields, "bos_token_id", config);
  config.eos_token_ids = ids_in_vocabulary(fields.find_integers("eos_token_id"), config.vocab_size, fields.where(),
                                           "eos_token_id", config.warnings);
  sort_without_repeats(config.eos_token_ids);
  // Files of the first Llama models use -1 for no token.
  if (fields.find_integer("pad_token_id") != -1) config.pad_token_id = token_id(fields, "pad_token_id", config);
}

// ---- GGUF ----

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

void read_head_dim(const GgufFields& fields, ModelConfig& config) {
  const auto key = integer_in(fields, "attention.key_length", kHeadDims);
  const auto value = integer_in(fields, "attention.value_length", kHeadDims);
  config.head_dim = key ? *key : default_head_dim(fields, config, "attention.head_count", "embedding_length");
  USER_CHECK(!value || *value == config.head_dim, "[{}] {} must be that of keys, {}, but is {}", fields.where(),
             fields.name("attention.value_length"), config.head_dim, *value);
}

void read_token_ids(const Gguf& gguf, ModelConfig& config) {
  const GgufFields tokenizer(gguf, "tokenizer.ggml.");
  config.bos_token_id = token_id(tokenizer, "bos_token_id", config);
  config.pad_token_id = token_id(tokenizer, "padding_token_id", config);
  for (const auto key : {"eos_token_id", "eot_token_id", "eom_token_id"})
    if (const auto id = tokenizer.find_integer(key))
      for (const auto end :
           ids_in_vocabulary({*id}, config.vocab_size, gguf.where(), tokenizer.name(key), config.warnings))
        config.eos_token_ids.push_back(end);
  sort_without_repeats(config.eos_token_ids);
}

}  // namespace

ModelConfig model_config_from_json(std::string_view text, const std::string& where, const ArchitectureFacts& facts) {
  const auto json = parse_config_json(text, where);
  const JsonFields fields(json, where);
  ModelConfig config;
  config.architecture = architecture_of(fields);
  if (const auto* classes = fields.value("architectures"); classes != nullptr && classes->is_array())
    if (!classes->empty() && classes->front().is_string()) config.architecture_class = classes->front();
  config.unknown_keys = unknown_keys(KeyTable::config, json, where, "", facts.keys);

  config.hidden_size = needed_integer_in(fields, "hidden_size", kWidths);
  config.intermediate_size = needed_integer_in(fields, "intermediate_size", kWidths);
  config.layer_count = needed_integer_in(fields, "num_hidden_layers", kLayers);
  config.head_count = needed_integer_in(fields, "num_attention_heads", kHeads);
  config.kv_head_count = integer_in(fields, "num_key_value_heads", kHeads).value_or(config.head_count);
  check_kv_heads(fields, config, "num_attention_heads", "num_key_value_heads");
  auto head_dim = integer_in(fields, "head_dim", kHeadDims);
  if (!head_dim) head_dim = facts.head_dim;
  config.head_dim = head_dim ? *head_dim : default_head_dim(fields, config, "num_attention_heads", "hidden_size");
  config.vocab_size = needed_integer_in(fields, "vocab_size", kVocabulary);
  config.context_length = needed_integer_in(fields, "max_position_embeddings", kContexts);
  config.rms_norm_eps = needed_real_in(fields, "rms_norm_eps", kEpsilons);
  read_rope(fields, facts, config);

  config.hidden_act = fields.find_text("hidden_act").value_or(facts.hidden_act);
  config.hidden_activation = fields.find_text("hidden_activation").value_or("");
  config.tie_word_embeddings = fields.find_boolean("tie_word_embeddings").value_or(facts.tie_word_embeddings);
  config.attention_bias = fields.find_boolean("attention_bias").value_or(false);
  config.mlp_bias = fields.find_boolean("mlp_bias").value_or(false);
  read_windows(fields, facts.window, config);
  USER_CHECK(!fields.find_boolean("use_bidirectional_attention").value_or(false),
             "[{}] use_bidirectional_attention must be false: attention is causal, but is true", where);
  config.expert_count = integer_in(fields, "num_local_experts", kExperts).value_or(0);
  config.next_token_layers = integer_in(fields, "num_nextn_predict_layers", {0, kLayers.greatest}).value_or(0);
  config.quantization = quantization_from_json(fields);
  config.dtype = residual_dtype(fields);
  read_token_ids(fields, config);
  return config;
}

std::optional<std::int64_t> ModelConfig::window_of(int layer) const {
  return has_window.empty() || has_window[static_cast<std::size_t>(layer)] ? sliding_window : std::nullopt;
}

ModelConfig model_config_from_gguf(const Gguf& gguf, const ArchitectureFacts& facts) {
  ModelConfig config;
  config.format = CheckpointFormat::gguf;
  config.architecture = architecture_from_gguf(gguf);
  const GgufFields fields(gguf, config.architecture + ".");
  config.hidden_size = needed_integer_in(fields, "embedding_length", kWidths);
  config.intermediate_size = needed_integer_in(fields, "feed_forward_length", kWidths);
  config.layer_count = needed_integer_in(fields, "block_count", kLayers);
  config.head_count = needed_integer_in(fields, "attention.head_count", kHeads);
  config.kv_head_count = integer_in(fields, "attention.head_count_kv", kHeads).value_or(config.head_count);
  check_kv_heads(fields, config, "attention.head_count", "attention.head_count_kv");
  read_head_dim(fields, config);
  config.vocab_size = gguf_vocabulary(gguf, fields);
  config.context_length = needed_integer_in(fields, "context_length", kContexts);
  config.rms_norm_eps = needed_real_in(fields, "attention.layer_norm_rms_epsilon", kEpsilons);
  read_rope(fields, gguf, facts, config);
  config.unknown_keys = unknown_gguf_keys(gguf, config.architecture);

  config.hidden_act = facts.hidden_act;
  config.tie_word_embeddings = gguf.find_tensor("output.weight") == nullptr;
  config.attention_bias = gguf.find_tensor("blk.0.attn_q.bias") != nullptr;
  config.mlp_bias = gguf.find_tensor("blk.0.ffn_up.bias") != nullptr;
  config.sliding_window = integer_in(fields, "attention.sliding_window", kContexts);
  USER_CHECK(!fields.has("attention.sliding_window_pattern"),
             "[{}] {} is not supported: all layers or none have a window", fields.where(),
             fields.name("attention.sliding_window_pattern"));
  config.expert_count = integer_in(fields, "expert_count", kExperts).value_or(0);
  read_token_ids(gguf, config);
  return config;
}

std::string architecture_from_json(std::string_view text, const std::string& where) {
  const auto json = parse_config_json(text, where);
  return architecture_of(JsonFields(json, where));
}

std::string architecture_from_gguf(const Gguf& gguf) { return std::string(gguf.text("general.architecture")); }

void check_architecture(std::string_view architecture, std::span<const std::string> known, const std::string& where) {
  USER_CHECK(std::find(known.begin(), known.end(), architecture) != known.end(),
             "[{}] the architecture must be one of {}, but is {}", where, fmt::join(known, ", "), quote(architecture));
}

}  // namespace weft
