// BLOOM: ALiBi in place of positions, a norm of the embeddings, one weight for queries, keys and values, biases of all
// linear layers, norms that subtract the mean, and a feed-forward without a gate.

#include "models/model.h"
#include "nn/attention.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/encoder.h"
#include "nn/feed_forward.h"
#include "nn/llama.h"
#include "nn/norm.h"

namespace weft {
namespace {

Values bloom_forward(Builder& b) {
  nn::DecoderStep step = nn::decoder_step(b);
  const auto attention = [&](const Value& x, int layer) { return nn::self_attention(b, step, x, layer); };
  const auto feed_forward = [&](const Value& x, int layer) { return nn::plain_feed_forward(b, x, layer); };
  const Value x = nn::norm(b, nn::embedded_tokens(b, step.ids), "token_embd_norm");
  return nn::pre_norm_layers(b, step, x, attention, feed_forward);
}

// Not all published files state the length of the context.
constexpr const char* kBloomDefaults = R"({
  "vocab_size": 250880, "num_hidden_layers": 2, "num_attention_heads": 8, "max_position_embeddings": 2048,
  "hidden_act": "gelu_pytorch_tanh", "layer_norm_epsilon": 1e-5, "tie_word_embeddings": true
})";

// No key of the files states the biases, of linear layers and of scores.
void complete_bloom(ModelConfig& c) {
  c.attention_bias = c.attention_output_bias = c.mlp_bias = c.merges_query_key_value = true;
  c.alibi_bias_max = 8;
}

nn::WeightTable bloom_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  const std::string module = "transformer.", layer = module + "h.{}.";
  nn::erase(weights, {"ffn_gate"});
  nn::add_embedding_norm(weights, module + "word_embeddings_layernorm");
  nn::rename(weights, {{"token_embd", "", module + "word_embeddings"},
                       {"attn_norm", "", layer + "input_layernorm"},
                       {"attn_qkv", "", layer + "self_attention.query_key_value"},
                       {"attn_output", "", layer + "self_attention.dense"},
                       {"ffn_norm", "", layer + "post_attention_layernorm"},
                       {"ffn_up", "", layer + "mlp.dense_h_to_4h"},
                       {"ffn_down", "", layer + "mlp.dense_4h_to_h"},
                       {"output_norm", "", module + "ln_f"}});
  return weights;
}

constexpr const char* kBloomSample = R"({
  "architectures": ["BloomForCausalLM"], "model_type": "bloom", "hidden_size": 64, "intermediate_size": 96,
  "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 128, "layer_norm_epsilon": 1e-5,
  "tie_word_embeddings": false, "vocab_size": 257, "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(bloom) {
  using namespace weft;
  models.add({.architectures = {"bloom"},
              .facts = {.key_names = {{"n_embed", "hidden_size"},
                                      {"n_layer", "num_hidden_layers"},
                                      {"n_head", "num_attention_heads"},
                                      {"seq_length", "max_position_embeddings"}},
                        .embedding = "transformer.word_embeddings.weight",
                        .defaults = kBloomDefaults,
                        .norm = {.kind = NormKind::layer, .epsilon = "layer_norm_epsilon", .has_bias = true},
                        .default_widening = 4,
                        .groups_heads_in_folders = true,
                        .rotary = {.is_absent = true},
                        .complete = complete_bloom},
              .weights = bloom_weights(),
              .forward = bloom_forward,
              .head = nn::decoder_head,
              .check = nn::check_plain_decoder,
              .sample_config = kBloomSample});
}
