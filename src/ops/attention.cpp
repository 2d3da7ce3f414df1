#include "ops/attention.h"

#include "base/error.h"
#include "ir/op.h"
#include "ir/shape_rules.h"

namespace weft {

Value attention(const Value& query, const Value& kv, const Value& batch, Scalar scale,
                std::optional<std::int64_t> window, CallSite site) {
  return call(site, "attention", {query, kv, batch}, {{"scale", scale.value}, {"window", window}})[0];
}

void check_attention_window(const Attributes& attributes, const char* op) {
  const Attribute& window = attributes.at("window");
  USER_CHECK(window.is_none() || (window.dim().is_number() && window.integer() >= 1),
             "[{}] window must be 1 or more tokens, a row's own among them, or none, but is {}", op, window.text());
}

}  // namespace weft

OP(attention) {
  op.schema("attention(Tensor query, Tensor kv, Tensor batch, float scale, int? window=None) -> Tensor")
      .function(&weft::attention);
  op.gives([](const OpRequest& request) {
    const Meta& query = request.operand(0);
    const Meta& kv = request.operand(1);
    const Meta& batch = request.operand(2);
    require_floating(query, "attention", "query");
    USER_CHECK(kv.kind == MetaKind::kv, "[attention] kv must be KV pages, but is {}", kv.text());
    USER_CHECK(batch.kind == MetaKind::batch, "[attention] batch must be a batch, but is {}", batch.text());
    USER_CHECK(query.rank() == 3 && query.shape[1].is_number() && query.shape[2] == Dim(kv.kv.head_dim) &&
                   query.shape[1].number() % kv.kv.heads == 0,
               "[attention] query must be [tokens, a multiple of {} heads, {}] to match {}, but is {}", kv.kv.heads,
               kv.kv.head_dim, kv.text(), query.text());
    check_attention_window(request.attributes, "attention");
    return std::vector<Meta>{Meta::tensor(query.dtype, query.shape)};
  });
  for (DType pages : {DType::f32, DType::f16})
    for (int block : {1, 16, 32}) {
      const KvLayout layout{.dtype = pages, .block = block, .heads = 2, .head_dim = 16};
      const int count = 3 * (80 / block + 1);
      op.sample({{"query", {9, 4, 16}},
                 SampleTensor::pages("kv", layout, count),
                 SampleTensor::batch("batch", {{1, 70}, {7, 7}, {1, 33}}, block)},
                {{"scale", 0.25}});
    }
  // Windows of one token (itself), part of a page, one page, several pages, and more than the whole context.
  for (const int window : {1, 5, 16, 40, 1000})
    op.sample({{"query", {9, 4, 16}},
               SampleTensor::pages("kv", {.dtype = DType::f16, .block = 16, .heads = 2, .head_dim = 16}, 15),
               SampleTensor::batch("batch", {{1, 70}, {7, 7}, {1, 33}}, 16)},
              {{"scale", 0.25}, {"window", window}});
  // Head sizes and row counts that the matrix units of GPUs support.
  op.sample({{"query", {28, 4, 64}},
             SampleTensor::pages("kv", {.dtype = DType::f16, .block = 16, .heads = 2, .head_dim = 64}, 9),
             SampleTensor::batch("batch", {{26, 40}, {1, 20}, {1, 7}}, 16)},
            {{"scale", 0.125}});
  op.sample({{"query", {28, 4, 64}},
             SampleTensor::pages("kv", {.dtype = DType::f16, .block = 16, .heads = 2, .head_dim = 64}, 9),
             SampleTensor::batch("batch", {{26, 40}, {1, 20}, {1, 7}}, 16)},
            {{"scale", 0.125}, {"window", 11}});
  // Softmax over up to 70 tokens; the order of the sums is free.
  op.tolerance(DType::f32, {.absolute = 2e-5, .relative = 2e-5});
  op.tolerance(DType::f16, {.absolute = 2e-3, .relative = 2e-3});
}
