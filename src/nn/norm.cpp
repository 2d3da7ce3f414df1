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
  const Value weight = builder.has(name, layer) ? norm_weight(builder, name, layer) : Value();
  if (c.norm == NormKind::rms) return rms_norm(x, weight, c.norm_eps);
  const Value bias = builder.has(name + ".bias", layer) ? norm_weight(builder, name + ".bias", layer) : Value();
  return layer_norm(x, weight, bias, c.norm_eps);
}

namespace {

// x [s0, heads * head_dim] with each head as a row.
Value by_head(Builder& builder, const Value& x, int layer) {
  const std::int64_t width = x.dim(1).number(), head_dim = builder.facts.config.head_dim_of(layer);
  return reshape(x, {x.dim(0), width / head_dim, head_dim});
}

}  // namespace

Value norm_heads(Builder& builder, const Value& x, const std::string& name, int layer) {
  return reshape(norm(builder, by_head(builder, x, layer), name, layer), {x.dim(0), x.dim(1)});
}

Value norm_heads(Builder& builder, const Value& x, int layer) {
  return reshape(rms_norm(by_head(builder, x, layer), {}, builder.facts.config.norm_eps), {x.dim(0), x.dim(1)});
}

}  // namespace weft::nn
