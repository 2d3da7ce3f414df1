// GPT-NeoX (Pythia): one weight for queries, keys and values, biases of all linear layers, norms that subtract the mean
// and a feed-forward without a gate. A part of each head is rotated. In most models both halves of a layer take the
// same residual sum, each with a norm of its own.

#include "models/model.h"
#include "nn/attention.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/feed_forward.h"
#include "nn/llama.h"

namespace weft {
namespace {

Values gpt_neox_forward(Builder& b) {
  nn::DecoderStep step = nn::decoder_step(b);
  const auto attention = [&](const Value& x, int layer) { return nn::self_attention(b, step, x, layer); };
  const auto feed_forward = [&](const Value& x, int layer) { return nn::plain_feed_forward(b, x, layer); };
  const auto layers = b.facts.config.is_parallel ? nn::parallel_layers : nn::pre_norm_layers;
  return layers(b, step, nn::embedded_tokens(b, step.ids), attention, feed_forward);
}

constexpr const char* kGptNeoxDefaults = R"({
  "max_position_embeddings": 2048, "hidden_act": "gelu", "partial_rotary_factor": 0.25, "layer_norm_eps": 1e-5,
  "attention_bias": true, "use_parallel_residual": true
})";

void complete_gpt_neox(ModelConfig& c) { c.norms_each_half = c.mlp_bias = c.merges_query_key_value = true; }

nn::WeightTable gpt_neox_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  const std::string layer = "gpt_neox.layers.{}.";
  nn::erase(weights, {"ffn_gate"});
  nn::rename(weights, {{"token_embd", "", "gpt_neox.embed_in"},
                       {"attn_norm", "", layer + "input_layernorm"},
                       {"attn_qkv", "", layer + "attention.query_key_value"},
                       {"attn_output", "", layer + "attention.dense"},
                       {"ffn_norm", "", layer + "post_attention_layernorm"},
                       {"ffn_up", "", layer + "mlp.dense_h_to_4h"},
                       {"ffn_down", "", layer + "mlp.dense_4h_to_h"},
                       {"output_norm", "", "gpt_neox.final_layer_norm"}});
  return weights;
}

constexpr const char* kGptNeoxSample = R"({
  "architectures": ["GPTNeoXForCausalLM"], "model_type": "gpt_neox", "hidden_act": "gelu", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 128,
  "layer_norm_eps": 1e-5, "rotary_emb_base": 10000, "rotary_pct": 0.5, "tie_word_embeddings": false,
  "use_parallel_residual": true, "vocab_size": 257, "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(gpt_neox) {
  using namespace weft;
  models.add(
      {.architectures = {"gpt_neox"},
       .gguf_architecture = "gptneox",
       .facts = {.key_names = {{"rotary_pct", "partial_rotary_factor"}, {"rotary_emb_base", "rope_theta"}},
                 .embedding = "gpt_neox.embed_in.weight",
                 .head = "embed_out",
                 .defaults = kGptNeoxDefaults,
                 .norm = {.kind = NormKind::layer, .epsilon = "layer_norm_eps", .has_bias = true},
                 .groups_heads_in_folders = true,
                 .switches = {{&ModelConfig::attention_bias, "attention_bias", "", "blk.0.attn_qkv.bias"},
                              {&ModelConfig::attention_output_bias, "attention_bias", "", "blk.0.attn_output.bias"},
                              {&ModelConfig::is_parallel, "use_parallel_residual", "use_parallel_residual"}},
                 .complete = complete_gpt_neox},
       .weights = gpt_neox_weights(),
       .forward = gpt_neox_forward,
       .head = nn::decoder_head,
       .fusions_per_layer = {{"attn_quant", 1}, {"rope_kvcache", 1}},
       .check = nn::check_plain_decoder,
       .sample_config = kGptNeoxSample});
}
