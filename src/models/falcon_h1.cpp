// Falcon H1: attention and Mamba 2 read the same norm in each layer, and their results are added. Folders have factors
// of many values. GGUF files have weights that are already multiplied by them.

#include "models/bias_switches.h"
#include "models/model.h"
#include "nn/attention.h"
#include "nn/decoder.h"
#include "nn/feed_forward.h"
#include "nn/llama.h"
#include "nn/mamba2.h"
#include "nn/times.h"
#include "ops/add.h"

namespace weft {
namespace {

Value scaled_attention(Builder& builder, nn::DecoderStep& step, const Value& x, int layer) {
  const ModelConfig& c = builder.facts.config;
  nn::QueryKeyValue heads = nn::query_key_value(builder, nn::times(x, c.attention_input_scale), layer);
  heads.key = nn::times(heads.key, c.key_scale);
  return nn::times(nn::attend(builder, step, std::move(heads), layer), c.attention_output_scale);
}

Values falcon_h1_forward(Builder& b) {
  nn::DecoderStep step = nn::decoder_step(b);
  const auto mixers = [&](const Value& x, int layer) {
    return add(nn::mamba2_mixer(b, step, x, layer), scaled_attention(b, step, x, layer));
  };
  const auto feed_forward = [&](const Value& x, int layer) {
    return nn::times(nn::gated_feed_forward(b, x, layer), b.facts.config.feed_forward_scale);
  };
  return nn::pre_norm_layers(b, step, nn::embedded_tokens(b, step.ids), mixers, feed_forward);
}

constexpr const char* kFalconH1Defaults = R"({
  "vocab_size": 128000, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
  "num_attention_heads": 32, "num_key_value_heads": 8, "rms_norm_eps": 1e-5, "max_position_embeddings": 8192,
  "mamba_d_ssm": 1024, "mamba_d_conv": 4, "mamba_d_state": 256, "mamba_expand": 2, "mamba_n_groups": 1,
  "mamba_n_heads": 128, "mamba_rms_norm": false, "mamba_norm_before_gate": true, "projectors_bias": false,
  "rope_theta": 100000.0
})";

// A sample's factors are those that GGUF files do not have in their weights.
constexpr const char* kFalconH1Sample = R"({
  "architectures": ["FalconH1ForCausalLM"], "model_type": "falcon_h1", "hidden_act": "silu", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false,
  "mamba_d_ssm": 96, "mamba_d_conv": 4, "mamba_d_head": 24, "mamba_d_state": 16, "mamba_n_groups": 2,
  "mamba_n_heads": 4, "mamba_rms_norm": true, "mamba_norm_before_gate": false, "vocab_size": 257, "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(falcon_h1) {
  using namespace weft;
  models.add(
      {.architectures = {"falcon_h1"},
       .gguf_architecture = "falcon-h1",
       .facts = {.defaults = kFalconH1Defaults,
                 .recurrent = RecurrentFacts{.kind = RecurrentKind::mamba2, .has_attention = true},
                 .numbers = {{&ModelConfig::embedding_scale, "embedding_multiplier"},
                             {&ModelConfig::attention_input_scale, "attention_in_multiplier"},
                             {&ModelConfig::key_scale, "key_multiplier"},
                             {&ModelConfig::attention_output_scale, "attention_out_multiplier"},
                             {&ModelConfig::logit_scale, "lm_head_multiplier"}},
                 .number_lists = {{{&ModelConfig::gate_scale, &ModelConfig::feed_forward_scale}, "mlp_multipliers"}},
                 .switches = all_biases(),
                 .always = {"mamba_use_mlp"}},
       .weights = nn::mamba2_decoder_weights(),
       .forward = falcon_h1_forward,
       .head = nn::decoder_head,
       .fusions_per_recurrent_layer = {{"rms_quant", 1}, {"act_quant", 1}, {"attn_quant", 1}, {"rope_kvcache", 1}},
       .check = nn::check_gated_decoder,
       .sample_config = kFalconH1Sample});
}
