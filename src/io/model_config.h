#pragma once

// The facts of a model's architecture, read from a Hugging Face config.json or from the metadata of a GGUF file. Both
// readers check each number against bounds and against the other numbers, so users of a ModelConfig need no checks.
// Each error is a UserError that begins with [where] and names the key as the file spells it:
//
//   [config.json] num_key_value_heads must divide num_attention_heads 9, but is 4

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/architecture_facts.h"
#include "io/gguf.h"
#include "io/quantization_config.h"
#include "tensor/dtype.h"

namespace weft {

enum class RopeScalingType : std::uint8_t { none, linear, dynamic, llama3, yarn, longrope, proportional };

std::string_view rope_scaling_text(RopeScalingType type);  // default linear dynamic llama3 yarn longrope proportional

// How positions beyond the trained context are mapped into it. A field is used only for the types in its comment.
struct RopeScaling {
  RopeScalingType type = RopeScalingType::none;
  double factor = 1;                         // all but dynamic with alpha: new context / trained context
  std::int64_t original_context_length = 0;  // dynamic, llama3, yarn, longrope: the trained context
  double low_freq_factor = 1;                // llama3
  double high_freq_factor = 4;               // llama3
  double beta_fast = 32;                     // yarn
  double beta_slow = 1;                      // yarn
  bool truncate = true;                      // yarn: the correction range is rounded to whole dims
  // yarn, longrope: scales cos and sin; absent in yarn: 0.1 ln(factor) + 1, or from mscale
  std::optional<double> attention_factor;
  std::optional<double> mscale;          // yarn
  std::optional<double> mscale_all_dim;  // yarn
  std::optional<double> alpha;           // dynamic: fixed NTK alpha instead of a factor
  // longrope: the divisors of the frequencies, for contexts up to the trained one and for longer ones. Empty for GGUF
  // files, which have them as tensors.
  std::vector<double> short_factors;
  std::vector<double> long_factors;
  // longrope: what scales cos and sin with each set of factors, in place of attention_factor.
  std::optional<double> short_magnitude;
  std::optional<double> long_magnitude;
  double rotated_part = 1;  // proportional: the part of the frequencies that is not 0
};

// The tensors of a GGUF file by which the frequencies of rotary positions are divided; the last two are longrope's.
constexpr const char* kFrequencyFactors = "rope_freqs.weight";
constexpr const char* kLongFactors = "rope_factors_long.weight";
constexpr const char* kShortFactors = "rope_factors_short.weight";

struct RopeConfig {
  double theta = 10000;
  std::int64_t rotary_dim = 0;                    // number of leading elements of a head that are rotated; even
  RotaryPairing pairing = RotaryPairing::halves;  // of the weights as these files store them
  RopeScaling scaling;
  // Name of a tensor f32[rotary_dim / 2] by which the inverse frequencies are divided; "" for none. GGUF files store
  // the llama3 scaling as this tensor, and their scaling.type is then none.
  std::string frequency_factors;
  bool is_reversed = false;  // the frequencies are negative
  // Queries are multiplied by 1 + beta ln(1 + floor(position / original_context_length)); 0 for none.
  double query_scale_beta = 0;
};

// How files store the experts of a layer, if their format has more than one way.
//   usual               as the model's table of weights says: GGUF files have a stack for each weight
//   modules             folders have the stacks of transformers' own modules, which are the same for all architectures
//   transposed_modules  the same stacks with each matrix transposed, as published folders of Qwen 3 VL have them
//   single              GGUF files of early converters have a tensor for each expert
enum class ExpertLayout : std::uint8_t { usual, modules, transposed_modules, single };
// In folders, the stacks of the layouts of modules, with {} for the layer: for gate and up, and for down.
inline constexpr const char* kModulesGateUp = "model.layers.{}.mlp.experts.gate_up_proj";
inline constexpr const char* kModulesDown = "model.layers.{}.mlp.experts.down_proj";

// A mixture of experts: the feed-forward of the layers that have it.
struct ExpertConfig {
  std::int64_t count = 0;
  std::int64_t used = 0;          // experts of each token
  std::int64_t width = 0;         // of an expert's feed-forward
  std::int64_t shared_width = 0;  // of the expert that computes all tokens; 0: there is none
  ExpertScores scores = ExpertScores::softmax;
  bool normalizes = false;  // the weights of a token's experts are divided by their sum
  bool is_merged = false;   // the files have one stack for gate and up
  ExpertLayout layout = ExpertLayout::usual;
  double scale = 1;            // a factor of these weights
  bool weighs_inputs = false;  // the weights multiply what experts read, and not their results
  bool keeps_dense = false;    // the layers have the feed-forward for all tokens, too
  // The experts of a token are chosen from this number of the groups of equal size, those with the best scores: the sum
  // of the kBestOfGroup best experts of sigmoid scores, or the best one.
  std::int64_t groups = 1;
  std::int64_t used_groups = 1;
  static constexpr std::int64_t kBestOfGroup = 2;

