#include "ops/fused_qk_norm_rope_kv_cache_update.h"

#include "ir/op.h"
#include "ops/fused_qk_norm_rope.h"
#include "ops/rope_kv_cache.h"

namespace weft {
namespace {

std::pair<Value, Value> call_norm_rope_update(CallSite site, bool inplace, const Operands& tensors, Scalar epsilon,
                                              std::int64_t head_size, std::int64_t rotary_dim, bool is_neox_style) {
  return call(site, "fused_qk_norm_rope_kv_cache_update", tensors,
              {{"epsilon", epsilon.value},
               {"head_size", head_size},
               {"rotary_dim", rotary_dim},
               {"is_neox_style", is_neox_style}},
              inplace);
}

}  // namespace

std::pair<Value, Value> fused_qk_norm_rope_kv_cache_update(const Value& positions, const Value& query, const Value& key,
                                                           const Value& value, const Value& query_weight,
                                                           const Value& key_weight, const Value& cos_sin_cache,
                                                           const Value& kv, const Value& slots, Scalar epsilon,
                                                           std::int64_t head_size, std::int64_t rotary_dim,
                                                           bool is_neox_style, CallSite site) {
  return call_norm_rope_update(site, false,
                               {positions, query, key, value, query_weight, key_weight, cos_sin_cache, kv, slots},
                               epsilon, head_size, rotary_dim, is_neox_style);
}

std::pair<Value, Value> fused_qk_norm_rope_kv_cache_update(MaybeInplace, const Value& positions, const Value& query,
                                                           const Value& key, const Value& value,
                                                           const Value& query_weight, const Value& key_weight,
                                                           const Value& cos_sin_cache, const Value& kv,
                                                           const Value& slots, Scalar epsilon, std::int64_t head_size,
                                                           std::int64_t rotary_dim, bool is_neox_style, CallSite site) {
  return call_norm_rope_update(site, true,
                               {positions, query, key, value, query_weight, key_weight, cos_sin_cache, kv, slots},
                               epsilon, head_size, rotary_dim, is_neox_style);
}

}  // namespace weft

OP(fused_qk_norm_rope_kv_cache_update) {
  using Typed = std::pair<Value, Value>(const Value&, const Value&, const Value&, const Value&, const Value&,
                                        const Value&, const Value&, const Value&, const Value&, Scalar, std::int64_t,
                                        std::int64_t, bool, CallSite);
  op.schema(
        "fused_qk_norm_rope_kv_cache_update(Tensor positions, Tensor query, Tensor key, Tensor value, Tensor? "
        "query_weight, Tensor? key_weight, Tensor cos_sin_cache, Tensor kv, Tensor slots, float epsilon, int "
        "head_size, int rotary_dim, bool is_neox_style=True) -> (Tensor, Tensor)")
      .function(static_cast<Typed*>(&weft::fused_qk_norm_rope_kv_cache_update));
  op.rows_of("query").allow_inplace().donates("kv", 1).splits_as("kv_cache_update");
  op.gathers("cos_sin_cache", "positions");
  op.means([](Evaluator&, const Values& v, const Attributes& a) {
    const std::int64_t head_size = a.at("head_size").integer();
    const auto [query, key] = fused_qk_norm_rope(v[0], v[1], v[2], v[4], v[5], v[6], Scalar(a.at("epsilon")), head_size,
                                                 a.at("rotary_dim").integer(), a.at("is_neox_style").boolean());
    return Values{query, pages_with(key, v[3], v[7], v[8], head_size)};
  });
  for (const bool neox : {true, false})
    for (const bool weighted : {true, false})
      for (const RopeUpdateSample& sample : rope_update_samples()) {
        std::vector<SampleTensor> tensors = tensors_of(sample);
        if (weighted) tensors.insert(tensors.end(), {{"query_weight", {16}}, {"key_weight", {16}}});
        op.sample(std::move(tensors),
                  {{"epsilon", 1e-6}, {"head_size", 16}, {"rotary_dim", sample.rotary_dim}, {"is_neox_style", neox}});
      }
  op.tolerance(DType::f16, {.absolute = 1e-2, .relative = 2e-3});
}
