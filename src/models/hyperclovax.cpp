// HyperCLOVA X Think: Granite's layers with norms after each half, too, and a factor of the logits.

#include "models/llama_layers.h"
#include "nn/attention.h"
#include "nn/feed_forward.h"

namespace weft {
namespace {

Values hyperclovax_forward(Builder& b) {
  nn::DecoderStep step = nn::decoder_step(b);
  const auto attention = [&](const Value& x, int layer) { return nn::self_attention(b, step, x, layer); };
  const auto feed_forward = [&](const Value& x, int layer) { return nn::gated_feed_forward(b, x, layer); };
  return nn::sandwich_layers(b, step, nn::embedded_tokens(b, step.ids), attention, feed_forward);
}

nn::WeightTable hyperclovax_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  nn::add_post_norms(weights);
  nn::rename(weights, {{"post_attention_norm", "", "model.layers.{}.post_norm1"},
                       {"post_ffw_norm", "", "model.layers.{}.post_norm2"}});
  return weights;
}

}  // namespace
}  // namespace weft

MODEL(hyperclovax) {
  using namespace weft;
  ModelDefinition model =
      llama_layers("hyperclovax",
                   {.defaults = R"({"rms_norm_eps": 1e-6, "max_position_embeddings": 2048})",
                    .numbers = {{&ModelConfig::embedding_scale, "embedding_multiplier", "embedding_scale"},
                                {&ModelConfig::attention_scale, "attention_multiplier", "attention.scale"},
                                {&ModelConfig::residual_scale, "residual_multiplier", "residual_scale"},
                                {&ModelConfig::logit_scale, "logits_scaling", "logit_scale"}},
                    .switches = all_biases(),
                    .always = {"use_post_norm"}},
                   llama_sample("HyperCLOVAXForCausalLM", "hyperclovax", R"("embedding_multiplier": 12.0,
  "attention_multiplier": 0.25, "residual_multiplier": 0.25, "logits_scaling": 0.125, "use_post_norm": true)"),
                   hyperclovax_weights());
  model.forward = hyperclovax_forward;
  models.add(std::move(model));
}
