#pragma once

// Embeddings of the tokens that each layer has of its own, as in Gemma 3n and Gemma 4. A row of one table has those of
// all layers.

#include "nn/builder.h"

namespace weft::nn {

// The input of each layer, [s0, config.layer_input_width], of the tokens' ids and of their embeddings x [s0, d]:
// (norm(projection of x / sqrt(d)) + embedding) / sqrt(2), where the norm is that of each layer's part. Empty if the
// layers have no inputs.
Values layer_inputs(Builder& builder, const Value& ids, const Value& x);

// What a layer's input adds to the residual sum x [s0, d]: norm(projection of (gelu(gate of x) * input)).
Value gated_layer_input(Builder& builder, const Value& x, const Value& input, int layer);

}  // namespace weft::nn
