#include "nn/layer_input.h"

#include <cmath>
#include <numbers>

#include "nn/decoder.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "ops/add.h"
#include "ops/embedding.h"
#include "ops/gelu_tanh.h"
#include "ops/mul.h"
#include "ops/mul_scalar.h"
#include "ops/reshape.h"
#include "ops/slice.h"

namespace weft::nn {

// The table is often larger than the rest of the model. Its rows are read as they are stored, so that the file need not
// be copied.
Values layer_inputs(Builder& builder, const Value& ids, const Value& x) {
  const ModelConfig& c = builder.facts.config;
  if (c.layer_input_width == 0) return {};
  const Value table = builder.weight("layer_input_embd", {builder.key("layer_input_embd")}, WeightRole::codes);
  const Value embedded = times_root(builder, embedding(ids, table, builder.facts.dtype), c.layer_input_width);
  const Value projected =
      mul_scalar(linear(builder, x, "layer_input_proj"), 1 / std::sqrt(static_cast<double>(c.hidden_size)));
  const Value by_layer = reshape(projected, {x.dim(0), c.layer_count, c.layer_input_width});
  const Value normalized = reshape(norm(builder, by_layer, "layer_input_norm"), {x.dim(0), projected.dim(1)});
  const Value all = mul_scalar(add(normalized, embedded), 1 / std::numbers::sqrt2);
  // The parts are cut here and not in the layers, whose graphs are then equal and are compiled once.
  Values inputs;
  for (std::int64_t layer = 0; layer < c.layer_count; ++layer)
    inputs.push_back(slice(all, -1, layer * c.layer_input_width, (layer + 1) * c.layer_input_width));
  return inputs;
}

Value gated_layer_input(Builder& builder, const Value& x, const Value& input, int layer) {
  const Value gated = mul(gelu_tanh(linear(builder, x, "inp_gate", layer)), input);
  return norm(builder, linear(builder, gated, "inp_proj", layer), "post_norm", layer);
}

}  // namespace weft::nn
