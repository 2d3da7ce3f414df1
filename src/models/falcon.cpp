// Falcon: both halves of a layer take the same residual sum, by one norm (7B, 11B) or by one each (40B, 180B), which
// subtract the mean. One weight has queries, keys and values, and the feed-forward has no gate. Layers of Falcon-RW are
// sequential, and ALiBi is in place of rotary positions; llama.cpp does not compute it.

#include <cmath>

#include "base/error.h"
#include "models/model.h"
#include "nn/attention.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/feed_forward.h"
#include "nn/llama.h"

namespace weft {
namespace {

using Extents = std::vector<std::int64_t>;

Values falcon_forward(Builder& b) {
  nn::DecoderStep step = nn::decoder_step(b);
  const auto attention = [&](const Value& x, int layer) { return nn::self_attention(b, step, x, layer); };
  const auto feed_forward = [&](const Value& x, int layer) { return nn::plain_feed_forward(b, x, layer); };
  const auto layers = b.facts.config.is_parallel ? nn::parallel_layers : nn::pre_norm_layers;
  return layers(b, step, nn::embedded_tokens(b, step.ids), attention, feed_forward);
}

constexpr const char* kFalconDefaults = R"({
  "max_position_embeddings": 2048, "hidden_act": "gelu", "layer_norm_epsilon": 1e-5, "tie_word_embeddings": true,
  "multi_query": true, "parallel_attn": true
})";

// Folders of the older form have one key head, or as many as query heads, whatever num_kv_heads says. GGUF files are of
// the newer form, which can state the models of both.
void complete_falcon(ModelConfig& c) {
  c.merges_query_key_value = true;
  if (c.has_alibi) {
    c.alibi_bias_max = 8;
    c.alibi_factor = 1 / std::sqrt(static_cast<double>(c.head_dim));  // the scores are scaled with their biases
    c.is_rotated.assign(static_cast<std::size_t>(c.layer_count), false);
  }
  if (c.format == CheckpointFormat::gguf) {
    c.is_parallel = true;
    c.norms_each_half = c.states_key_heads;  // by the second norm
    c.states_key_heads = true;
    c.has_one_key_head = c.kv_head_count == 1;
    c.parallel_norm_count = c.norms_each_half ? 2 : 1;
    return;
  }
  if (!c.states_key_heads) c.kv_head_count = c.has_one_key_head ? 1 : c.head_count;
  c.norms_each_half = c.states_key_heads && (c.parallel_norm_count == 0 || c.parallel_norm_count == 2);
}

void check_falcon(const ModelConfig& c) {
  nn::check_plain_decoder(c);
  USER_CHECK(c.parallel_norm_count <= 2, "[{}] num_ln_in_parallel_attn must be 1 or 2, but is {}", c.architecture,
             c.parallel_norm_count);
  USER_CHECK(c.is_parallel || !c.states_key_heads,
             "[{}] parallel_attn must be true with new_decoder_architecture, but is false", c.architecture);
}

Extents per_hidden_of_one(const ModelConfig& c, int) { return c.norms_each_half ? Extents() : Extents{c.hidden_size}; }
Extents per_hidden_of_two(const ModelConfig& c, int) { return c.norms_each_half ? Extents{c.hidden_size} : Extents(); }
Extents per_hidden_of_sequence(const ModelConfig& c, int) { return c.is_parallel ? Extents() : Extents{c.hidden_size}; }

nn::WeightTable falcon_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  const std::string layer = "transformer.h.{}.";
  nn::erase(weights, {"ffn_gate", "attn_norm", "ffn_norm"});
  // In GGUF files the norm of attention is the second one, if there are two.
  for (const std::string part : {"weight", "bias"}) {
    const std::string name = part == "bias" ? "attn_norm.bias" : "attn_norm";
    weights.push_back({name, "blk.{}.attn_norm." + part, layer + "input_layernorm." + part, per_hidden_of_one});
    weights.push_back({name, "blk.{}.attn_norm_2." + part, layer + "ln_attn." + part, per_hidden_of_two});
    const std::string second = part == "bias" ? "ffn_norm.bias" : "ffn_norm";
    weights.push_back({second, "blk.{}.attn_norm." + part, layer + "ln_mlp." + part, per_hidden_of_two});
    weights.push_back(
        {second, "blk.{}.ffn_norm." + part, layer + "post_attention_layernorm." + part, per_hidden_of_sequence});
  }
  nn::rename(weights, {{"token_embd", "", "transformer.word_embeddings"},
                       {"attn_qkv", "", layer + "self_attention.query_key_value"},
                       {"attn_output", "", layer + "self_attention.dense"},
                       {"ffn_up", "", layer + "mlp.dense_h_to_4h"},
                       {"ffn_down", "", layer + "mlp.dense_4h_to_h"},
                       {"output_norm", "", "transformer.ln_f"}});
  return weights;
}

constexpr const char* kFalconSample = R"({
  "architectures": ["FalconForCausalLM"], "model_type": "falcon", "hidden_size": 64, "intermediate_size": 96,
  "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128,
  "rope_theta": 10000.0, "tie_word_embeddings": false, "new_decoder_architecture": true, "vocab_size": 257,
  "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(falcon) {
  using namespace weft;
  models.add({.architectures = {"falcon"},
              .facts = {.key_names = {{"num_kv_heads", "num_key_value_heads"},
                                      {"ffn_hidden_size", "intermediate_size"},
                                      {"activation", "hidden_act"}},
                        .embedding = "transformer.word_embeddings.weight",
                        .defaults = kFalconDefaults,
                        .norm = {.kind = NormKind::layer, .epsilon = "layer_norm_epsilon", .has_bias = true},
                        .default_widening = 4,
                        .groups_heads_in_folders = true,
                        .counts = {{&ModelConfig::parallel_norm_count, "num_ln_in_parallel_attn"}},
                        .switches = {{&ModelConfig::attention_bias, "bias", "", "blk.0.attn_qkv.bias"},
                                     {&ModelConfig::attention_output_bias, "bias", "", "blk.0.attn_output.bias"},
                                     {&ModelConfig::mlp_bias, "bias", "", "blk.0.ffn_up.bias"},
                                     {&ModelConfig::has_one_key_head, "multi_query"},
                                     {&ModelConfig::is_parallel, "parallel_attn"},
                                     {&ModelConfig::has_alibi, "alibi"},
                                     {&ModelConfig::states_key_heads, "new_decoder_architecture", "",
                                      "blk.0.attn_norm_2.weight"}},
                        .complete = complete_falcon},
              .weights = falcon_weights(),
              .forward = falcon_forward,
              .head = nn::decoder_head,
              .fusions_per_layer = {{"attn_quant", 1}, {"rope_kvcache", 1}},
              .check = check_falcon,
              .sample_config = kFalconSample});
}
