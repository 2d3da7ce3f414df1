#pragma once

// What ops of the linear family share: checks of rows of int8 codes, of bf16 and of the experts of rows, and a weight
// rounded to bf16.

#include "base/error.h"
#include "ir/op.h"
#include "ir/shape_rules.h"
#include "ops/cast.h"
#include "tensor/block_format.h"

namespace weft {

// x i8[rows, K], scale f32[rows, K / 32], and weight of a block type with integer codes, whose `rank` dims end in K.
inline void check_int8_product(const OpRequest& request, const char* op, std::size_t rank) {
  constexpr std::int64_t kGroup = 32;
  const Meta &x = request.operand(0), &scale = request.operand(1), &weight = request.operand(2);
  USER_CHECK(x.is_tensor() && x.dtype == DType::i8 && x.rank() == 2 && x.shape[1].is_number(),
             "[{}] x must be i8[rows, K], but is {}", op, x.text());
  const Shape groups{x.shape[0], x.shape[1].number() / kGroup};
  USER_CHECK(scale.dtype == DType::f32 && scale.shape == groups, "[{}] scale must be f32{} to match x: {}, but is {}",
             op, shape_text(groups), x.text(), scale.text());
  USER_CHECK(has_integer_codes(weight.dtype) && weight.rank() == rank && weight.shape.back() == x.shape[1],
             "[{}] weight must be [{}N, {}] of a block type with integer codes to match x: {}, but is {}", op,
             rank == 3 ? "E, " : "", x.shape[1].text(), x.text(), weight.text());
}

// x bf16[..., K], weight with `rank` dims that end in K, and a floating dtype of the result.
inline void check_rounded_product(const OpRequest& request, const char* op, std::size_t rank) {
  const Meta &x = request.operand(0), &weight = request.operand(1);
  USER_CHECK(x.is_tensor() && x.dtype == DType::bf16 && x.rank() >= 1, "[{}] x must be bf16[..., K], but is {}", op,
             x.text());
  USER_CHECK(weight.is_tensor() && weight.rank() == rank && weight.shape.back() == x.shape.back(),
             "[{}] weight must be [{}N, {}] to match x: {}, but is {}", op, rank == 3 ? "E, " : "",
             x.shape.back().text(), x.text(), weight.text());
  const DType dtype = request.attributes.at("dtype").dtype();
  USER_CHECK(is_floating(dtype), "[{}] dtype must be floating, but is {}", op, dtype_text(dtype));
}

// The weight's values, rounded to bf16, as f32.
inline Value rounded_weight(const Value& weight) { return cast(cast(weight, DType::bf16), DType::f32); }

// Operand `experts` is i32 or i64 [rows of x], and the one after it, if present, a bias [E, N] of the stack of weights.
inline void check_experts(const OpRequest& request, const char* op, const Meta& weight, std::size_t index) {
  const Meta &x = request.operand(0), &experts = request.operand(index);
  USER_CHECK((experts.dtype == DType::i64 || experts.dtype == DType::i32) && experts.shape == Shape{x.shape[0]},
             "[{}] experts must be i32[{}] or i64[{}] to match x: {}, but is {}", op, x.shape[0].text(),
             x.shape[0].text(), x.text(), experts.text());
  if (!request.has(index + 1)) return;
  const Meta& bias = request.operand(index + 1);
  USER_CHECK(bias.shape == (Shape{weight.shape[0], weight.shape[1]}),
             "[{}] bias must be [{}, {}] to match weight: {}, but is {}", op, weight.shape[0].text(),
             weight.shape[1].text(), weight.text(), bias.text());
}

}  // namespace weft
