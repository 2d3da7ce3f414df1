#include "nn/recurrent_parts.h"

#include <utility>

#include "ops/causal_conv1d.h"
#include "ops/reshape.h"

namespace weft::nn {

Value convolved(Builder& builder, DecoderStep& step, const Value& x, const std::string& name, int layer) {
  const std::string suffix = layer_suffix(layer), bias = name + ".bias";
  const Value taps = builder.weight(name + suffix, {builder.key(name, layer)}, WeightRole::taps);
  const Value added =
      builder.has(bias, layer) ? builder.weight(bias + suffix, {builder.key(bias, layer)}, WeightRole::exact) : Value();
  Value& states = step.pages_of("convolution", layer);
  auto [y, updated] = causal_conv1d(maybe_inplace, x, taps, added, states, step.batch, step.slots);
  states = std::move(updated);
  return y;
}

Value vector_of(Builder& builder, const std::string& name, int layer) {
  return builder.weight(name + layer_suffix(layer), {builder.key(name, layer)}, builder.vector_role(name));
}

Value by_heads(const Value& x, std::int64_t heads, std::int64_t width) { return reshape(x, {x.dim(0), heads, width}); }

std::vector<std::int64_t> shape_of_taps(const ModelConfig& config) {
  std::vector<std::int64_t> extents{config.convolution_channels(), 1, config.recurrent->convolution_width};
  if (config.format == CheckpointFormat::gguf) extents.erase(extents.begin() + 1);
  return extents;
}

bool has_recurrent_kind(const ModelConfig& config, int layer, RecurrentKind kind) {
  return config.recurs(layer) && config.recurrent->kind == kind;
}

}  // namespace weft::nn