  bool has_stacks_of_modules() const {
    return layout == ExpertLayout::modules || layout == ExpertLayout::transposed_modules;
  }
};

// Latent attention: a layer's pages have one key head, of rotary_dim rotated elements and `rank` latents, and
// ModelConfig::head_dim is their sum.
struct LatentConfig {
  std::int64_t query_rank = 0;  // of the queries' own latents; 0: there are none
  std::int64_t rank = 0;
  std::int64_t plain_dim = 0;  // elements of a query that are not rotated
  std::int64_t rotary_dim = 0;
  std::int64_t value_dim = 0;
  bool is_joined = true;  // the files have one tensor with the rows of keys and values; else a stack for each
};

// What Falcon H1 multiplies in Mamba 2: its input, the parts of its projection, and its result.
struct MambaFactors {
  double input = 1, gate = 1, value = 1, key = 1, query = 1, step = 1, output = 1;
};

// The recurrent layers of a model. The convolution of a layer has a state of the last convolution_width - 1 tokens, and
// each of the value heads has one of [key_dim, value_dim]. Value heads share a key head as query heads do in attention.
struct RecurrentConfig {
  RecurrentKind kind = RecurrentKind::gated_delta;
  std::int64_t convolution_width = 0;  // tokens that a row of the convolution reads
  bool has_convolution_bias = false;
  bool has_projection_bias = false;
  bool has_output_bias = false;  // of the projection of the result
  // All of them are 0 if the convolution has the only state. Of Mamba 2: groups, heads, and the widths of B and x. Of
  // Mamba 1: a head each, and the widths of B and x.
  std::int64_t key_heads = 0, value_heads = 0, key_dim = 0, value_dim = 0;
  std::int64_t keys_width() const { return key_heads * key_dim; }
  std::int64_t values_width() const { return value_heads * value_dim; }
  // Of a gated delta net, the files have one projection for queries, keys, values and gates, or one for beta and alpha,
  // with the rows of each key head together (Qwen 3 Next).
  bool is_joined = false;
  bool is_grouped = false;
  bool has_tiled_values = false;  // value head i has key head i % key_heads, and not i * key_heads / value_heads
  // Of Mamba 1: the width of what is projected to the steps, and the norm of this and of B and C.
  std::int64_t step_rank = 0;
  bool normalizes_parts = false;
  double parts_epsilon = 0;
  // Of Mamba 2: steps are clamped to these two. The result has a norm, before its gates or after them.
  double least_step = 0;
  double largest_step = std::numeric_limits<double>::infinity();
  bool has_norm = true;
  bool norms_before_gate = false;
  MambaFactors factors;
};

struct ModelConfig {
  CheckpointFormat format = CheckpointFormat::hugging_face;  // of the files
  std::string architecture;        // "llama": model_type of config.json, general.architecture of GGUF
  std::string architecture_class;  // "LlamaForCausalLM": the first of config.json's architectures; "" if unknown

