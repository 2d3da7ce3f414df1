#include "nn/norm.h"

#include "ops/layer_norm.h"
#include "ops/reshape.h"
#include "ops/rms_norm.h"

namespace weft::nn {

Value norm_weight(Builder& builder, const std::string& name, int layer) {
  return builder.weight(name + layer_suffix(layer), {builder.key(name, layer)}, builder.vector_role(name));
}

Value norm(Builder& builder, const Value& x, const std::string& name, int layer) {
  const ModelConfig& c = builder.facts.config;
  const Value weight = norm_weight(builder, name, layer);
  if (c.norm == NormKind::rms) return rms_norm(x, weight, c.norm_eps);
  const Value bias = builder.has(name + ".bias", layer) ? norm_weight(builder, name + ".bias", layer) : Value();
  return layer_norm(x, weight, bias, c.norm_eps);
}

Value norm_heads(Builder& builder, const Value& x, const std::string& name, int layer) {
  const Dim rows = x.dim(0);
  const std::int64_t width = x.dim(1).number(), head_dim = builder.facts.config.head_dim;
  return reshape(norm(builder, reshape(x, {rows, width / head_dim, head_dim}), name, layer), {rows, width});
}

}  // namespace weft::nn
