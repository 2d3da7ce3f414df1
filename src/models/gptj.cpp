// GPT-J: both halves of a layer take the same norm, which subtracts the mean. The feed-forward and the head have
// biases, and a part of each head is rotated, each element with its neighbour.

#include "models/llama_layers.h"
#include "nn/attention.h"
#include "nn/feed_forward.h"

namespace weft {
namespace {

Values gptj_forward(Builder& b) {
  nn::DecoderStep step = nn::decoder_step(b);
  const auto attention = [&](const Value& x, int layer) { return nn::self_attention(b, step, x, layer); };
  const auto feed_forward = [&](const Value& x, int layer) { return nn::plain_feed_forward(b, x, layer); };
  return nn::parallel_layers(b, step, nn::embedded_tokens(b, step.ids), attention, feed_forward);
}

// No key of the files states the biases.
void complete_gptj(ModelConfig& c) { c.mlp_bias = c.head_bias = true; }

nn::WeightTable gptj_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  const std::string layer = "transformer.h.{}.";
  nn::erase(weights, {"ffn_gate", "ffn_norm"});
  nn::rename(weights, {{"token_embd", "", "transformer.wte"},
                       {"attn_norm", "", layer + "ln_1"},
                       {"attn_q", "", layer + "attn.q_proj"},
                       {"attn_k", "", layer + "attn.k_proj"},
                       {"attn_v", "", layer + "attn.v_proj"},
                       {"attn_output", "", layer + "attn.out_proj"},
                       {"ffn_up", "", layer + "mlp.fc_in"},
                       {"ffn_down", "", layer + "mlp.fc_out"},
                       {"output_norm", "", "transformer.ln_f"}});
  return weights;
}

constexpr const char* kGptjDefaults = R"({
  "max_position_embeddings": 2048, "hidden_act": "gelu_new", "layer_norm_epsilon": 1e-5, "rotary_dim": 64
})";

constexpr const char* kGptjSample = R"({
  "architectures": ["GPTJForCausalLM"], "model_type": "gptj", "hidden_act": "gelu_new", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 128,
  "layer_norm_epsilon": 1e-5, "rotary_dim": 8, "tie_word_embeddings": false, "vocab_size": 257, "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(gptj) {
  using namespace weft;
  ModelDefinition model =
      llama_layers("gptj",
                   {.key_names = {{"n_embd", "hidden_size"},
                                  {"n_layer", "num_hidden_layers"},
                                  {"n_head", "num_attention_heads"},
                                  {"n_positions", "max_position_embeddings"},
                                  {"n_inner", "intermediate_size"},
                                  {"activation_function", "hidden_act"}},
                    .embedding = "transformer.wte.weight",
                    .defaults = kGptjDefaults,
                    .norm = {.kind = NormKind::layer, .epsilon = "layer_norm_epsilon", .has_bias = true},
                    .default_widening = 4,
                    .pairing_in_folders = RotaryPairing::neighbours,
                    .pairing_in_gguf = RotaryPairing::neighbours,
                    .rotary = {.width = "rotary_dim"},
                    .complete = complete_gptj},
                   kGptjSample, gptj_weights());
  model.forward = gptj_forward;
  model.fusions_per_layer = {{"attn_quant", 1}, {"rope_kvcache", 1}};
  model.check = nn::check_plain_decoder;
  models.add(std::move(model));
}
