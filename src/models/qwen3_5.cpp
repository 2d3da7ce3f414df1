// Qwen 3 Next and Qwen 3.5: three of four layers have a gated delta net in place of attention; the attention of the
// others has norms of the heads of queries and keys, a gate, and rotates a quarter of each head. Qwen 3 Next and some
// of Qwen 3.5 have a mixture of experts with a shared expert, whose result has a gate.

#include "models/model.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/llama.h"
#include "nn/recurrent.h"

namespace weft {
namespace {

nn::WeightTable delta_net_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  nn::rename(weights, {{"ffn_norm", "blk.{}.post_attention_norm", ""}});
  nn::add_head_norms(weights);
  nn::add_one_to_norms(weights);
  nn::add_gated_delta_net(weights);  // its norm multiplies by the weight itself
  return weights;
}

nn::WeightTable delta_net_weights_with_experts() {
  nn::WeightTable weights = delta_net_weights();
  nn::add_experts(weights);
  nn::add_shared_expert(weights, "mlp.shared_expert");
  nn::add_shared_expert_gate(weights, "mlp.shared_expert_gate");
  return weights;
}

void complete_qwen3_next(ModelConfig& c) {
  c.has_attention_gate = true;
  if (!c.recurrent) return;
  c.recurrent->is_grouped = true;
  if (c.format == CheckpointFormat::hugging_face) c.recurrent->is_joined = true;
}

// GGUF files have the value heads in another order, in which their key heads follow one another.
void complete_qwen3_5(ModelConfig& c) {
  c.has_attention_gate = true;
  if (c.recurrent) c.recurrent->has_tiled_values = c.format == CheckpointFormat::gguf;
}

constexpr const char* kQwen3NextDefaults = R"({
  "hidden_act": "silu", "rms_norm_eps": 1e-6, "max_position_embeddings": 32768, "partial_rotary_factor": 0.25,
  "head_dim": 256, "num_attention_heads": 16, "num_key_value_heads": 2, "intermediate_size": 5632,
  "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_num_key_heads": 16,
  "linear_num_value_heads": 32, "num_experts": 512, "num_experts_per_tok": 10, "moe_intermediate_size": 512,
  "shared_expert_intermediate_size": 512, "norm_topk_prob": true
})";
constexpr const char* kQwen35Defaults = R"({
  "hidden_act": "silu", "rms_norm_eps": 1e-6, "max_position_embeddings": 32768, "partial_rotary_factor": 0.25,
  "head_dim": 256, "num_attention_heads": 16, "num_key_value_heads": 4, "hidden_size": 4096,
  "intermediate_size": 12288, "num_hidden_layers": 32, "vocab_size": 248320, "linear_conv_kernel_dim": 4,
  "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 32
})";
constexpr const char* kQwen35MoeDefaults = R"({
  "hidden_act": "silu", "rms_norm_eps": 1e-6, "max_position_embeddings": 32768, "partial_rotary_factor": 0.25,
  "head_dim": 256, "num_attention_heads": 16, "num_key_value_heads": 2, "hidden_size": 2048, "num_hidden_layers": 40,
  "vocab_size": 248320, "intermediate_size": 512, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128,
  "linear_value_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 32, "num_experts": 256,
  "num_experts_per_tok": 8, "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512,
  "norm_topk_prob": true
})";

constexpr const char* kQwen3NextSample = R"({
  "architectures": ["Qwen3NextForCausalLM"], "model_type": "qwen3_next", "hidden_act": "silu", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
  "head_dim": 32, "max_position_embeddings": 128, "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
  "tie_word_embeddings": false, "attention_bias": false, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 16,
  "linear_value_head_dim": 32, "linear_num_key_heads": 2, "linear_num_value_heads": 4, "decoder_sparse_step": 1,
  "mlp_only_layers": [], "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32, "norm_topk_prob": true,
  "num_experts": 4, "num_experts_per_tok": 2,
  "full_attention_interval": 2, "vocab_size": 257, "eos_token_id": 256
})";
constexpr const char* kQwen35Sample = R"({
  "architectures": ["Qwen3_5ForCausalLM"], "model_type": "qwen3_5_text", "hidden_act": "silu", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
  "head_dim": 32, "max_position_embeddings": 128, "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
  "tie_word_embeddings": false, "attention_bias": false, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 16,
  "linear_value_head_dim": 32, "linear_num_key_heads": 2, "linear_num_value_heads": 4,
  "full_attention_interval": 2, "vocab_size": 257, "eos_token_id": 256
})";
constexpr const char* kQwen35MoeSample = R"({
  "architectures": ["Qwen3_5MoeForCausalLM"], "model_type": "qwen3_5_moe_text", "hidden_act": "silu",
  "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32,
  "max_position_embeddings": 128, "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": false,
  "attention_bias": false, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 16, "linear_value_head_dim": 32,
  "linear_num_key_heads": 2, "linear_num_value_heads": 4, "moe_intermediate_size": 32,
  "shared_expert_intermediate_size": 32, "num_experts": 4, "num_experts_per_tok": 2,
  "full_attention_interval": 2, "vocab_size": 257, "eos_token_id": 256
})";

ArchitectureFacts delta_net_facts(const char* defaults, void (*complete)(ModelConfig&)) {
  return {.defaults = defaults,
          .recurrent = RecurrentFacts{.period = 4},
          .switches = {{&ModelConfig::attention_bias, "attention_bias"},
                       {&ModelConfig::attention_output_bias, "attention_bias"}},
          .keys = {"rope.dimension_sections", "mlp_only_layers"},  // of images, and of experts
          .always = {"attn_output_gate"},
          .complete = complete};
}

ModelDefinition with_experts(const char* architecture, const char* gguf, ArchitectureFacts facts, const char* sample) {
  facts.experts = ExpertFacts{.shared_width = "shared_expert_intermediate_size", .normalizes = true};
  return {.architectures = {architecture},
          .gguf_architecture = gguf,
          .facts = std::move(facts),
          .weights = delta_net_weights_with_experts(),
          .forward = nn::delta_net_forward,
          .head = nn::decoder_head,
          .fusions_per_mixture = {{"rms_quant", 1}},
          .fusions_of_experts = {{"act_quant", 1}},
          .check = nn::check_gated_decoder,
          .sample_config = sample};
}

}  // namespace
}  // namespace weft

MODEL(qwen3_5) {
  using namespace weft;
  models.add(with_experts("qwen3_next", "qwen3next", delta_net_facts(kQwen3NextDefaults, complete_qwen3_next),
                          kQwen3NextSample));
  ModelDefinition moe = with_experts("qwen3_5_moe_text", "qwen35moe",
                                     delta_net_facts(kQwen35MoeDefaults, complete_qwen3_5), kQwen35MoeSample);
  moe.aliases = {"qwen3_5_moe"};
  models.add(std::move(moe));
  models.add({.architectures = {"qwen3_5_text"},
              .aliases = {"qwen3_5"},
              .gguf_architecture = "qwen35",
              .facts = delta_net_facts(kQwen35Defaults, complete_qwen3_5),
              .weights = delta_net_weights(),
              .forward = nn::delta_net_forward,
              .head = nn::decoder_head,
              .fusions_per_layer = {{"rms_quant", 2}, {"act_quant", 1}},
              .fusions_per_recurrent_layer = {{"rms_quant", 2}, {"act_quant", 1}},
              .check = nn::check_gated_decoder,
              .sample_config = kQwen35Sample});
}
