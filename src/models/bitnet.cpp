// BitNet b1.58: Llama's layers with norms before the last product of each half, and a feed-forward with squared ReLU.
// Its weights have the codes -1, 0 and 1 (io/ternary_weight.h). GGUF files of two programs have two words for two
// generations of the model; the first one has SiLU.

#include "models/llama_layers.h"
#include "nn/attention.h"
#include "nn/feed_forward.h"

namespace weft {
namespace {

constexpr const char* kFirstInGguf = "bitnet";

Values bitnet_forward(Builder& b) {
  nn::DecoderStep step = nn::decoder_step(b);
  const auto attention = [&](const Value& x, int layer) {
    return nn::self_attention_with_output_norm(b, step, x, layer);
  };
  const auto feed_forward = [&](const Value& x, int layer) { return nn::gated_feed_forward_with_norm(b, x, layer); };
  return nn::pre_norm_layers(b, step, nn::embedded_tokens(b, step.ids), attention, feed_forward);
}

nn::WeightTable bitnet_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  nn::add_sub_norms(weights);
  return weights;
}

void complete_bitnet(ModelConfig& c) {
  if (c.format == CheckpointFormat::gguf && c.architecture == kFirstInGguf) c.hidden_act = "silu";
}

constexpr const char* kBitnetDefaults = R"({
  "rms_norm_eps": 1e-5, "max_position_embeddings": 2048, "hidden_act": "relu2", "rope_theta": 500000.0
})";

constexpr const char* kBitnetSample = R"({
  "architectures": ["BitNetForCausalLM"], "model_type": "bitnet", "hidden_act": "relu2", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "tie_word_embeddings": true,
  "vocab_size": 257, "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(bitnet) {
  using namespace weft;
  ModelDefinition model =
      llama_layers("bitnet", {.defaults = kBitnetDefaults, .switches = attention_biases(), .complete = complete_bitnet},
                   kBitnetSample, bitnet_weights());
  model.gguf_architecture = "bitnet-b1.58";
  model.forward = bitnet_forward;
  model.check = nn::check_plain_decoder;
  model.fusions_per_layer = {{"rms_quant", 4}, {"rope_kvcache", 1}};
  models.add(std::move(model));
}
