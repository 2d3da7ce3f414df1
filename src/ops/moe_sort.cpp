#include "ops/moe_sort.h"

#include "base/error.h"
#include "ir/op.h"

namespace weft {

std::tuple<Value, Value, Value> moe_sort(const Value& topk_indices, CallSite site) {
  return call(site, "moe_sort", {topk_indices}, {});
}

}  // namespace weft

OP(moe_sort) {
  op.schema("moe_sort(Tensor topk_indices) -> (Tensor tokens, Tensor experts, Tensor positions)")
      .function(&weft::moe_sort);
  op.gives([](const OpRequest& request) {
    const Meta& indices = request.operand(0);
    USER_CHECK(indices.is_tensor() && indices.rank() == 2 && indices.shape[1].is_number() &&
                   (indices.dtype == DType::i64 || indices.dtype == DType::i32),
               "[moe_sort] topk_indices must be i32[rows, k] or i64[rows, k], but is {}", indices.text());
    const Shape rows{indices.shape[1] * indices.shape[0]};
    return std::vector<Meta>{Meta::tensor(DType::i32, rows), Meta::tensor(DType::i32, rows),
                             Meta::tensor(DType::i32, indices.shape)};
  });
  // A position depends on all tokens.
  op.rows_of(nullptr).exact();
  op.sample({{"topk_indices", {9, 3}, DType::i32, Fill::indices, 5}});
  op.sample({{"topk_indices", {1, 8}, DType::i64, Fill::indices, 64}});
  op.sample({{"topk_indices", {40, 2}, DType::i32, Fill::indices, 4}});
  op.sample({{"topk_indices", {60, 2}, DType::i32, Fill::indices, 700}});
}