  std::int64_t hidden_size = 0;
  std::int64_t parallel_norm_count = 0;  // of a parallel layer, as files state it; 0: they do not
  std::int64_t embedding_width = 0;      // of tokens, where files may state another; 0: hidden_size
  std::int64_t token_width() const { return embedding_width == 0 ? hidden_size : embedding_width; }
  bool projects_embeddings() const { return token_width() != hidden_size; }
  std::int64_t intermediate_size = 0;
  std::int64_t widening = 0;  // intermediate_size as a multiple of hidden_size, where files state it so
  std::int64_t layer_count = 0;
  std::int64_t head_count = 0;
  std::int64_t kv_head_count = 0;  // divides head_count
  std::int64_t head_dim = 0;
  // Layers without a window may have heads of another width, and another number of key and value heads. 0: the same.
  std::int64_t full_head_dim = 0;
  std::int64_t full_kv_head_count = 0;
  std::int64_t head_dim_of(int layer) const;
  std::int64_t kv_head_count_of(int layer) const;
  // The last layers read the keys and values of the last other layer of their kind, with or without a window.
  std::int64_t shared_kv_layer_count = 0;
  // The layer whose keys and values a layer reads; most layers have their own.
  int kv_layer_of(int layer) const;
  bool has_own_kv(int layer) const { return attends(layer) && layer < layer_count - shared_kv_layer_count; }
  std::vector<HalfKind> halves;  // of each layer, if layers have one half each
  bool is_half(int layer, HalfKind kind) const { return halves[static_cast<std::size_t>(layer)] == kind; }
  std::optional<RecurrentConfig> recurrent;
  std::vector<bool> is_recurrent;         // for each layer, if there are recurrent layers
  bool has_attention_everywhere = false;  // also in recurrent layers
  bool recurs(int layer) const { return recurrent && is_recurrent[static_cast<std::size_t>(layer)]; }
  bool attends(int layer) const {
    return halves.empty() ? has_attention_everywhere || !recurs(layer) : is_half(layer, HalfKind::attention);
  }
  std::int64_t convolution_channels() const;  // of recurrent layers
  bool full_values_are_keys = false;          // without a window, a layer's values are its keys before their norm
  bool widens_shared_layers = false;          // layers without keys of their own have a feed-forward of twice the width
  std::int64_t intermediate_size_of(int layer) const;
  // Each layer has embeddings of tokens of its own, of this width; 0: none. Their table has this number of tokens.
  std::int64_t layer_input_width = 0;
  std::int64_t layer_input_vocab_size = 0;
  std::int64_t vocab_size = 0;
  std::int64_t context_length = 0;
  NormKind norm = NormKind::rms;
  bool norm_has_bias = false;
  bool norm_has_weight = true;      // where a switch of the files states it
  bool norms_before_halves = true;  // the same; false: the sum of a half and its input is normalized
  double norm_eps = 0;
  // The number of rows in the table of learned positions, 0 if there is none, and the row of position 0.
  std::int64_t position_rows = 0;
  std::int64_t first_position_row = 0;
  std::int64_t token_type_count = 0;  // rows in the table of BERT's token types; 0: there is none
  RopeConfig rope;
  // The positions of layers with a window, if they are others than `rope`.
  std::optional<RopeConfig> sliding_rope;
  double rope_ratio = 1;  // a factor of rope.theta, where files state it
  // For each layer, whether it has rotary positions. Empty: all layers have them.
  std::vector<bool> is_rotated;
  // The layer's rotary positions; null if it has none.
  const RopeConfig* rope_of(int layer) const;
  // In layers without rotary positions, queries are multiplied by 1 + scale ln(1 + floor((position + 1) / length)).
  bool scales_unrotated_queries = false;
  double unrotated_query_scale = 0;
  std::int64_t unrotated_query_length = 0;
  // Scores of attention have a bias by head and distance (nn/score_bias.h): that of ALiBi, unless the first number is
  // 0, or the learned one of buckets of distances, unless the last one is 0.
  double alibi_bias_max = 0;  // the slope of the last head is 2^-alibi_bias_max
  double alibi_factor = 1;    // of all slopes
  bool has_alibi = false;     // where a switch of the files states it
  std::int64_t distance_bucket_count = 0;
  bool has_score_bias() const { return alibi_bias_max > 0 || distance_bucket_count > 0; }
  // Layers attend to this number of tokens, which an index chooses; 0: to all. Only contexts of which it chooses all
  // tokens are supported.
  std::int64_t indexed_tokens = 0;
  // Some layers attend within chunks of this number of tokens; 0: none does. Only the first chunk is supported.
  std::int64_t attention_chunk = 0;

  // For each layer: only gates pass that are above the mean of all gates by this number of standard deviations.
  // -infinity for a layer whose gates all pass; empty if those of all layers do.
  std::vector<double> gate_cuts;
  std::optional<double> gate_cut_of(int layer) const;
  // For each layer, the parameters of xIELU, if the metadata of the file has them.
  std::vector<double> xielu_alpha_p, xielu_alpha_n;
  std::int64_t low_rank = 0;      // of a low-rank part of each layer, next to attention
  std::int64_t stream_count = 1;  // of the residual sum; layers read the active one
  std::int64_t active_stream = 0;
  bool scales_active_stream = false;  // by a vector of the layer, for the layer's own embeddings

