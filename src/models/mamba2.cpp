// Mamba 2 alone: each layer has a norm and the recurrent half, and no layer has attention.

#include "nn/mamba2.h"

#include "base/error.h"
#include "base/text.h"
#include "models/model.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"

namespace weft {
namespace {

Values mamba2_alone_forward(Builder& b) {
  nn::DecoderStep step = nn::decoder_step(b);
  const auto half = [&](const Value& x, int layer) { return nn::mamba2_mixer(b, step, x, layer); };
  return nn::single_half_layers(b, step, nn::embedded_tokens(b, step.ids), half);
}

nn::WeightTable mamba2_alone_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  nn::erase(weights,
            {"attn_q", "attn_k", "attn_v", "attn_qkv", "attn_output", "ffn_gate", "ffn_up", "ffn_down", "ffn_norm"});
  const std::string layer = "backbone.layers.{}.";
  nn::rename(weights, {{"token_embd", "", "backbone.embeddings"},
                       {"attn_norm", "", layer + "norm"},
                       {"output_norm", "", "backbone.norm_f"}});
  nn::add_mamba2(weights, layer + "mixer.");
  return weights;
}

void check_mamba2_alone(const ModelConfig& c) {
  nn::check_decoder(c);
  USER_CHECK(c.hidden_act == "silu" || c.hidden_act == "swish", "[{}] hidden_act must be silu, but is {}",
             c.architecture, quote(c.hidden_act));
}

// A context has no limit in the files; this one is that of GGUF files. Attention and the feed-forward, which no layer
// has, have the least widths.
constexpr const char* kMamba2Defaults = R"({
  "vocab_size": 32768, "hidden_size": 4096, "num_hidden_layers": 64, "intermediate_size": 1, "num_attention_heads": 1,
  "max_position_embeddings": 1048576, "layer_norm_epsilon": 1e-5, "mamba_n_heads": 128, "mamba_d_head": 64,
  "mamba_d_state": 128, "mamba_n_groups": 8, "mamba_d_conv": 4
})";

constexpr const char* kMamba2Sample = R"({
  "architectures": ["Mamba2ForCausalLM"], "model_type": "mamba2", "hidden_act": "silu", "hidden_size": 64,
  "num_hidden_layers": 2, "layer_norm_epsilon": 1e-5, "tie_word_embeddings": false, "conv_kernel": 4, "head_dim": 32,
  "num_heads": 4, "n_groups": 2, "state_size": 16, "max_position_embeddings": 128, "vocab_size": 257,
  "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(mamba2) {
  using namespace weft;
  models.add({.architectures = {"mamba2"},
              .facts = {.key_names = {{"conv_kernel", "mamba_d_conv"},
                                      {"use_conv_bias", "mamba_conv_bias"},
                                      {"use_bias", "mamba_proj_bias"},
                                      {"n_groups", "mamba_n_groups"},
                                      {"num_heads", "mamba_n_heads"},
                                      {"head_dim", "mamba_d_head"},
                                      {"state_size", "mamba_d_state"}},
                        .embedding = "backbone.embeddings.weight",
                        .defaults = kMamba2Defaults,
                        .norm = {.epsilon = "layer_norm_epsilon"},
                        .halves = HalfFacts{.words = "", .letters = ""},
                        .recurrent = RecurrentFacts{.kind = RecurrentKind::mamba2}},
              .weights = mamba2_alone_weights(),
              .forward = mamba2_alone_forward,
              .head = nn::decoder_head,
              .fusions_per_recurrent_layer = {{"rms_quant", 1}},
              .check = check_mamba2_alone,
              .sample_config = kMamba2Sample});
}
