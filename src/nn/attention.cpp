#include "nn/attention.h"

#include <cmath>
#include <tuple>

#include "nn/linear.h"
#include "ops/attention.h"
#include "ops/kv_cache_update.h"
#include "ops/reshape.h"
#include "ops/rotary_embedding.h"
#include "ops/slice.h"

namespace weft::nn {

QueryKeyValue query_key_value(Builder& builder, const Value& x, int layer) {
  const ModelConfig& c = builder.facts.config;
  const std::int64_t query_width = c.head_count * c.head_dim, kv_width = c.kv_head_count * c.head_dim;
  const Value qkv =
      merged_linear(builder, x, "qkv." + std::to_string(layer),
                    {builder.key("attn_q", layer), builder.key("attn_k", layer), builder.key("attn_v", layer)});
  QueryKeyValue heads;
  heads.query = slice(qkv, -1, 0, query_width);
  heads.key = slice(qkv, -1, query_width, query_width + kv_width);
  heads.value = slice(qkv, -1, query_width + kv_width, query_width + 2 * kv_width);
  return heads;
}

Value attend(Builder& builder, DecoderStep& step, QueryKeyValue heads, int layer) {
  const ModelConfig& c = builder.facts.config;
  auto& [query, key, value] = heads;
  const Dim rows = query.dim(0);
  std::tie(query, key) = rotary_embedding(maybe_inplace, step.positions, query, key, step.rotary, c.head_dim,
                                          c.rope.rotary_dim, c.rope.pairing == RotaryPairing::halves);
  const Shape kv_shape{rows, c.kv_head_count, c.head_dim};
  Value& pages = step.pages[static_cast<std::size_t>(layer)];
  pages = kv_cache_update(maybe_inplace, reshape(key, kv_shape), reshape(value, kv_shape), pages, step.slots);
  const double scale = 1.0 / std::sqrt(static_cast<double>(c.head_dim));
  const Value found =
      attention(reshape(query, {rows, c.head_count, c.head_dim}), pages, step.batch, scale, c.window_of(layer));
  return linear(builder, reshape(found, {rows, c.head_count * c.head_dim}), "attn_output." + std::to_string(layer),
                {builder.key("attn_output", layer)});
}

}  // namespace weft::nn
