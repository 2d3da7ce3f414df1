#include "io/model_config.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/sort.h"
#include "base/text.h"
#include "io/config_fields.h"

namespace weft {
namespace {

// Far beyond any model there is, and small enough that no product of a few of them leaves 63 bits.
constexpr Range<std::int64_t> kWidths = {1, 1 << 20};
constexpr Range<std::int64_t> kLayers = {1, 4096};
constexpr Range<std::int64_t> kHeads = {1, 65536};
constexpr Range<std::int64_t> kHeadDims = {2, 4096};
constexpr Range<std::int64_t> kVocabulary = {1, 1 << 24};
constexpr Range<std::int64_t> kContexts = {1, 1 << 24};  // positions are exact in f32 up to here
constexpr Range<std::int64_t> kExperts = {0, 65536};
constexpr Range<double> kEpsilons = {1e-12, 1};
constexpr Range<double> kThetas = {1, 1e15};
constexpr Range<double> kFactors = {1, 1e6};
constexpr Range<double> kPositive = {1e-6, 1e6};

constexpr std::array kRopeScalings = {
    std::pair{"default", RopeScalingType::none},    std::pair{"linear", RopeScalingType::linear},
    std::pair{"dynamic", RopeScalingType::dynamic}, std::pair{"llama3", RopeScalingType::llama3},
    std::pair{"yarn", RopeScalingType::yarn},
};

// What the files of an architecture leave unsaid; the first stands for all others.
struct Unsaid {
  std::string_view architecture;
  const char* hidden_act;
  bool tie_word_embeddings;  // config.json; GGUF files show it by their tensors
  // config.json, of the sliding window; null says that there is none.
  std::optional<std::int64_t> sliding_window = std::nullopt;
  // Of families that turn their window on by use_sliding_window: the first layer that has it where layer_types is
  // silent, too.
  std::optional<std::int64_t> max_window_layers = std::nullopt;
};
constexpr std::array kUnsaid = {
    Unsaid{"", "silu", false},
    Unsaid{"gemma", "gelu_pytorch_tanh", true},
    Unsaid{"mistral", "silu", false, 4096},
    Unsaid{"qwen3", "silu", false, 4096, 28},
};

const Unsaid& unsaid(std::string_view architecture) {
  const auto* const found =
      std::find_if(kUnsaid.begin(), kUnsaid.end(), [&](const Unsaid& one) { return one.architecture == architecture; });
  return found == kUnsaid.end() ? kUnsaid.front() : *found;
}

RopeScalingType scaling_type(std::string_view text, const std::string& name, const std::string& where) {
  if (text == "none") return RopeScalingType::none;
  std::vector<std::string_view> known;
  for (const auto& [candidate, type] : kRopeScalings) {
    if (candidate == text) return type;
    known.push_back(candidate);
  }
  fail_user("[{}] {} must be one of {}, but is {}", where, name, fmt::join(known, ", "), quote(text));
}

// What a head's width is when the file does not say.
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
void check_rotary_dim(const Fields& fields, const ModelConfig& config, std::string_view key) {
  const auto dim = config.rope.rotary_dim;
  USER_CHECK(dim >= 2 && dim % 2 == 0 && dim <= config.head_dim,
             "[{}] {} must make a rotary dim that is even and at most the head's {}, but it is {}", fields.where(),
             fields.name(key), config.head_dim, dim);
}

template <class Fields>
std::optional<std::int64_t> token_id(const Fields& fields, std::string_view key, const ModelConfig& config) {
  return integer_in(fields, key, {0, config.vocab_size - 1});
}

// ---- config.json ----

RopeScaling scaling_from_json(const JsonFields& fields, std::int64_t context_length) {
  RopeScaling scaling;
  for (const auto key : {"rope_type", "type"})
    if (const auto text = fields.find_text(key)) {
      scaling.type = scaling_type(*text, fields.name(key), fields.where());
      break;
    }
  using enum RopeScalingType;
  if (scaling.type == none) return scaling;
  scaling.original_context_length = context_length;
  if (const auto length = integer_in(fields, "original_max_position_embeddings", kContexts))
    scaling.original_context_length = *length;
  if (scaling.type == dynamic) scaling.alpha = real_in(fields, "alpha", kPositive);
  if (!scaling.alpha) scaling.factor = needed_real_in(fields, "factor", kFactors);
  if (scaling.type == llama3) {
    needed_integer_in(fields, "original_max_position_embeddings", kContexts);
    scaling.low_freq_factor = needed_real_in(fields, "low_freq_factor", kPositive);
    scaling.high_freq_factor = needed_real_in(fields, "high_freq_factor", kPositive);
    USER_CHECK(scaling.high_freq_factor > scaling.low_freq_factor, "[{}] {} must be above {} {}, but is {}",
               fields.where(), fields.name("high_freq_factor"), fields.name("low_freq_factor"), scaling.low_freq_factor,
               scaling.high_freq_factor);
  }
  if (scaling.type == yarn) {
    scaling.beta_fast = real_in(fields, "beta_fast", kPositive).value_or(scaling.beta_fast);
    scaling.beta_slow = real_in(fields, "beta_slow", kPositive).value_or(scaling.beta_slow);
    scaling.truncate = fields.find_boolean("truncate").value_or(true);
    scaling.attention_factor = real_in(fields, "attention_factor", kPositive);
    scaling.mscale = real_in(fields, "mscale", {0, 1e6});
    scaling.mscale_all_dim = real_in(fields, "mscale_all_dim", {0, 1e6});
  }
  return scaling;
}

// rope_parameters is where newer files have everything; older ones have rope_scaling and keys beside it.
void read_rope(const JsonFields& fields, ModelConfig& config) {
  auto theta = real_in(fields, "rope_theta", kThetas);
  auto partial = real_in(fields, "partial_rotary_factor", {0, 1});
  for (const auto key : {"rope_parameters", "rope_scaling"}) {
    const auto inner = fields.find_object(key);
    if (!inner) continue;
    for (const auto& [name, value] : fields.value(key)->items())
      USER_CHECK(!value.is_object(), "[{}] {} is set per kind of layer, which is not supported", fields.where(),
                 quote(inner->name(name)));
    if (const auto own = real_in(*inner, "rope_theta", kThetas)) theta = own;
    if (const auto own = real_in(*inner, "partial_rotary_factor", {0, 1})) partial = own;
    config.rope.scaling = scaling_from_json(*inner, config.context_length);
    break;
  }
  config.rope.theta = theta.value_or(config.rope.theta);
  config.rope.rotary_dim = static_cast<std::int64_t>(static_cast<double>(config.head_dim) * partial.value_or(1));
  check_rotary_dim(fields, config, partial ? "partial_rotary_factor" : "head_dim");
}

// By layer, of layer_types, whether it has a window; empty where the key is absent.
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

// Which layers have a window, as transformers reads it.
void read_windows(const JsonFields& fields, const Unsaid& otherwise, ModelConfig& config) {
  const bool is_asked_for = fields.find_boolean("use_sliding_window").value_or(!otherwise.max_window_layers);
  if (is_asked_for && !fields.is_null("sliding_window")) {
    config.sliding_window = integer_in(fields, "sliding_window", kContexts);
    if (!config.sliding_window) config.sliding_window = otherwise.sliding_window;
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
  if (layers.empty() && otherwise.max_window_layers) {
    const auto first = integer_in(fields, "max_window_layers", {0, kLayers.greatest});
    for (std::int64_t layer = 0; layer < config.layer_count; ++layer)
      layers.push_back(layer >= first.value_or(*otherwise.max_window_layers));
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
  config.eos_token_ids = fields.find_integers("eos_token_id");
  for (const auto id : config.eos_token_ids)
    USER_CHECK(id >= 0 && id < config.vocab_size, "[{}] eos_token_id must be 0 to {}, but is {}", fields.where(),
               config.vocab_size - 1, id);
  sort_without_repeats(config.eos_token_ids);
  // -1 stands for none in files of the first Llama models.
  if (fields.find_integer("pad_token_id") != -1) config.pad_token_id = token_id(fields, "pad_token_id", config);
}

// ---- GGUF ----

RopeScaling scaling_from_gguf(const GgufFields& fields, std::int64_t context_length) {
  RopeScaling scaling;
  if (const auto text = fields.find_text("rope.scaling.type"))
    scaling.type = scaling_type(*text, fields.name("rope.scaling.type"), fields.where());
  using enum RopeScalingType;
  if (scaling.type == none) return scaling;
  scaling.factor = needed_real_in(fields, "rope.scaling.factor", kFactors);
  scaling.original_context_length =
      integer_in(fields, "rope.scaling.original_context_length", kContexts).value_or(context_length);
  if (scaling.type != yarn) return scaling;
  scaling.beta_fast = real_in(fields, "rope.scaling.yarn_beta_fast", kPositive).value_or(scaling.beta_fast);
  scaling.beta_slow = real_in(fields, "rope.scaling.yarn_beta_slow", kPositive).value_or(scaling.beta_slow);
  for (const auto key : {"rope.scaling.attn_factor", "rope.scaling.yarn_attn_factor", "rope.scaling.yarn_ext_factor",
                         "rope.scaling.yarn_log_multiplier"})
    if (const auto value = fields.find_real(key))
      USER_CHECK(*value == 1, "[{}] {} must be 1: others are not supported yet, but is {}", fields.where(),
                 fields.name(key), *value);
  return scaling;
}

void read_rope(const GgufFields& fields, const Gguf& gguf, ModelConfig& config) {
  auto& rope = config.rope;
  rope.theta = real_in(fields, "rope.freq_base", kThetas).value_or(rope.theta);
  rope.rotary_dim = fields.find_integer("rope.dimension_count").value_or(config.head_dim);
  check_rotary_dim(fields, config, "rope.dimension_count");
  rope.is_neox_style = config.architecture != "llama";
  rope.scaling = scaling_from_gguf(fields, config.context_length);
  if (gguf.find_tensor("rope_freqs.weight") != nullptr) rope.frequency_factors = "rope_freqs.weight";
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
    if (const auto id = token_id(tokenizer, key, config)) config.eos_token_ids.push_back(*id);
  sort_without_repeats(config.eos_token_ids);
}

}  // namespace

std::string_view rope_scaling_text(RopeScalingType type) {
  for (const auto& [text, candidate] : kRopeScalings)
    if (candidate == type) return text;
  return "";
}

ModelConfig model_config_from_json(std::string_view text, const std::string& where) {
  const auto json = parse_config_json(text, where);
  const JsonFields fields(json, where);
  ModelConfig config;
  config.architecture = architecture_of(fields);
  if (const auto* classes = fields.value("architectures"); classes != nullptr && classes->is_array())
    if (!classes->empty() && classes->front().is_string()) config.architecture_class = classes->front();

  config.hidden_size = needed_integer_in(fields, "hidden_size", kWidths);
  config.intermediate_size = needed_integer_in(fields, "intermediate_size", kWidths);
  config.layer_count = needed_integer_in(fields, "num_hidden_layers", kLayers);
  config.head_count = needed_integer_in(fields, "num_attention_heads", kHeads);
  config.kv_head_count = integer_in(fields, "num_key_value_heads", kHeads).value_or(config.head_count);
  check_kv_heads(fields, config, "num_attention_heads", "num_key_value_heads");
  const auto head_dim = integer_in(fields, "head_dim", kHeadDims);
  config.head_dim = head_dim ? *head_dim : default_head_dim(fields, config, "num_attention_heads", "hidden_size");
  config.vocab_size = needed_integer_in(fields, "vocab_size", kVocabulary);
  config.context_length = needed_integer_in(fields, "max_position_embeddings", kContexts);
  config.rms_norm_eps = needed_real_in(fields, "rms_norm_eps", kEpsilons);
  read_rope(fields, config);

  const Unsaid& otherwise = unsaid(config.architecture);
  config.hidden_act = fields.find_text("hidden_act").value_or(otherwise.hidden_act);
  config.hidden_activation = fields.find_text("hidden_activation").value_or("");
  config.tie_word_embeddings = fields.find_boolean("tie_word_embeddings").value_or(otherwise.tie_word_embeddings);
  config.attention_bias = fields.find_boolean("attention_bias").value_or(false);
  config.mlp_bias = fields.find_boolean("mlp_bias").value_or(false);
  read_windows(fields, otherwise, config);
  USER_CHECK(!fields.find_boolean("use_bidirectional_attention").value_or(false),
             "[{}] use_bidirectional_attention must be false: attention is causal, but is true", where);
  config.expert_count = integer_in(fields, "num_local_experts", kExperts).value_or(0);
  config.quantization = quantization_from_json(fields);
  config.dtype = residual_dtype(fields);
  read_token_ids(fields, config);
  return config;
}

std::optional<std::int64_t> ModelConfig::window_of(int layer) const {
  return has_window.empty() || has_window[static_cast<std::size_t>(layer)] ? sliding_window : std::nullopt;
}

ModelConfig model_config_from_gguf(const Gguf& gguf) {
  ModelConfig config;
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
  read_rope(fields, gguf, config);

  config.hidden_act = unsaid(config.architecture).hidden_act;
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
