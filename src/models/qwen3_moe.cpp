// Qwen 3 with a mixture of experts: Qwen 3's attention, and experts in place of the feed-forward of all layers or of
// some.

#include "models/bias_switches.h"
#include "models/model.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/llama.h"

namespace weft {
namespace {

nn::WeightTable qwen3_moe_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  nn::add_head_norms(weights);
  nn::add_experts(weights);
  return weights;
}

constexpr const char* kQwen3MoeSample = R"({
  "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "hidden_act": "silu", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "head_dim": 32, "max_position_embeddings": 128, "rms_norm_eps": 1e-6, "rope_theta": 1000000.0,
  "tie_word_embeddings": false, "attention_bias": false, "use_sliding_window": false, "sliding_window": null,
  "decoder_sparse_step": 1, "mlp_only_layers": [], "moe_intermediate_size": 32, "norm_topk_prob": true,
  "num_experts": 4, "num_experts_per_tok": 2, "vocab_size": 257, "eos_token_id": 256
})";

// Of the part for text of Qwen 3 VL.
constexpr const char* kQwen3VlMoeDefaults = R"({
  "vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 24,
  "num_attention_heads": 16, "num_key_value_heads": 16, "max_position_embeddings": 128000,
  "rope_theta": 500000.0, "num_experts": 60, "num_experts_per_tok": 4, "moe_intermediate_size": 1408
})";

}  // namespace
}  // namespace weft

MODEL(qwen3_moe) {
  using namespace weft;
  models.add(
      {.architectures = {"qwen3_moe"},
       .aliases = {"qwen3_vl_moe", "qwen3_vl_moe_text", "qwen3vlmoe"},
       .gguf_architecture = "qwen3moe",
       .facts =
           {.defaults =
                R"({"rms_norm_eps": 1e-6, "max_position_embeddings": 32768, "sliding_window": 4096, "num_experts": 128, "num_experts_per_tok": 8,
                                 "moe_intermediate_size": 768, "norm_topk_prob": false})",
            .defaults_of_types = {{"qwen3_vl_moe", kQwen3VlMoeDefaults}, {"qwen3_vl_moe_text", kQwen3VlMoeDefaults}},
            .window = WindowFacts{.first_layer = 28, .rule = WindowFacts::Rule::all},
            .experts = ExpertFacts{.normalizes = true},
            .switches = attention_biases(),
            .keys = {"rope.dimension_sections", "n_deepstack_layers"},  // of images
            .always = {"use_qk_norm", "qk_norm", "qk_layernorm"}},
       .weights = qwen3_moe_weights(),
       .forward = nn::llama_forward_with_head_norms,
       .head = nn::decoder_head,
       .fusions_per_layer = {{"attn_quant", 1}, {"qk_norm_rope_kvcache", 1}},
       .fusions_per_mixture = {{"rms_quant", 1}, {"attn_quant", 1}, {"qk_norm_rope_kvcache", 1}},
       .fusions_of_experts = {{"act_quant", 1}},
       .check = nn::check_gated_decoder,
       .sample_config = kQwen3MoeSample});
}
