// MiniCPM 1, 2 and 4: Llama's layers with factors of the embeddings, of what each half of a layer adds, and a divisor
// of the logits. MiniCPM 3 has latent attention, too.

#include <cmath>

#include "base/error.h"
#include "models/llama_layers.h"
#include "nn/latent_attention.h"
#include "nn/latent_weights.h"

namespace weft {
namespace {

// The factors of the first models, which their GGUF files do not state.
constexpr double kEmbeddingScale = 12, kDepthScale = 1.4, kBaseWidth = 256;

// Folders state a factor of the depth, and the width of a model whose logits have no divisor.
void complete_minicpm(ModelConfig& c) {
  const auto width = static_cast<double>(c.hidden_size), root = std::sqrt(static_cast<double>(c.layer_count));
  if (c.format == CheckpointFormat::hugging_face) {
    c.residual_scale = c.depth_scale / root;
    c.logit_divisor = width / c.base_width;
    return;
  }
  if (c.embedding_scale == 1 && c.residual_scale == 1 && c.logit_divisor == 1) {
    c.embedding_scale = kEmbeddingScale;
    c.residual_scale = kDepthScale / root;
    c.logit_divisor = width / kBaseWidth;
  }
  c.depth_scale = c.residual_scale * root;
  c.base_width = width / c.logit_divisor;
}

void check_minicpm(const ModelConfig& c) {
  nn::check_gated_decoder(c);
  USER_CHECK(c.base_width > 0, "[{}] dim_model_base must be above 0, but is {}", c.architecture, c.base_width);
}

void complete_minicpm3(ModelConfig& c) {
  complete_minicpm(c);
  c.attention_scale = 1 / std::sqrt(static_cast<double>(c.latents->plain_dim + c.latents->rotary_dim));
}

Values minicpm3_forward(Builder& b) { return nn::llama_forward_with(b, nn::latent_attention); }

nn::WeightTable minicpm3_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  nn::replace_by_latent_attention(weights);
  return weights;
}

constexpr const char* kMiniCpmDefaults = R"({
  "rms_norm_eps": 1e-6, "max_position_embeddings": 2048, "tie_word_embeddings": true, "scale_emb": 1,
  "scale_depth": 1, "dim_model_base": 1
})";

constexpr const char* kMiniCpm3Defaults = R"({
  "rms_norm_eps": 1e-5, "max_position_embeddings": 32768, "tie_word_embeddings": true, "q_lora_rank": 768,
  "kv_lora_rank": 256, "qk_nope_head_dim": 64, "qk_rope_head_dim": 32, "scale_emb": 12, "scale_depth": 1.4,
  "dim_model_base": 256
})";

constexpr const char* kMiniCpmSample = R"("scale_emb": 12, "scale_depth": 1.4, "dim_model_base": 16)";
constexpr const char* kMiniCpm3Sample = R"("scale_emb": 12, "scale_depth": 1.4, "dim_model_base": 256,
  "q_lora_rank": 32, "kv_lora_rank": 32, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16, "v_head_dim": 16)";

}  // namespace
}  // namespace weft

MODEL(minicpm) {
  using namespace weft;
  ModelDefinition first = llama_layers("minicpm",
                                       {.defaults = kMiniCpmDefaults,
                                        .pairing_in_gguf = RotaryPairing::neighbours,
                                        .numbers = {{&ModelConfig::embedding_scale, "scale_emb", "embedding_scale"},
                                                    {&ModelConfig::residual_scale, "", "residual_scale"},
                                                    {&ModelConfig::logit_divisor, "", "logit_scale"},
                                                    {&ModelConfig::depth_scale, "scale_depth"},
                                                    {&ModelConfig::base_width, "dim_model_base"}},
                                        .switches = attention_biases(),
                                        .complete = complete_minicpm},
                                       llama_sample("MiniCPMForCausalLM", "minicpm", kMiniCpmSample));
  first.check = check_minicpm;
  models.add(std::move(first));
  ModelDefinition third =
      llama_layers("minicpm3",
                   {.defaults = kMiniCpm3Defaults,
                    .has_latents = true,
                    .numbers = {{&ModelConfig::embedding_scale, "scale_emb"},
                                {&ModelConfig::depth_scale, "scale_depth"},
                                {&ModelConfig::base_width, "dim_model_base"}},
                    .complete = complete_minicpm3},
                   llama_sample("MiniCPM3ForCausalLM", "minicpm3", kMiniCpm3Sample), minicpm3_weights());
  third.forward = minicpm3_forward;
  third.check = check_minicpm;
  third.fusions_per_layer = {};
  models.add(std::move(third));
}
