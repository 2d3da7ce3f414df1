#include "ops/fused_rope_kv_cache_update.h"

#include "ir/op.h"
#include "ops/rope_kv_cache.h"
#include "ops/rotary_embedding.h"

namespace weft {
namespace {

std::pair<Value, Value> call_rope_update(CallSite site, bool inplace, const Operands& tensors, std::int64_t head_size,
                                         std::int64_t rotary_dim, bool is_neox_style) {
  return call(site, "fused_rope_kv_cache_update", tensors,
              {{"head_size", head_size}, {"rotary_dim", rotary_dim}, {"is_neox_style", is_neox_style}}, inplace);
}

}  // namespace

std::pair<Value, Value> fused_rope_kv_cache_update(const Value& positions, const Value& query, const Value& key,
                                                   const Value& value, const Value& cos_sin_cache, const Value& kv,
                                                   const Value& slots, std::int64_t head_size, std::int64_t rotary_dim,
                                                   bool is_neox_style, CallSite site) {
  return call_rope_update(site, false, {positions, query, key, value, cos_sin_cache, kv, slots}, head_size, rotary_dim,
                          is_neox_style);
}

std::pair<Value, Value> fused_rope_kv_cache_update(MaybeInplace, const Value& positions, const Value& query,
                                                   const Value& key, const Value& value, const Value& cos_sin_cache,
                                                   const Value& kv, const Value& slots, std::int64_t head_size,
                                                   std::int64_t rotary_dim, bool is_neox_style, CallSite site) {
  return call_rope_update(site, true, {positions, query, key, value, cos_sin_cache, kv, slots}, head_size, rotary_dim,
                          is_neox_style);
}

}  // namespace weft

OP(fused_rope_kv_cache_update) {
  using Typed = std::pair<Value, Value>(const Value&, const Value&, const Value&, const Value&, const Value&,
                                        const Value&, const Value&, std::int64_t, std::int64_t, bool, CallSite);
  op.schema(
        "fused_rope_kv_cache_update(Tensor positions, Tensor query, Tensor key, Tensor value, Tensor cos_sin_cache, "
        "Tensor kv, Tensor slots, int head_size, int rotary_dim, bool is_neox_style=True) -> (Tensor, Tensor)")
      .function(static_cast<Typed*>(&weft::fused_rope_kv_cache_update));
  op.rows_of("query").allow_inplace().donates("kv", 1).splits_as("kv_cache_update");
  op.gathers("cos_sin_cache", "positions");
  op.means([](Evaluator&, const Values& v, const Attributes& a) {
    const std::int64_t head_size = a.at("head_size").integer();
    const auto [query, key] = rotary_embedding(v[0], v[1], v[2], v[4], head_size, a.at("rotary_dim").integer(),
                                               a.at("is_neox_style").boolean());
    return Values{query, pages_with(key, v[3], v[5], v[6], head_size)};
  });
  for (const bool neox : {true, false})
    for (const RopeUpdateSample& sample : rope_update_samples())
      op.sample(tensors_of(sample), {{"head_size", 16}, {"rotary_dim", sample.rotary_dim}, {"is_neox_style", neox}});
}
