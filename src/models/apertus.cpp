// Apertus: Llama's layers with norms of the heads of queries and keys, and a feed-forward without a gate, whose
// activation xIELU has two parameters in each layer. GGUF files have these as metadata.

#include "base/error.h"
#include "base/text.h"
#include "models/llama_layers.h"
#include "nn/attention.h"
#include "nn/in_dtype.h"
#include "nn/linear.h"
#include "ops/constant.h"
#include "ops/xielu.h"

namespace weft {
namespace {

constexpr const char* kXielu = "xielu";

Value apertus_feed_forward(Builder& b, const Value& x, int layer) {
  const ModelConfig& c = b.facts.config;
  const Value up = nn::linear(b, x, "ffn_up", layer);
  const auto parameter = [&](const std::string& name, const std::vector<double>& of_layers) {
    if (b.has(name, layer)) return b.weight(name + layer_suffix(layer), {b.key(name, layer)}, WeightRole::exact);
    return constant(x.home(), {of_layers[static_cast<std::size_t>(layer)]}, Shape{1});
  };
  const Value activated =
      xielu(up, parameter("ffn_alpha_p", c.xielu_alpha_p), parameter("ffn_alpha_n", c.xielu_alpha_n));
  return nn::linear(b, nn::in_dtype(activated, x.dtype()), "ffn_down", layer);
}

Values apertus_forward(Builder& b) {
  nn::DecoderStep step = nn::decoder_step(b);
  const auto attention = [&](const Value& x, int layer) {
    return nn::self_attention_with_head_norms(b, step, x, layer);
  };
  const auto feed_forward = [&](const Value& x, int layer) { return apertus_feed_forward(b, x, layer); };
  return nn::pre_norm_layers(b, step, nn::embedded_tokens(b, step.ids), attention, feed_forward);
}

std::vector<std::int64_t> alpha_in_folders(const ModelConfig& c, int) {
  return c.format == CheckpointFormat::hugging_face ? std::vector<std::int64_t>{1} : std::vector<std::int64_t>();
}

nn::WeightTable apertus_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  nn::erase(weights, {"ffn_gate"});
  nn::add_head_norms(weights);
  nn::rename(weights, {{"attn_norm", "", "model.layers.{}.attention_layernorm"},
                       {"ffn_norm", "", "model.layers.{}.feedforward_layernorm"}});
  for (const std::string name : {"alpha_p", "alpha_n"})
    weights.push_back(
        {"ffn_" + name, "blk.{}.xielu." + name + ".weight", "model.layers.{}.mlp.act_fn." + name, alpha_in_folders});
  return weights;
}

void check_apertus(const ModelConfig& c) {
  nn::check_decoder(c);
  USER_CHECK(c.hidden_act == kXielu, "[{}] {} must be {}, but is {}", c.architecture, c.activation_key, kXielu,
             quote(c.hidden_act));
  const auto layers = static_cast<std::size_t>(c.layer_count);
  USER_CHECK(c.format == CheckpointFormat::hugging_face ||
                 (c.xielu_alpha_p.size() == layers && c.xielu_alpha_n.size() == layers),
             "[{}] wanted the metadata xielu.alpha_p and xielu.alpha_n, but there are not both", c.architecture);
}

constexpr const char* kApertusDefaults = R"({
  "rms_norm_eps": 1e-5, "max_position_embeddings": 65536, "hidden_act": "xielu",
  "rope_parameters": {"rope_type": "llama3", "rope_theta": 12000000.0, "factor": 8.0, "low_freq_factor": 1.0,
                      "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
})";

constexpr const char* kApertusSample = R"({
  "architectures": ["ApertusForCausalLM"], "model_type": "apertus", "hidden_act": "xielu", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_parameters": {"rope_type": "default",
  "rope_theta": 10000.0}, "tie_word_embeddings": false, "vocab_size": 257, "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(apertus) {
  using namespace weft;
  ModelDefinition model = llama_layers("apertus",
                                       {.defaults = kApertusDefaults,
                                        .layer_numbers = {{&ModelConfig::xielu_alpha_p, "xielu.alpha_p"},
                                                          {&ModelConfig::xielu_alpha_n, "xielu.alpha_n"}},
                                        .switches = attention_biases(),
                                        .keys = {"xielu.beta", "xielu.eps"},
                                        .always = {"qk_norm"}},
                                       kApertusSample, apertus_weights());
  model.forward = apertus_forward;
  model.fusions_per_layer = {{"rms_quant", 2}, {"attn_quant", 1}, {"qk_norm_rope_kvcache", 1}};
  model.check = check_apertus;
  models.add(std::move(model));
}
