// MPT: ALiBi in place of positions, one weight for queries, keys and values, which the config may clamp, no biases of
// linear layers, norms that subtract the mean and add nothing, and a feed-forward without a gate.

#include <limits>

#include "base/error.h"
#include "models/model.h"
#include "nn/attention.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/feed_forward.h"
#include "nn/llama.h"

namespace weft {
namespace {

Values mpt_forward(Builder& b) {
  nn::DecoderStep step = nn::decoder_step(b);
  const auto attention = [&](const Value& x, int layer) { return nn::self_attention(b, step, x, layer); };
  const auto feed_forward = [&](const Value& x, int layer) { return nn::plain_feed_forward(b, x, layer); };
  return nn::pre_norm_layers(b, step, nn::embedded_tokens(b, step.ids), attention, feed_forward);
}

constexpr const char* kMptDefaults = R"({
  "vocab_size": 50368, "hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 16,
  "max_position_embeddings": 2048, "hidden_act": "gelu", "layer_norm_epsilon": 1e-5, "tie_word_embeddings": true
})";

constexpr const char* kBiasInGguf = "attention.max_alibi_bias";

// A limit of 0 is none. GGUF files of models without ALiBi have a 0, and folders `alibi`, which is refused if it is
// off.
void complete_mpt(ModelConfig& c) {
  const bool is_folder = c.format == CheckpointFormat::hugging_face;
  if (is_folder && c.widening > 0) c.intermediate_size = c.widening * c.hidden_size;
  if (!is_folder && c.intermediate_size % c.hidden_size == 0) c.widening = c.intermediate_size / c.hidden_size;
  c.merges_query_key_value = true;
  if (c.query_key_value_limit == 0) c.query_key_value_limit = std::numeric_limits<double>::infinity();
  if (is_folder && c.alibi_bias_max == 0) c.alibi_bias_max = 8;
}

void check_mpt(const ModelConfig& c) {
  nn::check_plain_decoder(c);
  USER_CHECK(c.query_key_value_limit > 0, "[{}] {} must be at least 0, but is {}", c.architecture,
             c.format == CheckpointFormat::gguf ? "attention.clamp_kqv" : "clip_qkv", c.query_key_value_limit);
  USER_CHECK(c.alibi_bias_max > 0, "[{}] {} must be above 0: models without ALiBi are not supported, but is {}",
             c.architecture, c.format == CheckpointFormat::gguf ? kBiasInGguf : "alibi_bias_max", c.alibi_bias_max);
}

nn::WeightTable mpt_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  const std::string layer = "transformer.blocks.{}.";
  nn::erase(weights, {"ffn_gate"});
  nn::rename(weights, {{"token_embd", "", "transformer.wte"},
                       {"attn_norm", "", layer + "norm_1"},
                       {"attn_qkv", "", layer + "attn.Wqkv"},
                       {"attn_output", "", layer + "attn.out_proj"},
                       {"ffn_norm", "", layer + "norm_2"},
                       {"ffn_up", "", layer + "ffn.up_proj"},
                       {"ffn_down", "", layer + "ffn.down_proj"},
                       {"output_norm", "", "transformer.norm_f"}});
  return weights;
}

constexpr const char* kMptSample = R"({
  "architectures": ["MptForCausalLM"], "model_type": "mpt", "hidden_size": 64, "intermediate_size": 96,
  "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 128, "layer_norm_epsilon": 1e-5,
  "tie_word_embeddings": false, "vocab_size": 257, "eos_token_id": 256,
  "attn_config": {"alibi": true, "alibi_bias_max": 8, "clip_qkv": 6.0}
})";

}  // namespace
}  // namespace weft

MODEL(mpt) {
  using namespace weft;
  models.add({.architectures = {"mpt"},
              .facts = {.key_names = {{"d_model", "hidden_size"},
                                      {"n_layers", "num_hidden_layers"},
                                      {"n_heads", "num_attention_heads"},
                                      {"max_seq_len", "max_position_embeddings"}},
                        .inner_object = "attn_config",
                        .embedding = "transformer.wte.weight",
                        .defaults = kMptDefaults,
                        .norm = {.kind = NormKind::layer, .epsilon = "layer_norm_epsilon"},
                        .default_widening = 4,
                        .rotary = {.is_absent = true},
                        .numbers = {{&ModelConfig::alibi_bias_max, "alibi_bias_max", kBiasInGguf},
                                    {&ModelConfig::query_key_value_limit, "clip_qkv", "attention.clamp_kqv"},
                                    {&ModelConfig::attention_scale, "softmax_scale"}},
                        .counts = {{&ModelConfig::widening, "expansion_ratio"}},
                        .keys = {"norm_type"},
                        .always = {"alibi", "no_bias"},
                        .complete = complete_mpt},
              .weights = mpt_weights(),
              .forward = mpt_forward,
              .head = nn::decoder_head,
              .check = check_mpt,
              .sample_config = kMptSample});
}
