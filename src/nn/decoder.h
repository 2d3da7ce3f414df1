#pragma once

// What decoders share: a step's inputs, layers of attention and feed-forward that each take the normalized sum of all
// before them, the head, and the names and shapes of the weights. The residual sum travels beside the hidden state, as
// vLLM writes it.

#include <functional>
#include <vector>

#include "nn/builder.h"
#include "nn/model_weight.h"

namespace weft::nn {

// The inputs of a model's forward graph.
struct DecoderStep {
  Value ids;        // i64[s0]
  Value positions;  // i64[s0]
  Value slots;      // i64[s0]
  Value batch;
  Values pages;  // each layer's KV pages, given away; the updated ones once the layer has run
  Value rotary;  // f32[positions, rotary_dim]
};
DecoderStep decoder_step(Builder& builder);

// [s0, d], in the dtype of the residual stream.
Value embedded_tokens(Builder& builder, const Value& ids);

// The weight of a normalization by its name in the model's table.
Value norm_weight(Builder& builder, const std::string& name, int layer = -1);

// One of the two halves of a layer: x [s0, d] is normalized; gives what is added to the residual sum.
using LayerHalf = std::function<Value(const Value& x, int layer)>;

// All layers and the last norm over x [s0, d]: the results of a model's forward graph.
Values pre_norm_layers(Builder& builder, DecoderStep& step, Value x, const LayerHalf& attention,
                       const LayerHalf& feed_forward);

// A model's head graph: logits of some rows, by a weight of its own or the embedding's.
Values decoder_head(Builder& builder);

// The weights of a decoder without biases whose feed-forward is gated, as Llama's checkpoints have them.
std::vector<ModelWeight> decoder_weights();

// UserError when the config asks for biases or a mixture of experts.
void check_decoder(const ModelConfig& config);

}  // namespace weft::nn
