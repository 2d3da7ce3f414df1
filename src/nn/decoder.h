#pragma once

// The parts that decoders share: the inputs of a step, the layers, the head, and the names and shapes of the weights.
// Attention and feed-forward each take the normalized residual sum: the embeddings plus all outputs added before. The
// residual sum is a separate value next to the hidden state, as in vLLM.

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
  Values pages;  // the donated KV pages of each layer; the updated pages after the layer
  Value rotary;  // f32[positions, rotary_dim]
};
DecoderStep decoder_step(Builder& builder);

// The embeddings of the tokens: [s0, d], in the dtype of the residual stream.
Value embedded_tokens(Builder& builder, const Value& ids);

// The weight of a normalization, found by its name in the model's table.
Value norm_weight(Builder& builder, const std::string& name, int layer = -1);

// One of the two halves of a layer: takes the normalized x [s0, d] and returns the value to add to the residual sum.
using LayerHalf = std::function<Value(const Value& x, int layer)>;

// Applies all layers and the last norm to x [s0, d], and returns the results of a model's forward graph.
Values pre_norm_layers(Builder& builder, DecoderStep& step, Value x, const LayerHalf& attention,
                       const LayerHalf& feed_forward);

// A model's head graph: the logits of selected rows. It uses a separate head weight, or the embedding's weight.
Values decoder_head(Builder& builder);

// The weights of a decoder with a gated feed-forward and no biases, as in Llama's checkpoints.
std::vector<ModelWeight> decoder_weights();

// UserError when the config asks for biases or a mixture of experts.
void check_decoder(const ModelConfig& config);

}  // namespace weft::nn
