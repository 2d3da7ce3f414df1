// OLMo 1 and OLMoE: Llama's layers, where queries, keys and values are clamped if the config asks for it. The norms of
// OLMo 1 subtract the mean and have neither weights nor biases. OLMoE has a mixture of experts, whose weights are not
// divided by their sum, and normalizes queries and keys over all their heads.

#include <limits>

#include "base/error.h"
#include "models/bias_switches.h"
#include "models/model.h"
#include "nn/attention.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/llama.h"

namespace weft {
namespace {

// The keys of the limit of queries, keys and values.
constexpr const char* kLimit = "clip_qkv";
constexpr const char* kLimitInGguf = "attention.clamp_kqv";

nn::WeightTable olmo_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  nn::erase_norms(weights);
  return weights;
}

Values olmoe_forward(Builder& b) { return nn::llama_forward_with(b, nn::self_attention_with_row_norms); }

nn::WeightTable olmoe_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  nn::add_row_norms(weights);
  nn::add_experts(weights);
  return weights;
}

// In GGUF files a limit of 0 is none.
void complete_limit(ModelConfig& c) {
  if (c.format == CheckpointFormat::gguf && c.query_key_value_limit == 0)
    c.query_key_value_limit = std::numeric_limits<double>::infinity();
}

void check_limit(const ModelConfig& c) {
  nn::check_gated_decoder(c);
  USER_CHECK(c.query_key_value_limit >= 0, "[{}] {} must be at least 0, but is {}", c.architecture,
             c.format == CheckpointFormat::gguf ? kLimitInGguf : kLimit, c.query_key_value_limit);
}

// Folders have no key of the norms' epsilon.
constexpr const char* kOlmoDefaults = R"({"layer_norm_eps": 1e-5, "max_position_embeddings": 2048})";

constexpr const char* kOlmoSample = R"({
  "architectures": ["OlmoForCausalLM"], "model_type": "olmo", "hidden_act": "silu", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "max_position_embeddings": 128, "rope_theta": 10000.0, "tie_word_embeddings": false, "clip_qkv": 8.0,
  "vocab_size": 257, "eos_token_id": 256
})";

constexpr const char* kOlmoeSample = R"({
  "architectures": ["OlmoeForCausalLM"], "model_type": "olmoe", "hidden_act": "silu", "hidden_size": 64,
  "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4,
  "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false,
  "clip_qkv": null, "norm_topk_prob": false, "num_experts": 4, "num_experts_per_tok": 2, "vocab_size": 257,
  "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(olmoe) {
  using namespace weft;
  const NumberKey limit{&ModelConfig::query_key_value_limit, kLimit, kLimitInGguf};
  models.add({.architectures = {"olmo"},
              .facts = {.defaults = kOlmoDefaults,
                        .norm = {.kind = NormKind::layer, .epsilon = "layer_norm_eps"},
                        .pairing_in_gguf = RotaryPairing::neighbours,
                        .numbers = {limit},
                        .switches = attention_biases(),
                        .complete = complete_limit},
              .weights = olmo_weights(),
              .forward = nn::llama_forward,
              .head = nn::decoder_head,
              .fusions_per_layer = {{"act_quant", 1}, {"attn_quant", 1}, {"rope_kvcache", 1}},
              .check = check_limit,
              .sample_config = kOlmoSample});
  models.add({.architectures = {"olmoe"},
              .facts = {.defaults = R"({"rms_norm_eps": 1e-05, "max_position_embeddings": 4096, "num_experts": 64,
                                        "num_experts_per_tok": 8})",
                        .experts = ExpertFacts{.width = "intermediate_size"},
                        .numbers = {limit},
                        .switches = attention_biases(),
                        .complete = complete_limit},
              .weights = olmoe_weights(),
              .forward = olmoe_forward,
              .head = nn::decoder_head,
              .fusions_per_mixture = {{"rms_quant", 1}, {"attn_quant", 1}, {"rope_kvcache", 1}},
              .fusions_of_experts = {{"act_quant", 1}},
              .check = check_limit,
              .sample_config = kOlmoeSample});
}
