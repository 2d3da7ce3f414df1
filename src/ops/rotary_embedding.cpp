#include "ops/rotary_embedding.h"

#include "base/error.h"
#include "ir/op.h"
#include "ir/shape_rules.h"
#include "ops/add.h"
#include "ops/cast.h"
#include "ops/concat.h"
#include "ops/index_select.h"
#include "ops/mul.h"
#include "ops/reshape.h"
#include "ops/slice.h"
#include "ops/sub.h"

namespace weft {
namespace {

std::pair<Value, Value> call_rotary(CallSite site, bool inplace, const Operands& tensors, std::int64_t head_size,
                                    std::int64_t rotary_dim, bool is_neox_style) {
  return call(site, "rotary_embedding", tensors,
              {{"head_size", head_size}, {"rotary_dim", rotary_dim}, {"is_neox_style", is_neox_style}}, inplace);
}

// x [s0, heads * head_size]; cos, sin [s0, 1, rotary_dim / 2].
Value rotated(const Value& x, const Value& cos, const Value& sin, std::int64_t head_size, std::int64_t rotary_dim,
              bool neox) {
  const Dim rows = x.dim(0);
  const std::int64_t heads = x.dim(1).number() / head_size, half = rotary_dim / 2;
  const Value by_head = reshape(x, {rows, heads, head_size});
  const Value first = neox ? slice(by_head, -1, 0, half) : slice(by_head, -1, 0, rotary_dim, 2);
  const Value second = neox ? slice(by_head, -1, half, rotary_dim) : slice(by_head, -1, 1, rotary_dim, 2);
  const Value a = sub(mul(first, cos), mul(second, sin));
  const Value b = add(mul(second, cos), mul(first, sin));
  Value turned;
  if (neox) {
    turned = concat({a, b}, -1);
  } else {
    const Shape pairs{rows, heads, half, 1};
    turned = reshape(concat({reshape(a, pairs), reshape(b, pairs)}, -1), {rows, heads, rotary_dim});
  }
  if (rotary_dim < head_size) turned = concat({turned, slice(by_head, -1, rotary_dim, head_size)}, -1);
  return reshape(turned, {rows, x.dim(1)});
}

void check_arguments(const OpRequest& request) {
  const Meta& positions = request.operand(0);
  const Meta& query = request.operand(1);
  const Meta& key = request.operand(2);
  const Meta& table = request.operand(3);
  const std::int64_t head_size = request.attributes.at("head_size").integer();
  const std::int64_t rotary_dim = request.attributes.at("rotary_dim").integer();
  USER_CHECK(positions.rank() == 1 && positions.dtype == DType::i64,
             "[rotary_embedding] positions must be i64[tokens], but is {}", positions.text());
  USER_CHECK(head_size > 0 && rotary_dim > 0 && rotary_dim % 2 == 0 && rotary_dim <= head_size,
             "[rotary_embedding] rotary_dim must be even and at most head_size {}, but is {}", head_size, rotary_dim);
  for (const Meta* meta : {&query, &key})
    USER_CHECK(meta->rank() == 2 && is_floating(meta->dtype) && meta->shape[0] == positions.shape[0] &&
                   meta->shape[1].is_number() && meta->shape[1].number() % head_size == 0 && meta->dtype == query.dtype,
               "[rotary_embedding] {} must be {}[{}, heads * {}], but is {}", meta == &query ? "query" : "key",
               dtype_text(query.dtype), positions.shape[0].text(), head_size, meta->text());
  USER_CHECK(table.rank() == 2 && table.shape[1] == Dim(rotary_dim),
             "[rotary_embedding] cos_sin_cache must be [positions, {}], but is {}", rotary_dim, table.text());
}

}  // namespace

std::pair<Value, Value> rotary_embedding(const Value& positions, const Value& query, const Value& key,
                                         const Value& cos_sin_cache, std::int64_t head_size, std::int64_t rotary_dim,
                                         bool is_neox_style, CallSite site) {
  return call_rotary(site, false, {positions, query, key, cos_sin_cache}, head_size, rotary_dim, is_neox_style);
}

std::pair<Value, Value> rotary_embedding(MaybeInplace, const Value& positions, const Value& query, const Value& key,
                                         const Value& cos_sin_cache, std::int64_t head_size, std::int64_t rotary_dim,
                                         bool is_neox_style, CallSite site) {
  return call_rotary(site, true, {positions, query, key, cos_sin_cache}, head_size, rotary_dim, is_neox_style);
}

}  // namespace weft

OP(rotary_embedding) {
  using Typed = std::pair<Value, Value>(const Value&, const Value&, const Value&, const Value&, std::int64_t,
                                        std::int64_t, bool, CallSite);
  op.schema(
      "rotary_embedding(Tensor positions, Tensor query, Tensor key, Tensor cos_sin_cache, int head_size, int "
      "rotary_dim, "
      "bool is_neox_style=True) -> (Tensor, Tensor)");
  op.function(static_cast<Typed*>(&weft::rotary_embedding));
  op.allow_inplace().donates("query", 0).donates("key", 1).rows_of("query").gathers("cos_sin_cache", "positions");
  op.checks(check_arguments);
  op.means([](Evaluator&, const Values& v, const Attributes& a) {
    const std::int64_t head_size = a.at("head_size").integer(), rotary_dim = a.at("rotary_dim").integer();
    const bool neox = a.at("is_neox_style").boolean();
    const Value selected = index_select(v[3], v[0]);
    const Value rows = selected.dtype() == v[1].dtype() ? selected : cast(selected, v[1].dtype());
    const Shape shape{v[0].dim(0), 1, rotary_dim / 2};
    const Value cos = reshape(slice(rows, -1, 0, rotary_dim / 2), shape);
    const Value sin = reshape(slice(rows, -1, rotary_dim / 2, rotary_dim), shape);
    return Values{rotated(v[1], cos, sin, head_size, rotary_dim, neox),
                  rotated(v[2], cos, sin, head_size, rotary_dim, neox)};
  });
  for (bool neox : {true, false})
    for (std::int64_t rotary_dim : {16, 8})
      op.sample({{"positions", {5}, DType::i64, Fill::indices, 20},
                 {"query", {5, 64}},
                 {"key", {5, 32}},
                 {"cos_sin_cache", {20, rotary_dim}, DType::f32}},
                {{"head_size", 16}, {"rotary_dim", rotary_dim}, {"is_neox_style", neox}});
}
