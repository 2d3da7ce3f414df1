// Granite 3 and 4: Llama's layers with factors of the embeddings, of attention's scores, of what each half of a layer
// adds, and a divisor of the logits. Some have experts, with or without a shared one. Most layers of Granite 4 H have
// Mamba 2 in place of attention, and its other layers have no positions.

#include "models/bias_switches.h"
#include "models/model.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/llama.h"
#include "nn/mamba2.h"

namespace weft {
namespace {

constexpr const char* kGraniteSample = R"({
  "architectures": ["GraniteForCausalLM"], "model_type": "granite", "hidden_act": "silu", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false,
  "embedding_multiplier": 12.0, "attention_multiplier": 0.25, "residual_multiplier": 0.25, "logits_scaling": 8.0,
  "vocab_size": 257, "eos_token_id": 256
})";

// Folders of transformers have one stack for gate and up, and those of mlx-lm a stack for each (io/mlx_stacks.h).
nn::WeightTable granitemoe_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  const std::string module = "model.layers.{}.block_sparse_moe.";
  nn::add_experts(weights, {.module = "block_sparse_moe", .gate = "w1", .up = "w3", .down = "w2"});
  nn::rename(weights, {{"ffn_gate_inp", "", module + "router.layer"}});
  nn::name_merged_experts(weights, module + "input_linear.weight", module + "output_linear.weight");
  nn::merge_shared_in_folders(weights, "shared_mlp");
  return weights;
}

constexpr const char* kGraniteMoeSample = R"({
  "architectures": ["GraniteMoeForCausalLM"], "model_type": "granitemoe", "hidden_act": "silu", "hidden_size": 64,
  "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false,
  "embedding_multiplier": 12.0, "attention_multiplier": 0.25, "residual_multiplier": 0.25, "logits_scaling": 8.0,
  "num_local_experts": 4, "num_experts_per_tok": 2, "vocab_size": 257, "eos_token_id": 256
})";

constexpr const char* kGraniteMoeSharedSample = R"({
  "architectures": ["GraniteMoeSharedForCausalLM"], "model_type": "granitemoeshared", "hidden_act": "silu",
  "hidden_size": 64, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
  "num_key_value_heads": 2, "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
  "tie_word_embeddings": false, "embedding_multiplier": 12.0, "attention_multiplier": 0.25,
  "residual_multiplier": 0.25, "logits_scaling": 8.0, "num_local_experts": 4, "num_experts_per_tok": 2,
  "shared_intermediate_size": 64, "vocab_size": 257, "eos_token_id": 256
})";

constexpr const char* kGraniteMoeHybridSample = R"({
  "architectures": ["GraniteMoeHybridForCausalLM"], "model_type": "granitemoehybrid", "hidden_act": "silu",
  "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4,
  "num_key_value_heads": 2, "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
  "tie_word_embeddings": false, "embedding_multiplier": 12.0, "attention_multiplier": 0.25,
  "residual_multiplier": 0.25, "logits_scaling": 8.0, "position_embedding_type": "rope", "num_local_experts": 0,
  "num_experts_per_tok": 2, "shared_intermediate_size": 96, "attn_layer_indices": [1],
  "mamba_d_conv": 4, "mamba_d_head": "auto", "mamba_d_state": 16, "mamba_expand": 2, "mamba_n_groups": 2,
  "mamba_n_heads": 4, "vocab_size": 257, "eos_token_id": 256
})";

nn::WeightTable granitemoehybrid_weights() {
  nn::WeightTable weights = granitemoe_weights();
  nn::add_mamba2(weights);
  return weights;
}

// Folders without Mamba are those of other architectures.
std::string folder_of_hybrid(const ModelConfig& c) {
  return c.recurrent ? "" : c.experts ? "granitemoeshared" : "granite";
}

const std::vector<NumberKey>& granite_numbers() {
  static const std::vector<NumberKey> numbers{
      {&ModelConfig::embedding_scale, "embedding_multiplier", "embedding_scale"},
      {&ModelConfig::attention_scale, "attention_multiplier", "attention.scale"},
      {&ModelConfig::residual_scale, "residual_multiplier", "residual_scale"},
      {&ModelConfig::logit_divisor, "logits_scaling", "logit_scale"}};
  return numbers;
}

constexpr const char* kHasPositions = "rope.scaling.finetuned";  // in GGUF files

