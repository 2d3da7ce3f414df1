// Gemma 2: Gemma's layers with norms after each half, too, a window in every second layer, and bounds of attention's
// scores and of the logits. VaultGemma has these layers without the norms after each half.

#include <utility>

#include "models/bias_switches.h"
#include "models/model.h"
#include "nn/attention.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/feed_forward.h"
#include "nn/llama.h"

namespace weft {
namespace {

Values gemma2_forward(Builder& b) {
  nn::DecoderStep step = nn::decoder_step(b);
  const auto attention = [&](const Value& x, int layer) { return nn::self_attention(b, step, x, layer); };
  const auto feed_forward = [&](const Value& x, int layer) { return nn::gated_feed_forward(b, x, layer); };
  return nn::sandwich_layers(b, step, nn::times_root_of_width(b, nn::embedded_tokens(b, step.ids)), attention,
                             feed_forward);
}

Values vaultgemma_forward(Builder& b) {
  nn::DecoderStep step = nn::decoder_step(b);
  const auto attention = [&](const Value& x, int layer) { return nn::self_attention(b, step, x, layer); };
  const auto feed_forward = [&](const Value& x, int layer) { return nn::gated_feed_forward(b, x, layer); };
  return nn::pre_norm_layers(b, step, nn::times_root_of_width(b, nn::embedded_tokens(b, step.ids)), attention,
                             feed_forward);
}

constexpr const char* kGemma2Defaults = R"({
  "rms_norm_eps": 1e-6, "max_position_embeddings": 8192,
  "hidden_act": "gelu_pytorch_tanh", "tie_word_embeddings": true, "head_dim": 256, "sliding_window": 4096,
  "query_pre_attn_scalar": 256, "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0
})";

// GGUF files do not have the scale of attention's scores. It is that of the width of a head, except in the largest
// model.
void complete_gemma2(ModelConfig& c) {
  constexpr std::int64_t kLargestModel = 46;  // layers
  if (c.format == CheckpointFormat::gguf)
    c.query_width = static_cast<double>(c.layer_count == kLargestModel ? c.hidden_size / c.head_count : c.head_dim);
}

nn::WeightTable gemma2_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  nn::rename(weights, {{"ffn_norm", "", "model.layers.{}.pre_feedforward_layernorm"}});
  nn::add_post_norms(weights);
  nn::add_one_to_norms(weights);
  return weights;
}

nn::WeightTable vaultgemma_weights() {
  nn::WeightTable weights = gemma2_weights();
  nn::erase(weights, {"post_attention_norm", "post_ffw_norm"});
  return weights;
}

std::string gemma2_sample(const std::string& model_class, const std::string& type) {
  return R"({"architectures": [")" + model_class + R"("], "model_type": ")" + type +
         R"(", "hidden_act": "gelu_pytorch_tanh",
  "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
  "num_key_value_heads": 2, "max_position_embeddings": 128, "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
  "tie_word_embeddings": false, "hidden_activation": "gelu_pytorch_tanh", "head_dim": 32, "query_pre_attn_scalar": 32,
  "sliding_window": 9, "attn_logit_softcapping": 2.0, "final_logit_softcapping": 3.0, "vocab_size": 257,
  "eos_token_id": 256
})";
}

ModelDefinition gemma2(const char* architecture, nn::WeightTable weights, Values (*forward)(Builder&),
                       const std::string& sample_config) {
  return {.architectures = {architecture},
          .facts = {.defaults = kGemma2Defaults,
                    .window = WindowFacts{.period = 2},
                    .numbers = {{&ModelConfig::query_width, "query_pre_attn_scalar"},
                                {&ModelConfig::attention_softcap, "attn_logit_softcapping", "attn_logit_softcapping"},
                                {&ModelConfig::logit_softcap, "final_logit_softcapping", "final_logit_softcapping"}},
                    .switches = attention_biases(),
                    .keys = {"hidden_activation"},
                    .complete = complete_gemma2},
          .weights = std::move(weights),
          .forward = forward,
          .head = nn::decoder_head,
          .fusions_per_layer = {{"rms_quant", 2}, {"act_quant", 1}, {"rope_kvcache", 1}},
          .check = nn::check_gated_decoder,
          .sample_config = sample_config};
}

}  // namespace
}  // namespace weft

MODEL(gemma2) {
  using namespace weft;
  models.add(gemma2("gemma2", gemma2_weights(), gemma2_forward, gemma2_sample("Gemma2ForCausalLM", "gemma2")));
  models.add(gemma2("vaultgemma", vaultgemma_weights(), vaultgemma_forward,
                    gemma2_sample("VaultGemmaForCausalLM", "vaultgemma")));
}
