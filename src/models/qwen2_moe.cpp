// Qwen 2 with a mixture of experts: biases of queries, keys and values, and a shared expert whose result has a gate.

#include "models/model.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/llama.h"

namespace weft {
namespace {

nn::WeightTable qwen2_moe_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  nn::add_experts(weights);
  nn::add_shared_expert(weights, "mlp.shared_expert");
  nn::add_shared_expert_gate(weights, "mlp.shared_expert_gate");
  return weights;
}

constexpr const char* kQwen2MoeSample = R"({
  "architectures": ["Qwen2MoeForCausalLM"], "model_type": "qwen2_moe", "hidden_act": "silu", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "max_position_embeddings": 128, "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "tie_word_embeddings": false,
  "use_sliding_window": false, "sliding_window": 32768, "max_window_layers": 2, "decoder_sparse_step": 1,
  "moe_intermediate_size": 32, "shared_expert_intermediate_size": 64, "norm_topk_prob": false, "num_experts": 4,
  "num_experts_per_tok": 2, "vocab_size": 257, "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(qwen2_moe) {
  using namespace weft;
  models.add(
      {.architectures = {"qwen2_moe"},
       .gguf_architecture = "qwen2moe",
       .facts =
           {.defaults =
                R"({"rms_norm_eps": 1e-6, "max_position_embeddings": 32768, "sliding_window": 4096, "qkv_bias": true, "num_experts": 60,
                                        "num_experts_per_tok": 4, "moe_intermediate_size": 1408,
                                        "shared_expert_intermediate_size": 5632})",
            .window = WindowFacts{.first_layer = 28, .rule = WindowFacts::Rule::every_second},
            .experts = ExpertFacts{.shared_width = "shared_expert_intermediate_size"},
            .switches = {{&ModelConfig::attention_bias, "qkv_bias", "", "blk.0.attn_q.bias"}}},
       .weights = qwen2_moe_weights(),
       .forward = nn::llama_forward,
       .head = nn::decoder_head,
       .fusions_per_layer = {{"attn_quant", 1}, {"rope_kvcache", 1}},
       .fusions_per_mixture = {{"rms_quant", 1}, {"attn_quant", 1}, {"rope_kvcache", 1}},
       .fusions_of_experts = {{"act_quant", 1}},
       .check = nn::check_gated_decoder,
       .sample_config = kQwen2MoeSample});
}
