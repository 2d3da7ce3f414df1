#include "nn/llama.h"

#include "nn/attention.h"
#include "nn/decoder.h"
#include "nn/feed_forward.h"

namespace weft::nn {

Values llama_forward_with(Builder& builder, LayerAttention attention_of_layer) {
  DecoderStep step = decoder_step(builder);
  const auto attention = [&](const Value& x, int layer) { return attention_of_layer(builder, step, x, layer); };
  const auto feed_forward = [&](const Value& x, int layer) { return gated_feed_forward(builder, x, layer); };
  return pre_norm_layers(builder, step, embedded_tokens(builder, step.ids), attention, feed_forward);
}

Values llama_forward(Builder& builder) { return llama_forward_with(builder, self_attention); }

Values llama_forward_with_head_norms(Builder& builder) {
  return llama_forward_with(builder,
                            builder.facts.config.has_head_norms ? self_attention_with_head_norms : self_attention);
}

void check_gated_decoder(const ModelConfig& config) {
  check_decoder(config);
  check_gated_activation(config);
}

void check_plain_decoder(const ModelConfig& config) {
  check_decoder(config);
  check_plain_activation(config);
}

}  // namespace weft::nn
