#pragma once

// Ops of the formats that have a scale for each block of a row share these: NVFP4 (blocks of 16, scales f8e4m3), MXFP4
// and MXFP8 (blocks of 32, scales f8e8m0; OCP Microscaling specification).

#include "base/error.h"
#include "ir/op.h"
#include "ir/shape_rules.h"
#include "ops/cast.h"
#include "ops/clamp.h"
#include "ops/mul.h"
#include "ops/reshape.h"

namespace weft {

inline constexpr double kLargestFp4 = 6;
inline constexpr double kLargestFp8 = 448;
// The smallest and the largest power of two in f8e8m0.
inline constexpr double kSmallestE8m0 = 0x1p-127;
inline constexpr double kLargestE8m0 = 0x1p127;

// Throws UserError unless x is a floating matrix whose rows are whole blocks.
inline void check_blocks(const Meta& x, const char* op, std::int64_t block) {
  require_floating(x, op, "x");
  USER_CHECK(x.rank() == 2 && x.shape[1].is_number() && x.shape[1].number() > 0 && x.shape[1].number() % block == 0,
             "[{}] x must be a matrix with rows of whole blocks of {}, but is {}", op, block, x.text());
}

inline void check_one_scale(const Meta& scale, const char* op, const char* parameter) {
  USER_CHECK(scale.is_tensor() && scale.dtype == DType::f32 && element_count(scale.shape) == Dim(1),
             "[{}] {} must be one f32, but is {}", op, parameter, scale.text());
}

inline void check_dtype(const Meta& x, DType wanted, const char* op, const char* parameter) {
  USER_CHECK(x.is_tensor() && x.dtype == wanted, "[{}] {} must be of {}, but is {}", op, parameter, dtype_text(wanted),
             x.text());
}

// Returns [m, K / block] for [m, K].
inline Shape block_counts(const Shape& x, std::int64_t block) { return {x[0], x[1].number() / block}; }

// Throws UserError unless the scale has the shape [m, K / block], or the shape that swizzle_scale makes of it if
// `swizzled`.
inline void check_block_scales(const Meta& scale, const Shape& x, std::int64_t block, bool swizzled, const char* op,
                               const char* parameter) {
  const Shape plain = block_counts(x, block);
  const Shape wanted = swizzled ? Shape{1, align(plain[0], 128), align(plain[1], 4)} : plain;
  USER_CHECK(scale.shape == wanted, "[{}] {} must be {} for codes {}, but is {}", op, parameter, shape_text(wanted),
             shape_text(x), scale.text());
}

// Returns x as [m, K / block, block].
inline Value blocks_of(const Value& x, std::int64_t block) {
  Shape shape = block_counts(x.meta().shape, block);
  shape.push_back(block);
  return reshape(x, shape);
}

// Converts values that are already divided by their scale to codes of this shape.
inline Value fp4_codes(const Value& scaled, const Shape& shape) {
  return cast(reshape(clamp(scaled, -kLargestFp4, kLargestFp4), shape), DType::f4e2m1);
}

// Returns codes times the scale (f32 [m, K / block]) of their block, in f32.
inline Value scaled_blocks(const Value& codes, const Value& scale, std::int64_t block) {
  Shape spread = scale.meta().shape;
  spread.push_back(1);
  return reshape(mul(blocks_of(cast(codes, DType::f32), block), reshape(scale, spread)), codes.meta().shape);
}

}  // namespace weft
