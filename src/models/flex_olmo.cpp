// FlexOlmo: OLMo 2's layers with OLMoE's mixture of experts.

#include "models/llama_layers.h"
#include "nn/attention.h"
#include "nn/feed_forward.h"

namespace weft {
namespace {

Values flex_olmo_forward(Builder& b) {
  nn::DecoderStep step = nn::decoder_step(b);
  const auto attention = [&](const Value& x, int layer) {
    return nn::self_attention_with_row_norms(b, step, x, layer);
  };
  const auto feed_forward = [&](const Value& x, int layer) { return nn::gated_feed_forward(b, x, layer); };
  return nn::post_norm_layers(b, step, nn::embedded_tokens(b, step.ids), attention, feed_forward);
}

nn::WeightTable flex_olmo_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  nn::erase(weights, {"attn_norm", "ffn_norm"});
  nn::add_post_norms(weights);
  nn::add_row_norms(weights);
  nn::add_experts(weights);
  return weights;
}

constexpr const char* kFlexOlmoDefaults = R"({
  "rms_norm_eps": 1e-6, "max_position_embeddings": 4096, "rope_theta": 500000.0, "num_experts": 7,
  "num_experts_per_tok": 5
})";

}  // namespace
}  // namespace weft

MODEL(flex_olmo) {
  using namespace weft;
  ModelDefinition model =
      llama_layers("flex_olmo",
                   {.defaults = kFlexOlmoDefaults,
                    .experts = ExpertFacts{.width = "intermediate_size"},
                    .switches = attention_biases()},
                   llama_sample("FlexOlmoForCausalLM", "flex_olmo", R"("num_experts": 4, "num_experts_per_tok": 2)"),
                   flex_olmo_weights());
  model.forward = flex_olmo_forward;
  model.fusions_per_mixture = {{"attn_quant", 1}, {"rope_kvcache", 1}};
  model.fusions_of_experts = {{"act_quant", 1}};
  models.add(std::move(model));
}
