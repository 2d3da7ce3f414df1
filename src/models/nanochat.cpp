// nanochat: Llama's layers with norms that have no weights, also of the embeddings and of the heads of queries and
// keys, a feed-forward without a gate, and a bound of the logits. Heads are rotated in the other direction.

#include "models/llama_layers.h"
#include "nn/attention.h"
#include "nn/feed_forward.h"
#include "nn/norm.h"

namespace weft {
namespace {

// Heads are normalized before they are rotated, which changes no length; the publisher's program rotates first.
Value nanochat_attention(Builder& b, nn::DecoderStep& step, const Value& x, int layer) {
  nn::QueryKeyValue heads = nn::query_key_value(b, x, layer);
  heads.query = nn::norm_heads(b, heads.query, layer);
  heads.key = nn::norm_heads(b, heads.key, layer);
  return nn::attend(b, step, std::move(heads), layer);
}

Values nanochat_forward(Builder& b) {
  nn::DecoderStep step = nn::decoder_step(b);
  const auto attention = [&](const Value& x, int layer) { return nanochat_attention(b, step, x, layer); };
  const auto feed_forward = [&](const Value& x, int layer) { return nn::plain_feed_forward(b, x, layer); };
  const Value x = nn::norm(b, nn::embedded_tokens(b, step.ids), "output_norm", -1);
  return nn::pre_norm_layers(b, step, x, attention, feed_forward);
}

nn::WeightTable nanochat_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  nn::erase(weights, {"ffn_gate"});
  nn::erase_norms(weights);
  nn::rename(weights, {{"ffn_up", "", "model.layers.{}.mlp.fc1"}, {"ffn_down", "", "model.layers.{}.mlp.fc2"}});
  return weights;
}

constexpr const char* kNanochatDefaults = R"({
  "rms_norm_eps": 1e-6, "max_position_embeddings": 2048, "hidden_act": "relu2", "final_logit_softcapping": 15.0
})";

constexpr const char* kNanochatSample = R"({
  "architectures": ["NanoChatForCausalLM"], "model_type": "nanochat", "hidden_act": "relu2", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "max_position_embeddings": 128, "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "final_logit_softcapping": 3.0,
  "tie_word_embeddings": false, "vocab_size": 257, "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(nanochat) {
  using namespace weft;
  ModelDefinition model =
      llama_layers("nanochat",
                   {.defaults = kNanochatDefaults,
                    .rotary = {.is_reversed = true},
                    .numbers = {{&ModelConfig::logit_softcap, "final_logit_softcapping", "final_logit_softcapping"}},
                    .switches = attention_biases()},
                   kNanochatSample, nanochat_weights());
  model.forward = nanochat_forward;
  model.fusions_per_layer = {{"attn_quant", 1}, {"rope_kvcache", 1}};
  model.check = nn::check_plain_decoder;
  models.add(std::move(model));
}
