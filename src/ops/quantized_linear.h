#pragma once

// Linear ops over codes share these checks and the last step.

#include "base/error.h"
#include "ir/op.h"
#include "ir/shape_rules.h"
#include "ops/add.h"
#include "ops/cast.h"

namespace weft {

// Throws UserError unless x is [M, K] and weight is [N, K] of the same dtype, the attribute dtype is floating, and
// bias, if present, is [N].
inline void check_quantized_linear(const OpRequest& request, const char* op, std::size_t weight_number,
                                   std::size_t bias_number) {
  const Meta& x = request.operand(0);
  const Meta& weight = request.operand(weight_number);
  USER_CHECK(x.is_tensor() && x.rank() == 2 && x.shape[1].is_number(), "[{}] x must be codes [M, K], but is {}", op,
             x.text());
  USER_CHECK(weight.is_tensor() && weight.rank() == 2 && weight.dtype == x.dtype && weight.shape[1] == x.shape[1],
             "[{}] weight must be {}[N, {}] to match x: {}, but is {}", op, dtype_text(x.dtype), x.shape[1].text(),
             x.text(), weight.text());
  const DType dtype = request.attributes.at("dtype").dtype();
  USER_CHECK(dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16,
             "[{}] dtype must be f32, bf16 or f16, but is {}", op, dtype_text(dtype));
  if (!request.has(bias_number)) return;
  const Meta& bias = request.operand(bias_number);
  USER_CHECK(bias.is_tensor() && is_floating(bias.dtype) && bias.shape == Shape{weight.shape[0]},
             "[{}] bias must be [{}] to match weight: {}, but is {}", op, weight.shape[0].text(), weight.text(),
             bias.text());
}

// Adds the bias to an f32 product and casts it to the dtype of the result.
inline Value finished_linear(const Value& product, const Value& bias, DType dtype) {
  return cast(bias.present() ? add(product, cast(bias, DType::f32)) : product, dtype);
}

// A kernel may add the products of codes in any order. The larger tolerance is one step of a 16-bit dtype.
inline void tolerate_free_order(OpDefinition& op) {
  op.tolerance(DType::f32, {.absolute = 1e-4, .relative = 1e-4});
  op.tolerance(DType::bf16, {.absolute = 1e-3, .relative = 1.6e-2});
}

}  // namespace weft
