// LFM2: most layers have a short convolution in place of attention; the others have norms of the heads of queries and
// keys. Larger models have a mixture of experts.

#include "models/model.h"
#include "nn/attention.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/llama.h"
#include "nn/recurrent.h"

namespace weft {
namespace {

Values lfm2_forward(Builder& b) {
  return nn::llama_forward_with(b, [](Builder& builder, nn::DecoderStep& step, const Value& x, int layer) {
    return builder.facts.config.recurs(layer) ? nn::short_convolution(builder, step, x, layer)
                                              : nn::self_attention_with_head_norms(builder, step, x, layer);
  });
}

nn::WeightTable lfm2_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  nn::add_head_norms(weights);
  const std::string layer = "model.layers.{}.";
  nn::rename(weights, {{"attn_norm", "", layer + "operator_norm"},
                       {"ffn_norm", "", layer + "ffn_norm"},
                       {"attn_output", "", layer + "self_attn.out_proj"},
                       {"attn_q_norm", "", layer + "self_attn.q_layernorm"},
                       {"attn_k_norm", "", layer + "self_attn.k_layernorm"},
                       {"ffn_gate", "", layer + "feed_forward.w1"},
                       {"ffn_up", "", layer + "feed_forward.w3"},
                       {"ffn_down", "", layer + "feed_forward.w2"},
                       {"output_norm", "token_embd_norm", "model.embedding_norm"}});
  nn::add_short_convolution(weights);
  return weights;
}

nn::WeightTable lfm2_moe_weights() {
  nn::WeightTable weights = lfm2_weights();
  nn::add_experts(weights, {.module = "feed_forward", .gate = "w1", .up = "w3", .down = "w2"});
  nn::add_expert_bias(weights, "feed_forward.expert_bias");
  return weights;
}

ArchitectureFacts lfm2_facts(const char* defaults) {
  return {
      .key_names = {{"tie_embedding", "tie_word_embeddings"}, {"block_ff_dim", "intermediate_size"}},
      .defaults = defaults,
      .norm = {.epsilon = "norm_eps"},
      .recurrent =
          RecurrentFacts{.kind = RecurrentKind::short_convolution, .words = {"conv"}, .attending = "full_attn_idxs"},
      .always = {"block_use_swiglu", "use_expert_bias"}};
}

constexpr const char* kLfm2Defaults = R"({
  "norm_eps": 1e-5, "max_position_embeddings": 128000, "rope_theta": 1000000.0, "tie_word_embeddings": true,
  "conv_L_cache": 3, "conv_bias": false, "num_key_value_heads": 8, "num_attention_heads": 32, "vocab_size": 65536
})";
constexpr const char* kLfm2MoeDefaults = R"({
  "norm_eps": 1e-5, "max_position_embeddings": 128000, "rope_theta": 1000000.0, "tie_word_embeddings": true,
  "conv_L_cache": 3, "conv_bias": false, "num_key_value_heads": 8, "num_attention_heads": 32, "vocab_size": 65536,
  "num_dense_layers": 2, "num_experts": 32, "num_experts_per_tok": 4, "moe_intermediate_size": 1792,
  "norm_topk_prob": true
})";

constexpr const char* kLfm2Sample = R"({
  "architectures": ["Lfm2ForCausalLM"], "model_type": "lfm2", "hidden_size": 64, "intermediate_size": 96,
  "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128,
  "norm_eps": 1e-5, "rope_theta": 1000000.0, "tie_word_embeddings": false, "conv_L_cache": 3, "conv_bias": true,
  "block_auto_adjust_ff_dim": false, "full_attn_idxs": [1], "vocab_size": 257,
  "eos_token_id": 256
})";
constexpr const char* kLfm2MoeSample = R"({
  "architectures": ["Lfm2MoeForCausalLM"], "model_type": "lfm2_moe", "hidden_size": 64, "intermediate_size": 96,
  "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128,
  "norm_eps": 1e-5, "rope_theta": 1000000.0, "tie_word_embeddings": false, "conv_L_cache": 3, "conv_bias": false,
  "num_dense_layers": 1, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
  "use_expert_bias": true, "norm_topk_prob": true, "full_attn_idxs": [1],
  "vocab_size": 257, "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(lfm2) {
  using namespace weft;
  ModelDefinition dense{
      .architectures = {"lfm2"},
      .facts = lfm2_facts(kLfm2Defaults),
      .weights = lfm2_weights(),
      .forward = lfm2_forward,
      .head = nn::decoder_head,
      .fusions_per_layer = {{"rms_quant", 2}, {"act_quant", 1}, {"attn_quant", 1}, {"qk_norm_rope_kvcache", 1}},
      .fusions_per_recurrent_layer = {{"rms_quant", 2}, {"act_quant", 1}},
      .check = nn::check_gated_decoder,
      .sample_config = kLfm2Sample};
  dense.facts.adjusts_feed_forward_width = true;
  models.add(std::move(dense));
  ModelDefinition experts{
      .architectures = {"lfm2_moe"},
      .gguf_architecture = "lfm2moe",
      .facts = lfm2_facts(kLfm2MoeDefaults),
      .weights = lfm2_moe_weights(),
      .forward = lfm2_forward,
      .head = nn::decoder_head,
      .fusions_per_layer = {{"rms_quant", 2}, {"act_quant", 1}, {"attn_quant", 1}, {"qk_norm_rope_kvcache", 1}},
      .fusions_per_recurrent_layer = {{"rms_quant", 2}, {"act_quant", 1}},
      .fusions_per_recurrent_mixture = {{"rms_quant", 1}},
      .fusions_per_mixture = {{"rms_quant", 1}, {"attn_quant", 1}, {"qk_norm_rope_kvcache", 1}},
      .fusions_of_experts = {{"act_quant", 1}},
      .check = nn::check_gated_decoder,
      .sample_config = kLfm2MoeSample};
  experts.facts.experts = ExpertFacts{.scores = ExpertScores::sigmoid, .normalizes = true, .first = "num_dense_layers"};
  models.add(std::move(experts));
}
