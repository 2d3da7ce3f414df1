#pragma once

// The norms of a model. Their kind and epsilon are the config's, their weights are found by name in the model's table.

#include "nn/builder.h"

namespace weft::nn {

// The weight of a norm.
Value norm_weight(Builder& builder, const std::string& name, int layer = -1);

// Normalizes the last dim of x. Some models have norms without weights.
Value norm(Builder& builder, const Value& x, const std::string& name, int layer = -1);

// Normalizes each head by itself: x [s0, heads * head_dim] -> the same shape. All heads share one weight [head_dim].
Value norm_heads(Builder& builder, const Value& x, const std::string& name, int layer);
// The same with the root mean square and without a weight.
Value norm_heads(Builder& builder, const Value& x, int layer);

}  // namespace weft::nn
