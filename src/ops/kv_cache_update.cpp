#include "ops/kv_cache_update.h"

#include "base/error.h"
#include "ir/op.h"
#include "ir/shape_rules.h"

namespace weft {

Value kv_cache_update(const Value& key, const Value& value, const Value& kv, const Value& slots, CallSite site) {
  return call(site, "kv_cache_update", {key, value, kv, slots}, {})[0];
}

Value kv_cache_update(MaybeInplace, const Value& key, const Value& value, const Value& kv, const Value& slots,
                      CallSite site) {
  return call(site, "kv_cache_update", {key, value, kv, slots}, {}, true)[0];
}

namespace {

constexpr std::size_t kKey = 0, kValue = 1, kKv = 2;

void check_value(const OpRequest& request, const Shape& shape) {
  const Meta& key = request.operand(kKey);
  const Meta& kv = request.operand(kKv);
  if (kv.kv.keys_are_values) {
    USER_CHECK(!request.has(kValue), "[kv_cache_update] value must be none to match {}, but is {}", kv.text(),
               request.operand(kValue).text());
    return;
  }
  USER_CHECK(request.has(kValue), "[kv_cache_update] value must be {}{} to match {}, but is none",
             dtype_text(key.dtype), shape_text(shape), kv.text());
  const Meta& value = request.operand(kValue);
  USER_CHECK(value.is_tensor() && value.dtype == key.dtype && value.shape == shape,
             "[kv_cache_update] value must be {}{} to match {}, but is {}", dtype_text(key.dtype), shape_text(shape),
             kv.text(), value.text());
}

}  // namespace
}  // namespace weft

OP(kv_cache_update) {
  using Typed = Value(const Value&, const Value&, const Value&, const Value&, CallSite);
  op.schema("kv_cache_update(Tensor key, Tensor? value, Tensor kv, Tensor slots) -> Tensor")
      .function(static_cast<Typed*>(&weft::kv_cache_update));
  op.gives([](const OpRequest& request) {
    const Meta& key = request.operand(0);
    const Meta& kv = request.operand(2);
    const Meta& slots = request.operand(3);
    USER_CHECK(kv.kind == MetaKind::kv, "[kv_cache_update] kv must be KV pages, but is {}", kv.text());
    USER_CHECK(slots.rank() == 1 && slots.dtype == DType::i64, "[kv_cache_update] slots must be i64[tokens], but is {}",
               slots.text());
    const Shape shape{slots.shape[0], kv.kv.heads, kv.kv.head_dim};
    require_floating(key, "kv_cache_update", "key");
    USER_CHECK(key.shape == shape, "[kv_cache_update] key must be {} to match {}, but is {}", shape_text(shape),
               kv.text(), key.text());
    check_value(request, shape);
    return std::vector<Meta>{kv};
  });
  op.allow_inplace().donates("kv", 0);
  op.exact();
  for (DType pages : {DType::f32, DType::f16})
    for (int block : {1, 16})
      op.sample({{"key", {5, 2, 16}},
                 {"value", {5, 2, 16}},
                 SampleTensor::pages("kv", {.dtype = pages, .block = block, .heads = 2, .head_dim = 16}, 64 / block),
                 {"slots", {5}, DType::i64, Fill::indices}});
  for (DType codes : {DType::f8e4m3, DType::q8_0})
    op.sample({{"key", {5, 2, 64}},
               {"value", {5, 2, 64}},
               SampleTensor::pages("kv", {.dtype = codes, .block = 16, .heads = 2, .head_dim = 64}, 4),
               {"slots", {5}, DType::i64, Fill::indices}});
  for (DType pages : {DType::f32, DType::bf16, DType::f8e4m3, DType::q8_0}) {
    const KvLayout layout{.dtype = pages, .block = 16, .heads = 1, .head_dim = 96, .keys_are_values = true};
    op.sample({{"key", {5, 1, 96}}, SampleTensor::pages("kv", layout, 4), {"slots", {5}, DType::i64, Fill::indices}});
  }
}
