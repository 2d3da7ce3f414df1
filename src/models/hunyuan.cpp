// Hunyuan, dense and with experts: Llama's layers, where heads of queries and keys are normalized after they are
// rotated.

#include "models/bias_switches.h"
#include "models/model.h"
#include "nn/attention.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/feed_forward.h"
#include "nn/llama.h"
#include "nn/norm.h"

namespace weft {
namespace {

Values hunyuan_forward(Builder& b) {
  nn::DecoderStep step = nn::decoder_step(b);
  const auto attention = [&](const Value& x, int layer) {
    nn::QueryKeyValue heads = nn::query_key_value(b, x, layer);
    nn::rotate(b, step, heads, layer);
    heads.query = nn::norm_heads(b, heads.query, "attn_q_norm", layer);
    heads.key = nn::norm_heads(b, heads.key, "attn_k_norm", layer);
    return nn::attend_rotated(b, step, heads, layer);
  };
  const auto feed_forward = [&](const Value& x, int layer) { return nn::gated_feed_forward(b, x, layer); };
  return nn::pre_norm_layers(b, step, nn::embedded_tokens(b, step.ids), attention, feed_forward);
}

nn::WeightTable hunyuan_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  nn::add_head_norms(weights);
  nn::rename(weights, {{"attn_q_norm", "", "model.layers.{}.self_attn.query_layernorm"},
                       {"attn_k_norm", "", "model.layers.{}.self_attn.key_layernorm"}});
  return weights;
}

nn::WeightTable hunyuan_moe_weights() {
  nn::WeightTable weights = hunyuan_weights();
  nn::add_experts(weights);
  nn::rename(weights, {{"ffn_gate_inp", "", "model.layers.{}.mlp.gate.wg"}});
  nn::add_shared_expert(weights, "mlp.shared_mlp");
  return weights;
}

// GGUF files state the number of shared experts, which has no effect on the one that there is.
void complete_hunyuan_moe(ModelConfig& c) {
  if (c.experts) c.experts->shared_width = c.experts->width;
}

constexpr const char* kHunyuanMoeSample = R"({
  "architectures": ["HunYuanMoEV1ForCausalLM"], "model_type": "hunyuan_v1_moe", "hidden_act": "silu",
  "hidden_size": 64, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
  "num_key_value_heads": 2, "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
  "tie_word_embeddings": false, "head_dim": 32, "use_qk_norm": true, "num_experts": 4, "moe_topk": [2, 2],
  "num_shared_expert": [1, 1], "moe_intermediate_size": [32, 32], "vocab_size": 257, "eos_token_id": 256
})";

constexpr const char* kHunyuanSample = R"({
  "architectures": ["HunYuanDenseV1ForCausalLM"], "model_type": "hunyuan_v1_dense", "hidden_act": "silu",
  "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
  "num_key_value_heads": 2, "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
  "tie_word_embeddings": false, "head_dim": 32, "use_qk_norm": true, "vocab_size": 257, "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(hunyuan) {
  using namespace weft;
  models.add({.architectures = {"hunyuan_v1_dense"},
              .gguf_architecture = "hunyuan-dense",
              .facts = {.defaults = R"({"rms_norm_eps": 1e-5, "max_position_embeddings": 2048})",
                        .switches = all_biases(),
                        .always = {"use_qk_norm"}},
              .weights = hunyuan_weights(),
              .forward = hunyuan_forward,
              .head = nn::decoder_head,
              .fusions_per_layer = {{"rms_quant", 2}, {"act_quant", 1}, {"attn_quant", 1}},
              .check = nn::check_gated_decoder,
              .sample_config = kHunyuanSample});
  models.add({.architectures = {"hunyuan_v1_moe"},
              .gguf_architecture = "hunyuan-moe",
              .facts = {.defaults = R"({"rms_norm_eps": 1e-5, "max_position_embeddings": 2048, "num_experts": 1,
                                 "moe_topk": 1})",
                        .experts = ExpertFacts{.width = "intermediate_size",
                                               .shared_width = "intermediate_size",
                                               .normalizes = true,
                                               .used = "moe_topk"},
                        .switches = attention_biases(),
                        .keys = {"num_experts_per_tok", "moe_intermediate_size"},
                        .always = {"use_qk_norm", "norm_topk_prob"},
                        .complete = complete_hunyuan_moe},
              .weights = hunyuan_moe_weights(),
              .forward = hunyuan_forward,
              .head = nn::decoder_head,
              .fusions_per_mixture = {{"rms_quant", 1}, {"attn_quant", 1}},
              .fusions_of_experts = {{"act_quant", 1}},
              .check = nn::check_gated_decoder,
              .sample_config = kHunyuanMoeSample});
}
