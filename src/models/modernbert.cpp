// ModernBERT: an encoder with norms before the halves of a layer, rotary positions, and a feed-forward with a gate. Two
// of three layers have a window on both sides of a token, and rotary positions of their own.

#include "models/model.h"
#include "nn/attention.h"
#include "nn/encoder.h"
#include "nn/feed_forward.h"
#include "nn/llama.h"

namespace weft {
namespace {

// The first layer's attention reads the embeddings, which are normalized already, and not a second norm of them.
Values modernbert_forward(Builder& b) {
  nn::DecoderStep step = nn::decoder_step(b);
  const Value embeddings = nn::encoder_embeddings(b, step);
  const auto attention = [&](const Value& x, int layer) {
    return nn::self_attention(b, step, layer == 0 ? embeddings : x, layer);
  };
  const auto feed_forward = [&](const Value& x, int layer) { return nn::gated_feed_forward(b, x, layer); };
  return nn::pre_norm_layers(b, step, embeddings, attention, feed_forward);
}

constexpr const char* kModernbertDefaults = R"({
  "vocab_size": 50368, "hidden_size": 768, "intermediate_size": 1152, "num_hidden_layers": 22,
  "num_attention_heads": 12, "max_position_embeddings": 8192, "hidden_act": "gelu", "hidden_activation": "gelu",
  "norm_eps": 1e-5, "sliding_window": 128, "rope_theta": 160000.0, "rope_local_base_freq": 10000.0,
  "tie_word_embeddings": true
})";

void complete_modernbert(ModelConfig& c) { c.merges_query_key_value = c.tie_word_embeddings = true; }

std::vector<std::int64_t> per_hidden_but_first(const ModelConfig& c, int layer) {
  if (layer == 0) return {};
  return {c.hidden_size};
}
std::vector<std::int64_t> per_hidden_of_bias_but_first(const ModelConfig& c, int layer) {
  return c.norm_has_bias ? per_hidden_but_first(c, layer) : std::vector<std::int64_t>();
}

nn::WeightTable modernbert_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  const std::string module = "model.", layer = module + "layers.{}.";
  nn::erase(weights, {"output"});
  nn::merge_gate_and_up(weights);
  nn::add_embedding_norm(weights, module + "embeddings.norm");
  for (ModelWeight& weight : weights) {
    if (weight.name == "attn_norm") weight.shape = per_hidden_but_first;
    if (weight.name == "attn_norm.bias") weight.shape = per_hidden_of_bias_but_first;
  }
  nn::rename(weights, {{"token_embd", "", module + "embeddings.tok_embeddings"},
                       {"attn_norm", "", layer + "attn_norm"},
                       {"attn_qkv", "", layer + "attn.Wqkv"},
                       {"attn_output", "", layer + "attn.Wo"},
                       {"ffn_norm", "", layer + "mlp_norm"},
                       {"ffn_gate_up", "", layer + "mlp.Wi"},
                       {"ffn_down", "", layer + "mlp.Wo"},
                       {"output_norm", "", module + "final_norm"}});
  return weights;
}

constexpr const char* kModernbertSample = R"({
  "architectures": ["ModernBertModel"], "model_type": "modernbert", "hidden_activation": "gelu", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 4, "num_attention_heads": 4, "max_position_embeddings": 128,
  "local_attention": 10, "norm_eps": 1e-5, "vocab_size": 257, "pad_token_id": 0
})";

}  // namespace
}  // namespace weft

MODEL(modernbert) {
  using namespace weft;
  models.add(
      {.architectures = {"modernbert"},
       .gguf_architecture = "modern-bert",
       .facts = {.key_names = {{"local_attention", "sliding_window"},
                               {"global_attn_every_n_layers", "sliding_window_pattern"},
                               {"global_rope_theta", "rope_theta"},
                               {"local_rope_theta", "rope_local_base_freq"}},
                 .embedding = "model.embeddings.tok_embeddings.weight",
                 .defaults = kModernbertDefaults,
                 .bidirectional = Bidirectional::always,
                 .norm = {.kind = NormKind::layer, .epsilon = "norm_eps"},
                 .window = WindowFacts{.period = 3, .begins_without = true},
                 .rotary = {.has_sliding_positions = true, .sliding_theta = 10000.0},
                 .switches = {{&ModelConfig::norm_has_bias, "norm_bias", "", "output_norm.bias"},
                              {&ModelConfig::attention_bias, "attention_bias", "", "blk.0.attn_qkv.bias"},
                              {&ModelConfig::attention_output_bias, "attention_bias", "", "blk.0.attn_output.bias"},
                              {&ModelConfig::mlp_bias, "mlp_bias", "", "blk.0.ffn_down.bias"}},
                 .keys = {"hidden_activation", "rope_local_base_freq", "rope.freq_base_swa"},
                 .score_layers = {{"head.dense", DenseActivation::gelu, "head.norm"}, {"classifier"}},
                 .scores_mean_in_gguf = true,
                 .complete = complete_modernbert},
       .weights = modernbert_weights(),
       .forward = modernbert_forward,
       .head = nn::decoder_head,
       .check = nn::check_gated_decoder,
       .sample_config = kModernbertSample});
}
