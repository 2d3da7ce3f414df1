// GPT-Neo (TinyStories): learned positions, norms that subtract the mean, and a feed-forward without a gate. Scores of
// attention are not scaled, and every second layer has a window. llama.cpp has no such architecture.

#include "models/model.h"
#include "nn/attention.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/feed_forward.h"
#include "nn/llama.h"

namespace weft {
namespace {

Values gpt_neo_forward(Builder& b) {
  nn::DecoderStep step = nn::decoder_step(b);
  const auto attention = [&](const Value& x, int layer) { return nn::self_attention(b, step, x, layer); };
  const auto feed_forward = [&](const Value& x, int layer) { return nn::plain_feed_forward(b, x, layer); };
  return nn::pre_norm_layers(b, step, nn::embedded_tokens_and_positions(b, step), attention, feed_forward);
}

constexpr const char* kGptNeoDefaults = R"({
  "vocab_size": 50257, "hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 16,
  "max_position_embeddings": 2048, "hidden_act": "gelu_new", "layer_norm_epsilon": 1e-5, "sliding_window": 256,
  "tie_word_embeddings": true
})";

// No key of the files states these.
void complete_gpt_neo(ModelConfig& c) {
  c.attention_output_bias = c.mlp_bias = true;
  c.attention_scale = 1;
}

nn::WeightTable gpt_neo_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  const std::string layer = "transformer.h.{}.", attention = layer + "attn.attention.";
  nn::erase(weights, {"ffn_gate"});
  nn::add_positions(weights, "transformer.wpe");
  nn::rename(weights, {{"token_embd", "", "transformer.wte"},
                       {"attn_norm", "", layer + "ln_1"},
                       {"attn_q", "", attention + "q_proj"},
                       {"attn_k", "", attention + "k_proj"},
                       {"attn_v", "", attention + "v_proj"},
                       {"attn_output", "", attention + "out_proj"},
                       {"ffn_norm", "", layer + "ln_2"},
                       {"ffn_up", "", layer + "mlp.c_fc"},
                       {"ffn_down", "", layer + "mlp.c_proj"},
                       {"output_norm", "", "transformer.ln_f"}});
  return weights;
}

constexpr const char* kGptNeoSample = R"({
  "architectures": ["GPTNeoForCausalLM"], "model_type": "gpt_neo", "hidden_size": 64, "intermediate_size": 96,
  "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 128, "layer_norm_epsilon": 1e-5,
  "window_size": 9, "tie_word_embeddings": false, "vocab_size": 257, "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(gpt_neo) {
  using namespace weft;
  models.add({.architectures = {"gpt_neo"},
              .facts = {.key_names = {{"num_layers", "num_hidden_layers"},
                                      {"num_heads", "num_attention_heads"},
                                      {"window_size", "sliding_window"},
                                      {"activation_function", "hidden_act"}},
                        .embedding = "transformer.wte.weight",
                        .defaults = kGptNeoDefaults,
                        .norm = {.kind = NormKind::layer, .epsilon = "layer_norm_epsilon", .has_bias = true},
                        .default_widening = 4,
                        .window = WindowFacts{.period = 2, .begins_without = true, .types = "attention_types"},
                        .first_position_row = 0,
                        .keys = {"attention_layers", "attention_types"},
                        .complete = complete_gpt_neo},
              .weights = gpt_neo_weights(),
              .forward = gpt_neo_forward,
              .head = nn::decoder_head,
              .fusions_per_layer = {{"attn_quant", 1}},
              .check = nn::check_plain_decoder,
              .sample_config = kGptNeoSample});
}