  std::string hidden_act = "silu";  // in Hugging Face's spelling; the architecture's default if the file omits it
  std::string hidden_activation;    // the same from a second key in Gemma's files; "" if absent
  std::string activation_key = "hidden_act";  // the key of the first, as the file spells it
  bool tie_word_embeddings = false;           // the head uses the embedding's weight
  bool attention_bias = false;                // of queries, keys and values
  bool attention_output_bias = false;         // of the projection after attention
  bool mlp_bias = false;                      // of the feed-forward
  bool head_bias = false;                     // of the logits
  bool merges_query_key_value = false;        // the files have one weight for the three
  bool groups_heads = false;                  // and its rows are sorted by key head (ArchitectureFacts)
  bool has_attention_gate = false;            // the rows of each query head are followed by those of its gate
  bool has_head_norms = true;                 // where an architecture may have norms of each head of query and key
  double gate_limit = 0;                      // of gate and up before they are combined; 0 for none
  bool is_parallel = false;                   // attention and feed-forward of a layer read the same input
  bool norms_each_half = false;               // of a parallel layer: each has a norm of that input
  bool has_one_key_head = false;              // where a switch of the files states it
  bool states_key_heads = false;              // the files state the number of key heads, where others have that switch
  double embedding_scale = 1;                 // a factor of the embeddings
  bool scales_embedding_by_width = false;     // where a switch of the files states it: it is the root of hidden_size
  double attention_input_scale = 1;           // factors of what attention reads, of its keys and of its result
  double key_scale = 1;
  double attention_output_scale = 1;
  double gate_scale = 1;  // factors of the feed-forward's gate and of its result
  double feed_forward_scale = 1;
  double residual_scale = 1;  // a factor of what a layer adds to the residual sum
  // The same times the square root of the number of layers, and hidden_size over logit_divisor, where files state
  // these; 0: they do not.
  double depth_scale = 0;
  double base_width = 0;
  double logit_scale = 1;                // a factor of the logits
  double logit_divisor = 1;              // a divisor of the logits
  bool normalizes_head = false;          // each row of the head's weight is divided by its length
  bool normalizes_head_columns = false;  // the same of each column; GGUF files have the quotients
  double attention_scale = 0;            // a factor of attention's scores; the files' or 1 / sqrt(head_dim)
  bool divides_attention_scale = false;  // by the number of the layer, counted from one
  double attention_scale_of(int layer) const;
  double query_width = 0;  // query_pre_attn_scalar: attention_scale is 1 / sqrt of it; 0 if absent
  // Queries, keys and values are clamped to it and its negative; transformers clamps to 0, too.
  double query_key_value_limit = std::numeric_limits<double>::infinity();
  double attention_softcap = 0;  // scores become cap tanh(score / cap); 0 for none
  double logit_softcap = 0;      // the same of logits
  bool is_causal = true;         // false: tokens attend to later ones, too (Bidirectional)
  // Whether the class of a folder scores texts (io/score_config.h). Such models have no head of logits.
  bool is_classifier() const { return architecture_class.ends_with("ForSequenceClassification"); }
  bool generates() const { return is_causal && !is_classifier(); }
  // Most tokens that a query attends to, including its own; without is_causal, as many after its own as before it.
  std::optional<std::int64_t> sliding_window;
  // For each layer, whether it has the window. Empty: all layers have it, or there is no window.
  std::vector<bool> has_window;
  bool slides(int layer) const { return window_of(layer).has_value(); }
  std::optional<std::int64_t> window_of(int layer) const;
  std::int64_t expert_count = 0;  // that the files state, also of an architecture without experts; 0: none
  std::optional<ExpertConfig> experts;
  // For ExpertScores::sparse_mixer: logits are near to the largest one if the difference is at most twice this part of
  // the larger magnitude.
  double mixer_tolerance = 0.01;
  std::optional<LatentConfig> latents;
  // For each layer, whether it has the experts. Empty: all layers have them, or there are none.
  std::vector<bool> has_experts;
  bool routes(int layer) const {
    if (!halves.empty()) return experts && is_half(layer, HalfKind::experts);
    return experts && (has_experts.empty() || has_experts[static_cast<std::size_t>(layer)]);
  }
  // Whether the layer has a feed-forward for all tokens, other than a shared expert.
  bool has_dense(int layer) const {
    return halves.empty() ? !routes(layer) || experts->keeps_dense : is_half(layer, HalfKind::feed_forward);
  }
  std::int64_t expert_input_width = 0;  // of latents, which experts read and write; 0: hidden_size
  // Extra layers after the last one in a folder that predict a later token; the next token does not use them.
  std::int64_t next_token_layers = 0;
  std::optional<QuantizationConfig> quantization;

  DType dtype = DType::f32;  // default dtype of the residual stream; f32 for GGUF
  bool has_dtype = true;     // false: config.json states none
  std::optional<std::int64_t> bos_token_id;
  std::vector<std::int64_t> eos_token_ids;  // any of them ends generation; ascending and unique
  std::optional<std::int64_t> pad_token_id;

  std::vector<std::string> unknown_keys;  // keys that no table has (io/known_keys.h), in the order of the file
  std::vector<std::string> warnings;      // sentences about ignored values
};

// Reads the text of a config.json, or the metadata of a GGUF file, for an architecture with these facts.
ModelConfig model_config_from_json(std::string_view text, const std::string& where, const ArchitectureFacts& facts);
ModelConfig model_config_from_gguf(const Gguf& gguf, const ArchitectureFacts& facts);

}  // namespace weft
