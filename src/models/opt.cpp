// OPT: learned positions, of which the first row of the table is the third, biases of all linear layers, norms that
// subtract the mean, and a feed-forward without a gate. OPT 350M has embeddings of another width than its layers, and
// normalizes the sums of its layers. llama.cpp has no such architecture.

#include "models/model.h"
#include "nn/attention.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/encoder.h"
#include "nn/feed_forward.h"
#include "nn/linear.h"
#include "nn/llama.h"

namespace weft {
namespace {

Values opt_forward(Builder& b) {
  nn::DecoderStep step = nn::decoder_step(b);
  const auto attention = [&](const Value& x, int layer) { return nn::self_attention(b, step, x, layer); };
  const auto feed_forward = [&](const Value& x, int layer) { return nn::plain_feed_forward(b, x, layer); };
  Value x = nn::embedded_tokens(b, step.ids);
  if (b.has("token_embd_proj")) x = nn::linear(b, x, "token_embd_proj");
  x = nn::with_positions(b, step, x);
  if (b.facts.config.norms_before_halves) return nn::pre_norm_layers(b, step, x, attention, feed_forward);
  return nn::norm_of_sum_layers(b, step, x, attention, feed_forward, {"attn_norm", "ffn_norm"});
}

// The files have no key of the norms' epsilon.
constexpr const char* kOptDefaults = R"({
  "vocab_size": 50272, "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
  "num_attention_heads": 12, "max_position_embeddings": 2048, "hidden_act": "relu", "layer_norm_eps": 1e-5,
  "enable_bias": true, "tie_word_embeddings": true
})";

// Norms without weights have no biases.
void complete_opt(ModelConfig& c) { c.norm_has_bias = c.norm_has_weight; }

nn::WeightTable opt_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  const std::string module = "model.decoder.", layer = module + "layers.{}.", attention = layer + "self_attn.";
  nn::erase(weights, {"ffn_gate"});
  nn::add_positions(weights, module + "embed_positions");
  nn::add_embedding_projections(weights, module + "project_in", module + "project_out");
  nn::rename(weights, {{"token_embd", "", module + "embed_tokens"},
                       {"attn_norm", "", layer + "self_attn_layer_norm"},
                       {"attn_q", "", attention + "q_proj"},
                       {"attn_k", "", attention + "k_proj"},
                       {"attn_v", "", attention + "v_proj"},
                       {"attn_output", "", attention + "out_proj"},
                       {"ffn_norm", "", layer + "final_layer_norm"},
                       {"ffn_up", "", layer + "fc1"},
                       {"ffn_down", "", layer + "fc2"},
                       {"output_norm", "", module + "final_layer_norm"}});
  return weights;
}

constexpr const char* kOptSample = R"({
  "architectures": ["OPTForCausalLM"], "model_type": "opt", "hidden_size": 64, "intermediate_size": 96,
  "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 128, "tie_word_embeddings": false,
  "vocab_size": 257, "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(opt) {
  using namespace weft;
  models.add(
      {.architectures = {"opt"},
       .facts = {.key_names = {{"ffn_dim", "intermediate_size"}, {"activation_function", "hidden_act"}},
                 .embedding = "model.decoder.embed_tokens.weight",
                 .defaults = kOptDefaults,
                 .norm = {.kind = NormKind::layer, .epsilon = "layer_norm_eps", .has_bias = true},
                 .first_position_row = 2,
                 .counts = {{&ModelConfig::embedding_width, "word_embed_proj_dim", "", "output_projection.weight"}},
                 .switches = {{&ModelConfig::norms_before_halves, "do_layer_norm_before", "", "output_norm.weight"},
                              {&ModelConfig::norm_has_weight, "layer_norm_elementwise_affine", "",
                               "blk.0.attn_norm.weight"},
                              {&ModelConfig::attention_bias, "enable_bias", "", "blk.0.attn_q.bias"},
                              {&ModelConfig::attention_output_bias, "enable_bias", "", "blk.0.attn_output.bias"},
                              {&ModelConfig::mlp_bias, "enable_bias", "", "blk.0.ffn_up.bias"}},
                 .complete = complete_opt},
       .weights = opt_weights(),
       .forward = opt_forward,
       .head = nn::decoder_head,
       .fusions_per_layer = {{"attn_quant", 1}},
       .check = nn::check_plain_decoder,
       .sample_config = kOptSample});
}
