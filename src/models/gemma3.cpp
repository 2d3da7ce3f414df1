// Gemma 3: Gemma 2's layers without the bounds, with norms of the heads of queries and keys. Five of six layers have a
// window and rotary positions of their own. EmbeddingGemma has the same layers, whose tokens attend to later ones, too.

#include "models/bias_switches.h"
#include "models/model.h"
#include "nn/attention.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/feed_forward.h"
#include "nn/llama.h"

namespace weft {
namespace {

Values gemma3_forward(Builder& b) {
  nn::DecoderStep step = nn::decoder_step(b);
  const auto attention = [&](const Value& x, int layer) {
    return nn::self_attention_with_head_norms(b, step, x, layer);
  };
  const auto feed_forward = [&](const Value& x, int layer) { return nn::gated_feed_forward(b, x, layer); };
  return nn::sandwich_layers(b, step, nn::times_root_of_width(b, nn::embedded_tokens(b, step.ids)), attention,
                             feed_forward);
}

// Folders of models that take images, too, leave out most keys.
constexpr const char* kGemma3Defaults = R"({
  "hidden_act": "gelu_pytorch_tanh", "tie_word_embeddings": true, "num_attention_heads": 8, "num_key_value_heads": 4,
  "head_dim": 256, "vocab_size": 262208, "rms_norm_eps": 1e-6, "max_position_embeddings": 131072,
  "rope_theta": 1000000.0, "rope_local_base_freq": 10000.0, "sliding_window": 4096, "query_pre_attn_scalar": 256
})";

// GGUF files do not have the scale of attention's scores. It is that of the width of a head, except in the largest
// model.
void complete_gemma3(ModelConfig& c) {
  constexpr std::int64_t kLargestModel = 62;  // layers
  if (c.architecture == "gemma-embedding") c.is_causal = false;
  if (c.format == CheckpointFormat::gguf)
    c.query_width = static_cast<double>(c.layer_count == kLargestModel ? c.hidden_size / c.head_count : c.head_dim);
}

nn::WeightTable gemma3_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  nn::rename(weights, {{"ffn_norm", "", "model.layers.{}.pre_feedforward_layernorm"}});
  nn::add_post_norms(weights);
  nn::add_head_norms(weights);
  nn::add_one_to_norms(weights);
  return weights;
}

constexpr const char* kGemma3Sample = R"({
  "architectures": ["Gemma3ForCausalLM"], "model_type": "gemma3_text", "hidden_act": "gelu_pytorch_tanh",
  "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 6, "num_attention_heads": 4,
  "num_key_value_heads": 2, "max_position_embeddings": 128, "rms_norm_eps": 1e-6, "rope_theta": 1000000.0,
  "tie_word_embeddings": false, "hidden_activation": "gelu_pytorch_tanh", "head_dim": 32, "query_pre_attn_scalar": 32,
  "sliding_window": 9, "sliding_window_pattern": 6, "rope_local_base_freq": 10000.0, "vocab_size": 257,
  "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(gemma3) {
  using namespace weft;
  models.add(
      {.architectures = {"gemma3_text"},
       .aliases = {"gemma-embedding"},
       .gguf_architecture = "gemma3",
       .facts = {.defaults = kGemma3Defaults,
                 .bidirectional = Bidirectional::if_stated,
                 .window = WindowFacts{.period = 6},
                 .rotary = {.has_sliding_positions = true, .sliding_theta = 10000.0},
                 .numbers = {{&ModelConfig::query_width, "query_pre_attn_scalar"},
                             {&ModelConfig::logit_softcap, "final_logit_softcapping", "final_logit_softcapping"}},
                 .switches = attention_biases(),
                 // attn_logit_softcapping is Gemma 2's: no program applies it here.
                 .keys = {"hidden_activation", "rope_local_base_freq", "rope.freq_base_swa", "attn_logit_softcapping"},
                 .complete = complete_gemma3},
       .weights = gemma3_weights(),
       .forward = gemma3_forward,
       .head = nn::decoder_head,
       .fusions_per_layer = {{"rms_quant", 2}, {"act_quant", 1}, {"attn_quant", 1}, {"qk_norm_rope_kvcache", 1}},
       .check = nn::check_gated_decoder,
       .sample_config = kGemma3Sample});
}
