#include "nn/latent_attention.h"

#include "nn/attention.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "ops/batched_linear.h"
#include "ops/concat.h"
#include "ops/reshape.h"
#include "ops/rms_norm.h"
#include "ops/slice.h"

namespace weft::nn {
namespace {

// The published code normalizes latents with this epsilon, whatever the config states.
constexpr double kLatentEpsilon = 1e-6;

Value latent_norm(Builder& builder, const Value& x, const std::string& name, int layer) {
  return rms_norm(x, norm_weight(builder, name, layer), kLatentEpsilon);
}

Value queries(Builder& builder, const Value& x, int layer) {
  if (!builder.has("attn_q_a", layer)) return linear(builder, x, "attn_q", layer);
  const Value latent = latent_norm(builder, linear(builder, x, "attn_q_a", layer), "attn_q_a_norm", layer);
  return linear(builder, latent, "attn_q_b", layer);
}

// One tensor for the keys and values of all heads is the weight of a linear layer of the latents.
Value weight_of_heads(Builder& builder, const std::string& name, WeightRole role_of_part, int layer) {
  const bool is_part = builder.facts.config.latents->is_joined;
  return builder.weight(name + layer_suffix(layer), {builder.key(name, layer)},
                        is_part ? role_of_part : WeightRole::linear);
}

}  // namespace

Value latent_attention(Builder& builder, DecoderStep& step, const Value& x, int layer) {
  const ModelConfig& c = builder.facts.config;
  const LatentConfig& l = *c.latents;
  const Dim rows = x.dim(0);
  const Value query = reshape(queries(builder, x, layer), {rows, c.head_count, l.plain_dim + l.rotary_dim});
  const Value latent_and_key = linear(builder, x, "attn_kv_a_mqa", layer);
  const Value latent = latent_norm(builder, slice(latent_and_key, -1, 0, l.rank), "attn_kv_a_norm", layer);
  builder.linear_input({builder.key("attn_k_b", layer)}, latent);
  const Value rotary_key = slice(latent_and_key, -1, l.rank, l.rank + l.rotary_dim);

  const Value keys = weight_of_heads(builder, "attn_k_b", WeightRole::latent_keys, layer);
  const Value mapped = batched_linear(slice(query, -1, 0, l.plain_dim), keys);
  const Value rotary_query = slice(query, -1, l.plain_dim, l.plain_dim + l.rotary_dim);
  QueryKeyValue heads;
  heads.query = reshape(concat({rotary_query, mapped}, -1), {rows, c.head_count * c.head_dim});
  heads.key = concat({rotary_key, latent}, -1);
  rotate(builder, step, heads, layer);
  heads.value = heads.key;  // only the sums of latents are used
  const Value sums = slice(attention_of_heads(builder, step, heads, layer), -1, l.rotary_dim, l.rotary_dim + l.rank);

  const Value values = weight_of_heads(builder, "attn_v_b", WeightRole::latent_values, layer);
  const Value found = batched_linear(sums, values);
  return linear(builder, reshape(found, {rows, c.head_count * l.value_dim}), "attn_output", layer);
}

}  // namespace weft::nn