constexpr const char* kGraniteMoeDefaults = R"({
  "rms_norm_eps": 1e-6, "max_position_embeddings": 2048, "attention_multiplier": 1.0, "num_local_experts": 8,
  "num_experts_per_tok": 2
})";

constexpr const char* kGraniteMoeHybridDefaults = R"({
  "rms_norm_eps": 1e-6, "max_position_embeddings": 2048, "attention_multiplier": 1.0, "num_local_experts": 8,
  "num_experts_per_tok": 2, "shared_intermediate_size": 1024, "mamba_d_conv": 4, "mamba_d_state": 256,
  "mamba_expand": 2, "mamba_n_groups": 1, "mamba_n_heads": 128
})";

ModelDefinition granite_with_experts(const char* architecture, const char* defaults, const char* sample_config) {
  return {.architectures = {architecture},
          .facts = {.defaults = defaults,
                    .pairing_in_gguf = RotaryPairing::neighbours,
                    .rotary = {.switch_in_gguf = kHasPositions},
                    .experts = ExpertFacts{.count = "num_local_experts",
                                           .width = "intermediate_size",
                                           .shared_width = "shared_intermediate_size",
                                           .scores = ExpertScores::softmax_of_chosen,
                                           .is_merged_in_folders = true},
                    .numbers = granite_numbers(),
                    .switches = attention_biases()},
          .weights = granitemoe_weights(),
          .forward = nn::llama_forward,
          .head = nn::decoder_head,
          .fusions_per_mixture = {{"rms_quant", 1}, {"attn_quant", 1}, {"rope_kvcache", 1}},
          .fusions_of_experts = {{"act_quant", 1}},
          .check = nn::check_gated_decoder,
          .sample_config = sample_config};
}

}  // namespace
}  // namespace weft

MODEL(granite) {
  using namespace weft;
  models.add(
      {.architectures = {"granite"},
       .facts = {.defaults = R"({"rms_norm_eps": 1e-6, "max_position_embeddings": 2048, "attention_multiplier": 1.0})",
                 .pairing_in_gguf = RotaryPairing::neighbours,
                 .rotary = {.switch_in_gguf = kHasPositions},
                 .numbers = granite_numbers(),
                 .switches = all_biases()},
       .weights = nn::decoder_weights(),
       .forward = nn::llama_forward,
       .head = nn::decoder_head,
       .fusions_per_layer = {{"rms_quant", 2}, {"act_quant", 1}, {"attn_quant", 1}, {"rope_kvcache", 1}},
       .check = nn::check_gated_decoder,
       .sample_config = kGraniteSample});
  ModelDefinition experts = granite_with_experts("granitemoe", kGraniteMoeDefaults, kGraniteMoeSample);
  // Folders of granitemoe have no shared expert, but GGUF files may.
  experts.architecture_of_folder = [](const ModelConfig& c) {
    return c.experts && c.experts->shared_width > 0 ? "granitemoeshared" : "";
  };
  models.add(std::move(experts));
  ModelDefinition shared = granite_with_experts("granitemoeshared", kGraniteMoeDefaults, kGraniteMoeSharedSample);
  shared.gguf_architecture = "granitemoe";
  models.add(std::move(shared));
  ModelDefinition hybrid = granite_with_experts("granitemoehybrid", kGraniteMoeHybridDefaults, kGraniteMoeHybridSample);
  hybrid.gguf_architecture = "granitehybrid";
  hybrid.weights = granitemoehybrid_weights();
  hybrid.forward = nn::mamba2_forward;
  hybrid.architecture_of_folder = folder_of_hybrid;
  // llama.cpp's converter reads Bamba's list of the layers with attention for Granite, too.
  hybrid.facts.recurrent = RecurrentFacts{.kind = RecurrentKind::mamba2,
                                          .words = {"mamba", "linear_attention"},
                                          .word_of_others = "attention",
                                          .attending = "attn_layer_indices"};
  hybrid.facts.rotary.kind_in_folders = "position_embedding_type";
  hybrid.facts.feed_forward_width = "shared_intermediate_size";
  hybrid.fusions_per_layer = {{"rms_quant", 2}, {"act_quant", 1}, {"attn_quant", 1}, {"rope_kvcache", 1}};
  hybrid.fusions_per_recurrent_layer = {{"rms_quant", 2}, {"act_quant", 1}};
  hybrid.fusions_per_recurrent_mixture = {{"rms_quant", 1}};
  models.add(std::move(hybrid));
}
