// DeepSeek V2, V2-Lite, V3 and R1, and others with V3's layers, such as Kimi K2 and GLM-4.7-Flash: latent attention,
// dense first layers, and a mixture of experts with shared ones. V3 chooses experts by sigmoid scores with a bias, from
// the best groups. Layers of V3.2 attend to the tokens that an index chooses, which are all tokens of the supported
// context. GGUF files of V2 and V3 have one architecture. GGUF files, and folders of mlx-lm (io/mlx_stacks.h), have
// the keys and values of latents apart.

#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "models/model.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/latent_attention.h"
#include "nn/latent_weights.h"
#include "nn/llama.h"

namespace weft {
namespace {

Values deepseek_forward(Builder& b) { return nn::llama_forward_with(b, nn::latent_attention); }

// The scale of scores grows with that of positions. GGUF files have a tenth of mscale_all_dim.
void complete_deepseek(ModelConfig& c) {
  RopeScaling& scaling = c.rope.scaling;
  if (c.format == CheckpointFormat::gguf && scaling.mscale_all_dim) {
    *scaling.mscale_all_dim *= 10;
    scaling.mscale = scaling.mscale_all_dim;
  }
  double magnitude = 1;
  if (scaling.type != RopeScalingType::none && scaling.mscale_all_dim && *scaling.mscale_all_dim != 0)
    magnitude = 0.1 * *scaling.mscale_all_dim * std::log(scaling.factor) + 1;
  const auto width = static_cast<double>(c.latents->plain_dim + c.latents->rotary_dim);
  c.attention_scale = magnitude * magnitude / std::sqrt(width);
  if (c.indexed_tokens == 0 || c.indexed_tokens >= c.context_length) return;
  c.warnings.push_back(
      fmt::format("[{}] layers attend to the {} tokens that an index chooses, and the index is not supported: the "
                  "context is {} tokens and not {}",
                  c.architecture, c.indexed_tokens, c.indexed_tokens, c.context_length));
  c.context_length = c.indexed_tokens;
}

nn::WeightTable deepseek_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  nn::replace_by_latent_attention(weights);
  nn::add_experts(weights);
  nn::add_expert_bias(weights, "mlp.gate.e_score_correction_bias");
  nn::add_shared_expert(weights, "mlp.shared_experts");
  return weights;
}

constexpr const char* kDeepSeek2Defaults = R"({
  "rms_norm_eps": 1e-6, "max_position_embeddings": 2048, "q_lora_rank": 1536, "kv_lora_rank": 512,
  "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 64, "n_shared_experts": 2,
  "moe_intermediate_size": 1407, "topk_method": "greedy"
})";

constexpr const char* kDeepSeek3Defaults = R"({
  "rms_norm_eps": 1e-6, "max_position_embeddings": 4096, "q_lora_rank": 1536, "kv_lora_rank": 512,
  "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 256, "n_shared_experts": 1,
  "num_experts_per_tok": 8, "moe_intermediate_size": 2048, "first_k_dense_replace": 3, "n_group": 8, "topk_group": 4,
  "routed_scaling_factor": 2.5
})";

constexpr const char* kDeepSeek32Defaults = R"({"max_position_embeddings": 163840, "index_topk": 2048})";

constexpr const char* kGlm4MoeLiteDefaults = R"({
  "rms_norm_eps": 1e-5, "max_position_embeddings": 202752, "q_lora_rank": 768, "qk_nope_head_dim": 192,
  "v_head_dim": 256, "n_routed_experts": 64, "num_experts_per_tok": 4, "moe_intermediate_size": 1536,
  "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1, "routed_scaling_factor": 1.8
})";

// Youtu-LLM has no experts.
constexpr const char* kYoutuDefaults = R"({
  "max_position_embeddings": 131072, "tie_word_embeddings": true, "n_routed_experts": 0, "n_shared_experts": 0,
  "first_k_dense_replace": 0, "n_group": 1, "topk_group": 1
})";

constexpr const char* kDeepSeek2Sample = R"({
  "architectures": ["DeepseekV2ForCausalLM"], "model_type": "deepseek_v2", "hidden_act": "silu", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4,
  "max_position_embeddings": 128, "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": false,
  "q_lora_rank": null, "kv_lora_rank": 32, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16, "v_head_dim": 32,
  "first_k_dense_replace": 1, "moe_intermediate_size": 32, "n_group": 1, "topk_group": 1, "n_routed_experts": 4,
  "n_shared_experts": 2, "norm_topk_prob": false, "num_experts_per_tok": 2, "routed_scaling_factor": 1.0,
  "topk_method": "greedy", "scoring_func": "softmax", "vocab_size": 257, "eos_token_id": 256
})";

constexpr const char* kDeepSeek3Sample = R"({
  "architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", "hidden_act": "silu", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4,
  "max_position_embeddings": 128, "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": false,
  "q_lora_rank": 32, "kv_lora_rank": 32, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16, "v_head_dim": 32,
  "first_k_dense_replace": 1, "moe_intermediate_size": 32, "n_group": 4, "topk_group": 2, "n_routed_experts": 8,
  "n_shared_experts": 1, "norm_topk_prob": true, "num_experts_per_tok": 2, "routed_scaling_factor": 2.5,
  "topk_method": "noaux_tc", "scoring_func": "sigmoid", "vocab_size": 257, "eos_token_id": 256
})";

ModelDefinition deepseek(const char* architecture, const char* defaults, const ExpertFacts& experts,
                         const char* sample_config) {
  return {.architectures = {architecture},
          .gguf_architecture = "deepseek2",
          .facts = {.defaults = defaults,
                    .pairing_in_folders = RotaryPairing::neighbours,
                    .pairing_in_gguf = RotaryPairing::neighbours,
                    .has_latents = true,
                    .experts = experts,
                    .keys = {"ep_size", "aux_loss_alpha", "seq_aux", "embedding_initializer_range"},
                    .complete = complete_deepseek},
          .weights = deepseek_weights(),
          .forward = deepseek_forward,
          .head = nn::decoder_head,
          .fusions_of_experts = {{"act_quant", 1}},
          .check = nn::check_gated_decoder,
          .sample_config = sample_config};
}

}  // namespace
}  // namespace weft

MODEL(deepseek) {
  using namespace weft;
  ModelDefinition second =
      deepseek("deepseek_v2", kDeepSeek2Defaults, {.count = "n_routed_experts", .shared_count = "n_shared_experts"},
               kDeepSeek2Sample);
  second.architecture_of_folder = [](const ModelConfig& c) {
    return c.experts && c.experts->scores == ExpertScores::sigmoid ? "deepseek_v3" : "";
  };
  models.add(std::move(second));
  ModelDefinition third = deepseek("deepseek_v3", kDeepSeek3Defaults,
                                   {.count = "n_routed_experts",
                                    .shared_count = "n_shared_experts",
                                    .scores = ExpertScores::sigmoid,
                                    .normalizes = true},
                                   kDeepSeek3Sample);
  third.facts.defaults_of_types = {
      {"deepseek_v32", kDeepSeek32Defaults}, {"glm4_moe_lite", kGlm4MoeLiteDefaults}, {"youtu", kYoutuDefaults}};
  third.facts.words_of_layers = {"indexed_attention"};
  third.facts.counts = {{&ModelConfig::indexed_tokens, "index_topk"}};
  for (const char* key : {"index_head_dim", "index_n_heads"}) third.facts.keys.emplace_back(key);
  third.aliases = {"kimi_k2", "deepseek_v32", "glm4_moe_lite", "youtu"};
  models.add(std::move(third));
}
