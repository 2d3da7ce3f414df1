#include "ops/fused_qk_norm_rope.h"

#include "base/error.h"
#include "ir/op.h"
#include "ir/shape_rules.h"
#include "ops/reshape.h"
#include "ops/rotary_embedding.h"

namespace weft {
namespace {

Value normalized_heads(const Value& x, const Value& weight, std::int64_t head_size, const Attribute& epsilon) {
  const Value heads = reshape(x, {x.dim(0), x.dim(1).number() / head_size, head_size});
  return reshape(call("rms_norm", {heads, weight}, {{"epsilon", epsilon}})[0], x.meta().shape);
}

}  // namespace

std::pair<Value, Value> fused_qk_norm_rope(const Value& positions, const Value& query, const Value& key,
                                           const Value& query_weight, const Value& key_weight,
                                           const Value& cos_sin_cache, Scalar epsilon, std::int64_t head_size,
                                           std::int64_t rotary_dim, bool is_neox_style, CallSite site) {
  return call(site, "fused_qk_norm_rope", {positions, query, key, query_weight, key_weight, cos_sin_cache},
              {{"epsilon", epsilon.value},
               {"head_size", head_size},
               {"rotary_dim", rotary_dim},
               {"is_neox_style", is_neox_style}});
}

}  // namespace weft

OP(fused_qk_norm_rope) {
  op.schema(
        "fused_qk_norm_rope(Tensor positions, Tensor query, Tensor key, Tensor? query_weight, Tensor? key_weight, "
        "Tensor cos_sin_cache, float epsilon, int head_size, int rotary_dim, bool is_neox_style=True) -> (Tensor, "
        "Tensor)")
      .function(&weft::fused_qk_norm_rope);
  op.rows_of("query").gathers("cos_sin_cache", "positions");
  op.checks([](const OpRequest& request) {
    const std::int64_t head_size = request.attributes.at("head_size").integer();
    for (const std::size_t at : {1, 2}) {
      const Meta& x = request.operand(at);
      require_floating(x, "fused_qk_norm_rope", at == 1 ? "query" : "key");
      USER_CHECK(x.rank() == 2 && x.shape[1].is_number() && head_size > 0 && x.shape[1].number() % head_size == 0,
                 "[fused_qk_norm_rope] {} must be [tokens, heads * {}], but is {}", at == 1 ? "query" : "key",
                 head_size, x.text());
    }
  });
  op.means([](Evaluator&, const Values& v, const Attributes& a) {
    const std::int64_t head_size = a.at("head_size").integer();
    const auto [query, key] =
        rotary_embedding(v[0], normalized_heads(v[1], v[3], head_size, a.at("epsilon")),
                         normalized_heads(v[2], v[4], head_size, a.at("epsilon")), v[5], head_size,
                         a.at("rotary_dim").integer(), a.at("is_neox_style").boolean());
    return Values{query, key};
  });
  for (bool neox : {true, false})
    for (bool weighted : {true, false}) {
      std::vector<SampleTensor> tensors = {{"positions", {5}, DType::i64, Fill::indices, 20},
                                           {"query", {5, 64}},
                                           {"key", {5, 32}},
                                           {"cos_sin_cache", {20, 8}, DType::f32}};
      if (weighted) tensors.insert(tensors.end(), {{"query_weight", {16}}, {"key_weight", {16}}});
      op.sample(std::move(tensors), {{"epsilon", 1e-6}, {"head_size", 16}, {"rotary_dim", 8}, {"is_neox_style", neox}});
    }
  for (const std::int64_t head_size : {64, 96})
    op.sample({{"positions", {5}, DType::i64, Fill::indices, 20},
               {"query", {5, 3 * head_size}},
               {"key", {5, 2 * head_size}},
               {"cos_sin_cache", {20, head_size}, DType::f32},
               {"query_weight", {head_size}},
               {"key_weight", {head_size}}},
              {{"epsilon", 1e-6}, {"head_size", head_size}, {"rotary_dim", head_size}, {"is_neox_style", true}});
  op.tolerance(DType::f16, {.absolute = 1e-2, .relative = 2e-3});
}
