#include "nn/llama.h"

#include "nn/attention.h"
#include "nn/decoder.h"
#include "nn/feed_forward.h"

namespace weft::nn {

Values llama_forward(Builder& builder) {
  DecoderStep step = decoder_step(builder);
  const auto attention = [&](const Value& x, int layer) { return self_attention(builder, step, x, layer); };
  const auto feed_forward = [&](const Value& x, int layer) { return gated_feed_forward(builder, x, layer); };
  return pre_norm_layers(builder, step, embedded_tokens(builder, step.ids), attention, feed_forward);
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
