#pragma once

// The quantizing fp8 ops share these: the range of codes, the attributes that choose between vLLM's definitions, and
// the steps from magnitudes to scales and from scaled values to codes. All steps are computed in f32; NaN stays NaN.
//
//   scale_by   division    scale = magnitude / limit
//              reciprocal  scale = magnitude * (1 / limit)
//   codes_by   division    code of x / scale
//              reciprocal  code of x * (1 / scale)
//
// scale_ub is an optional operand of one f32. It limits the magnitude before the scale is computed, or the scale itself
// (scale_ub_of in per_token_group_quant_fp8.h). Values beyond the bound then get the code of the limit. An infinite
// bound limits nothing; a NaN bound makes all scales NaN.

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "ir/op.h"
#include "ops/cast.h"
#include "ops/clamp.h"
#include "ops/div.h"
#include "ops/div_scalar.h"
#include "ops/minimum.h"
#include "ops/mul.h"
#include "ops/mul_scalar.h"
#include "ops/reciprocal.h"
#include "ops/reshape.h"

namespace weft {

// The largest magnitude with its own code: 448, or for f8e4m3fnuz 224 of the 240 that the type can hold, as in vLLM
// (spec D.2).
inline double fp8_limit(DType dtype) { return dtype == DType::f8e4m3fnuz ? 224 : 448; }

// vLLM's smallest scale, 1 / (limit * 512).
inline double fp8_minimum_scale(DType dtype) { return 1 / (fp8_limit(dtype) * 512); }

inline void check_fp8_dtype(DType dtype, const char* op, const char* what) {
  USER_CHECK(dtype == DType::f8e4m3 || dtype == DType::f8e4m3fnuz, "[{}] {} must be f8e4m3 or f8e4m3fnuz, but is {}",
             op, what, dtype_text(dtype));
}

// Throws UserError unless the attribute is one of the words.
inline void check_word(const OpRequest& request, const char* op, const char* attribute,
                       std::initializer_list<const char*> words) {
  const std::string& word = request.attributes.at(attribute).word();
  const bool known = std::any_of(words.begin(), words.end(), [&](const char* one) { return word == one; });
  USER_CHECK(known, "[{}] {} must be {} or {}, but is {}", op, attribute, *words.begin(), *std::prev(words.end()),
             word);
}

// Throws UserError if the operand is present and is not one f32.
inline void check_scale_ub(const OpRequest& request, const char* op, std::size_t scale_ub) {
  if (!request.has(scale_ub)) return;
  const Meta& bound = request.operand(scale_ub);
  USER_CHECK(bound.is_tensor() && bound.dtype == DType::f32 && element_count(bound.shape) == Dim(1),
             "[{}] scale_ub must be one f32, but is {}", op, bound.text());
}

inline Value held_to(const Value& scale_ub, const Value& x) {
  return scale_ub.present() ? minimum(x, reshape(scale_ub, {1})) : x;
}

inline Value fp8_scale(const Value& magnitude, DType dtype, std::string_view scale_by) {
  if (scale_by == "division") return div_scalar(magnitude, fp8_limit(dtype));
  return mul_scalar(magnitude, 1 / fp8_limit(dtype));
}

// Returns the codes of values that are already divided by their scale.
inline Value fp8_codes(const Value& scaled, DType dtype) {
  return cast(clamp(scaled, -fp8_limit(dtype), fp8_limit(dtype)), dtype);
}

inline Value divided_by_scale(const Value& x, const Value& scale, std::string_view codes_by) {
  return codes_by == "division" ? div(x, scale) : mul(x, reciprocal(scale));
}

}  // namespace weft
