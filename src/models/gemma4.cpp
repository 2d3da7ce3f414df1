// Gemma 4: Gemma 3's layers with norms of the values, too, and with inputs of their own. Layers without a window have
// wider heads and rotate a part of them; the last layers read keys and values of earlier ones. Norms multiply by w.

#include "base/error.h"
#include "models/model.h"
#include "nn/attention.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/feed_forward.h"
#include "nn/layer_input.h"
#include "nn/norm.h"
#include "ops/add.h"
#include "ops/mul.h"

namespace weft {
namespace {

Values gemma4_forward(Builder& b) {
  nn::DecoderStep step = nn::decoder_step(b);
  Value x = nn::times_root_of_width(b, nn::embedded_tokens(b, step.ids));
  const Values inputs = nn::layer_inputs(b, step.ids, x);
  for (int layer = 0; layer < b.facts.config.layer_count; ++layer) {
    b.enter_layer(layer);
    const Value attended = nn::self_attention_with_all_norms(b, step, nn::norm(b, x, "attn_norm", layer), layer);
    x = add(x, nn::norm(b, attended, "post_attention_norm", layer));
    const Value fed = nn::gated_feed_forward(b, nn::norm(b, x, "ffn_norm", layer), layer);
    x = add(x, nn::norm(b, fed, "post_ffw_norm", layer));
    if (!inputs.empty()) x = add(x, nn::gated_layer_input(b, x, inputs[static_cast<std::size_t>(layer)], layer));
    if (b.has("layer_scale", layer)) x = mul(x, nn::norm_weight(b, "layer_scale", layer));
  }
  b.enter_layer(-1);
  return nn::decoder_results(step, nn::norm(b, x, "output_norm"));
}

void check_gemma4(const ModelConfig& c) {
  nn::check_decoder(c);
  nn::check_gated_activation(c);
  const std::string& activation = c.hidden_activation.empty() ? c.hidden_act : c.hidden_activation;
  USER_CHECK(activation == "gelu_pytorch_tanh", "[{}] hidden_activation must be gelu_pytorch_tanh, but is {}",
             c.architecture, activation);
}

constexpr const char* kGemma4Defaults = R"({
  "hidden_act": "gelu_pytorch_tanh", "tie_word_embeddings": true, "hidden_size": 2304, "intermediate_size": 9216,
  "num_hidden_layers": 30, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "global_head_dim": 512,
  "vocab_size": 262144, "vocab_size_per_layer_input": 262144, "hidden_size_per_layer_input": 256, "rms_norm_eps": 1e-6,
  "max_position_embeddings": 131072, "sliding_window": 512,
  "rope_parameters": {
    "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1000000.0},
    "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}
})";

void complete_gemma4(ModelConfig& c) {
  c.attention_scale = 1;
  // The last layer has no window, whatever layer_types has, as in transformers.
  if (c.sliding_window && c.has_window.empty()) c.has_window.assign(static_cast<std::size_t>(c.layer_count), true);
  if (!c.has_window.empty()) c.has_window.back() = false;
  if (c.format == CheckpointFormat::hugging_face && !c.keys_are_values) c.full_kv_head_count = 0;
}

std::vector<std::int64_t> one_number(const ModelConfig&, int) { return {1}; }

nn::WeightTable gemma4_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  nn::rename(weights, {{"ffn_norm", "", "model.layers.{}.pre_feedforward_layernorm"}});
  nn::add_post_norms(weights);
  nn::add_head_norms(weights);
  nn::add_layer_inputs(weights);
  weights.push_back({"layer_scale", "blk.{}.layer_output_scale.weight", "model.layers.{}.layer_scalar", one_number});
  return weights;
}

constexpr const char* kGemma4Sample = R"({
  "architectures": ["Gemma4ForCausalLM"], "model_type": "gemma4_text", "hidden_size": 64, "intermediate_size": 96,
  "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128,
  "rms_norm_eps": 1e-6, "tie_word_embeddings": false, "hidden_activation": "gelu_pytorch_tanh", "head_dim": 32,
  "global_head_dim": 64, "sliding_window": 9, "sliding_window_pattern": 2, "hidden_size_per_layer_input": 32,
  "vocab_size": 257, "vocab_size_per_layer_input": 257, "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(gemma4) {
  using namespace weft;
  models.add(
      {.architectures = {"gemma4_text"},
       .gguf_architecture = "gemma4",
       .facts = {.defaults = kGemma4Defaults,
                 .window = WindowFacts{.period = 6},
                 .rotary = {.has_sliding_positions = true, .sliding_theta = 10000.0},
                 .numbers = {{&ModelConfig::logit_softcap, "final_logit_softcapping", "final_logit_softcapping"}},
                 .counts = {{&ModelConfig::full_head_dim, "global_head_dim"},
                            {&ModelConfig::full_kv_head_count, "num_global_key_value_heads"},
                            {&ModelConfig::shared_kv_layer_count, "num_kv_shared_layers", "attention.shared_kv_layers"},
                            {&ModelConfig::layer_input_width, "hidden_size_per_layer_input",
                             "embedding_length_per_layer_input"},
                            {&ModelConfig::layer_input_vocab_size, "vocab_size_per_layer_input", "",
                             "per_layer_token_embd.weight"}},
                 .switches = {{&ModelConfig::keys_are_values, "attention_k_eq_v"},
                              {&ModelConfig::widens_shared_layers, "use_double_wide_mlp"}},
                 .keys = {"hidden_activation", "rope.freq_base_swa", "query_pre_attn_scalar"},
                 .complete = complete_gemma4},
       .weights = gemma4_weights(),
       .forward = gemma4_forward,
       .head = nn::decoder_head,
       .check = check_gemma4,
       .sample_config = kGemma4Sample});
}
