// Llama 4, the part for text: Scout and Maverick. Every n-th layer has experts, of which each token has one, and a
// shared one; the sigmoid of the router's logit multiplies the input of the expert. Every fourth layer has no rotary
// positions, but scales queries by position. All other layers normalize each head of queries and keys after they are
// rotated, and attend within chunks of tokens, of which the first one is supported here.

#include <fmt/core.h>

#include "base/error.h"
#include "models/model.h"
#include "nn/attention.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/feed_forward.h"
#include "nn/llama.h"
#include "nn/norm.h"

namespace weft {
namespace {

Value llama4_attention(Builder& b, nn::DecoderStep& step, const Value& x, int layer) {
  nn::QueryKeyValue heads = nn::query_key_value(b, x, layer);
  nn::rotate(b, step, heads, layer);
  if (b.facts.config.has_head_norms && b.facts.config.rope_of(layer) != nullptr) {
    heads.query = nn::norm_heads(b, heads.query, layer);
    heads.key = nn::norm_heads(b, heads.key, layer);
  }
  return nn::attend_rotated(b, step, heads, layer);
}

Values llama4_forward(Builder& b) { return nn::llama_forward_with(b, llama4_attention); }

constexpr std::int64_t kChunk = 8192;       // of all published models
constexpr double kQueryScale = 0.1;         // the same
constexpr std::int64_t kNoHeadNorms = 128;  // the experts of Maverick, which does not normalize heads

// GGUF files state none of these.
void complete_llama4(ModelConfig& c) {
  if (c.format == CheckpointFormat::gguf) {
    c.attention_chunk = c.unrotated_query_length = kChunk;
    c.unrotated_query_scale = kQueryScale;
    c.scales_unrotated_queries = true;
    c.has_head_norms = c.expert_count != kNoHeadNorms;
    if (c.experts) c.experts->shared_width = c.experts->width;
  }
  if (c.attention_chunk == 0 || c.attention_chunk >= c.context_length) return;
  c.warnings.push_back(
      fmt::format("[{}] layers attend within chunks of {} tokens, of which only the first one is supported: the "
                  "context is {} tokens and not {}",
                  c.architecture, c.attention_chunk, c.attention_chunk, c.context_length));
  c.context_length = c.attention_chunk;
}

void check_llama4(const ModelConfig& c) {
  nn::check_gated_decoder(c);
  USER_CHECK(!c.experts || c.experts->used == 1, "[{}] num_experts_per_tok must be 1, but is {}", c.architecture,
             c.experts->used);
  USER_CHECK(!c.scales_unrotated_queries || c.unrotated_query_length > 0, "[{}] floor_scale must be above 0, but is {}",
             c.architecture, c.unrotated_query_length);
}

nn::WeightTable llama4_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  const std::string module = "model.layers.{}.feed_forward.", gate_up = module + "experts.gate_up_proj",
                    down = module + "experts.down_proj";
  nn::rename(weights, {{"ffn_gate", "", module + "gate_proj"},
                       {"ffn_up", "", module + "up_proj"},
                       {"ffn_down", "", module + "down_proj"}});
  nn::add_experts(weights, {.module = "feed_forward"});
  nn::rename(weights, {{"ffn_gate_inp", "", module + "router"}});
  nn::name_merged_experts(weights, gate_up, down);
  for (ModelWeight& weight : weights)
    if (weight.hugging_face == gate_up || weight.hugging_face == down)
      weight.transposed_in = {CheckpointFormat::hugging_face};
  nn::add_shared_expert(weights, "feed_forward.shared_expert");
  return weights;
}

constexpr const char* kLlama4Sample = R"({
  "architectures": ["Llama4ForCausalLM"], "model_type": "llama4_text", "hidden_act": "silu", "hidden_size": 64,
  "intermediate_size": 32, "intermediate_size_mlp": 96, "num_hidden_layers": 4, "num_attention_heads": 4,
  "num_key_value_heads": 2, "head_dim": 32, "max_position_embeddings": 128, "rms_norm_eps": 1e-5,
  "rope_theta": 500000.0, "tie_word_embeddings": false, "num_local_experts": 4, "num_experts_per_tok": 1,
  "interleave_moe_layer_step": 2, "no_rope_layer_interval": 4, "use_qk_norm": true,
  "attention_chunk_size": 8192, "attn_temperature_tuning": true, "floor_scale": 8192, "attn_scale": 0.1,
  "vocab_size": 257, "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(llama4) {
  using namespace weft;
  models.add(
      {.architectures = {"llama4_text"},
       .aliases = {"llama4"},
       .gguf_architecture = "llama4",
       .facts = {.defaults = R"({"rms_norm_eps": 1e-5, "max_position_embeddings": 131072, "head_dim": 128,
                                 "rope_theta": 500000.0, "num_local_experts": 16, "num_experts_per_tok": 1,
                                 "intermediate_size": 8192, "intermediate_size_mlp": 16384, "use_qk_norm": true,
                                 "attention_chunk_size": 8192, "attn_temperature_tuning": true, "floor_scale": 8192,
                                 "attn_scale": 0.1})",
                 .text_config_defaults = R"({"vocab_size": 202048, "hidden_size": 5120, "num_hidden_layers": 48,
                                             "num_attention_heads": 40, "num_key_value_heads": 8})",
                 .words_of_layers = {"chunked_attention"},
                 .feed_forward_width = "intermediate_size_mlp",
                 .pairing_in_folders = RotaryPairing::neighbours,
                 .pairing_in_gguf = RotaryPairing::neighbours,
                 .rotary = {.unrotated_period = 4},
                 .experts = ExpertFacts{.count = "num_local_experts",
                                        .width = "intermediate_size",
                                        .shared_width = "intermediate_size",
                                        .scores = ExpertScores::sigmoid,
                                        .is_merged_in_folders = true,
                                        .first = "",
                                        .step = "interleave_moe_layer_step",
                                        .layers = "moe_layers",
                                        .weighs_inputs = true},
                 .numbers = {{&ModelConfig::unrotated_query_scale, "attn_scale"}},
                 .counts = {{&ModelConfig::unrotated_query_length, "floor_scale"},
                            {&ModelConfig::attention_chunk, "attention_chunk_size"}},
                 .switches = {{&ModelConfig::scales_unrotated_queries, "attn_temperature_tuning"},
                              {&ModelConfig::has_head_norms, "use_qk_norm"},
                              {&ModelConfig::attention_bias, "attention_bias", "", "blk.0.attn_q.bias"},
                              {&ModelConfig::attention_output_bias, "attention_bias", "", "blk.0.attn_output.bias"}},
                 .keys = {"no_rope_layers", "no_rope_layer_interval", "router_jitter_noise"},
                 .complete = complete_llama4},
       .weights = llama4_weights(),
       .forward = llama4_forward,
       .head = nn::decoder_head,
       .fusions_per_layer = {{"rms_quant", 2}, {"act_quant", 1}, {"attn_quant", 1}},
       .fusions_per_mixture = {{"rms_quant", 1}, {"attn_quant", 1}},
       .fusions_of_experts = {{"act_quant", 1}},
       .check = check_llama4,
       .sample_config = kLlama4Sample});
}
