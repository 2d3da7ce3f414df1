#pragma once

// The facts of a model's architecture, read from a Hugging Face config.json or from the metadata of a GGUF file. Both
// readers check each number against bounds and against the other numbers, so users of a ModelConfig need no checks.
// Each error is a UserError that begins with [where] and names the key as the file spells it:
//
//   [config.json] num_key_value_heads must divide num_attention_heads 9, but is 4

#include <cstdint>
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

enum class RopeScalingType : std::uint8_t { none, linear, dynamic, llama3, yarn };

std::string_view rope_scaling_text(RopeScalingType type);  // default linear dynamic llama3 yarn

// How positions beyond the trained context are mapped into it. A field is used only for the types in its comment.
struct RopeScaling {
  RopeScalingType type = RopeScalingType::none;
  double factor = 1;                         // all but dynamic with alpha: new context / trained context
  std::int64_t original_context_length = 0;  // dynamic, llama3, yarn: the trained context
  double low_freq_factor = 1;                // llama3
  double high_freq_factor = 4;               // llama3
  double beta_fast = 32;                     // yarn
  double beta_slow = 1;                      // yarn
  bool truncate = true;                      // yarn: the correction range is rounded to whole dims
  std::optional<double> attention_factor;    // yarn: scales cos and sin; absent: 0.1 ln(factor) + 1, or from mscale
  std::optional<double> mscale;              // yarn
  std::optional<double> mscale_all_dim;      // yarn
  std::optional<double> alpha;               // dynamic: fixed NTK alpha instead of a factor
};

// The tensor of a GGUF file by which the frequencies of rotary positions are divided.
constexpr const char* kFrequencyFactors = "rope_freqs.weight";

struct RopeConfig {
  double theta = 10000;
  std::int64_t rotary_dim = 0;                    // number of leading elements of a head that are rotated; even
  RotaryPairing pairing = RotaryPairing::halves;  // of the weights as these files store them
  RopeScaling scaling;
  // Name of a tensor f32[rotary_dim / 2] by which the inverse frequencies are divided; "" for none. GGUF files store
  // the llama3 scaling as this tensor, and their scaling.type is then none.
  std::string frequency_factors;
};

struct ModelConfig {
  CheckpointFormat format = CheckpointFormat::hugging_face;  // of the files
  std::string architecture;        // "llama": model_type of config.json, general.architecture of GGUF
  std::string architecture_class;  // "LlamaForCausalLM": the first of config.json's architectures; "" if unknown

  std::int64_t hidden_size = 0;
  std::int64_t intermediate_size = 0;
  std::int64_t layer_count = 0;
  std::int64_t head_count = 0;
  std::int64_t kv_head_count = 0;  // divides head_count
  std::int64_t head_dim = 0;
  std::int64_t vocab_size = 0;
  std::int64_t context_length = 0;
  double rms_norm_eps = 0;
  RopeConfig rope;

  std::string hidden_act = "silu";   // in Hugging Face's spelling; the architecture's default if the file omits it
  std::string hidden_activation;     // the same from a second key in Gemma's files; "" if absent
  bool tie_word_embeddings = false;  // the head uses the embedding's weight
  bool attention_bias = false;
  bool mlp_bias = false;
  std::optional<std::int64_t> sliding_window;  // most tokens that a query attends to, including its own
  // For each layer, whether it has the window. Empty: all layers have it, or there is no window.
  std::vector<bool> has_window;
  std::optional<std::int64_t> window_of(int layer) const;
  std::int64_t expert_count = 0;  // 0: no mixture of experts
  // Extra layers after the last one in a folder that predict a later token; the next token does not use them.
  std::int64_t next_token_layers = 0;
  std::optional<QuantizationConfig> quantization;

  DType dtype = DType::f32;  // default dtype of the residual stream; f32 for GGUF
  std::optional<std::int64_t> bos_token_id;
  std::vector<std::int64_t> eos_token_ids;  // any of them ends generation; ascending and unique
  std::optional<std::int64_t> pad_token_id;

  std::vector<std::string> unknown_keys;  // keys that no table has (io/known_keys.h), in the order of the file
  std::vector<std::string> warnings;      // sentences about ignored values
};

// Reads the text of a config.json, or the metadata of a GGUF file, for an architecture with these facts.
ModelConfig model_config_from_json(std::string_view text, const std::string& where, const ArchitectureFacts& facts);
ModelConfig model_config_from_gguf(const Gguf& gguf, const ArchitectureFacts& facts);

// Reads only the architecture.
std::string architecture_from_json(std::string_view text, const std::string& where);
std::string architecture_from_gguf(const Gguf& gguf);

// UserError, which names the architecture and the known ones, if the architecture is not one of them.
void check_architecture(std::string_view architecture, std::span<const std::string> known, const std::string& where);

}  // namespace weft
