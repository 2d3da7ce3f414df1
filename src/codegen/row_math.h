#pragma once

// What the ops of a row program compute, on one f32: the one statement of it, from which the vectors of generated code
// come (vector_math.h). The names are those of RowOp; + - * / and neg are themselves. Everything is `static inline` and
// has no loop, so that a compiler turns a walk over lanes into vectors.
//
//   encode_<dtype>, decode_<dtype>   the code that stands for a float in memory, as a cast gives it, and back

#include "tensor/bfloat16.h"
#include "tensor/float16.h"
#include "tensor/float8.h"
#include "tensor/house_math.h"

namespace weft {

static inline float row_maximum(float a, float b) { return a != a || a > b ? a : b; }
static inline float row_minimum(float a, float b) { return a != a || a < b ? a : b; }
// Of two numbers without a sign, or NaN, which wins: the order of their bit patterns. What maxima over rows and groups
// are made of.
static inline float row_larger(float a, float b) {
  const std::uint32_t x = bits_of_float(a), y = bits_of_float(b);
  return float_of_bits(x > y ? x : y);
}
static inline float row_at_least(float a, float b) { return a < b ? b : a; }
static inline float row_at_most(float a, float b) { return a > b ? b : a; }
static inline float row_abs(float a) { return __builtin_fabsf(a); }
static inline float row_exp(float a) { return house_exp(a); }
static inline float row_tanh(float a) { return house_tanh(a); }
static inline float row_erf(float a) { return house_erf(a); }
static inline float row_sigmoid(float a) { return house_sigmoid(a); }
static inline float row_sqrt(float a) { return house_sqrt(a); }
static inline float row_round(float a) { return __builtin_nearbyintf(a); }
static inline float row_trunc(float a) { return __builtin_truncf(a); }
static inline float row_select_at_most(float a, float number, float b, float c) { return a <= number ? b : c; }
static inline float row_replace_nan(float a, float number) { return a != a ? number : a; }
static inline float row_replace_zero(float a, float number, float b) { return a == 0.0f ? number : b; }

static inline std::uint16_t encode_f16(float a) { return f32_to_f16(a); }
static inline std::uint16_t encode_bf16(float a) { return f32_to_bf16(a); }
static inline std::uint8_t encode_f8e4m3(float a) { return f32_to_f8e4m3(a); }
static inline std::uint8_t encode_f8e4m3fnuz(float a) { return f32_to_f8e4m3fnuz(a); }
static inline std::uint8_t encode_f8e5m2(float a) { return f32_to_f8e5m2(a); }
static inline float decode_f16(std::uint16_t code) { return f16_to_f32(code); }
static inline float decode_bf16(std::uint16_t code) { return bf16_to_f32(code); }
static inline float decode_f8e4m3(std::uint8_t code) { return f8e4m3_to_f32(code); }
static inline float decode_f8e4m3fnuz(std::uint8_t code) { return f8e4m3fnuz_to_f32(code); }
static inline float decode_f8e5m2(std::uint8_t code) { return f8e5m2_to_f32(code); }

// Toward zero; what does not fit becomes the nearest that does, NaN becomes 0.
static inline std::int32_t whole_between(float a, float low, float high) {
  a = a != a ? 0.0f : a;
  a = a < low ? low : a;
  a = a > high ? high : a;
  return static_cast<std::int32_t>(a);
}
static inline std::uint8_t encode_i8(float a) { return static_cast<std::uint8_t>(whole_between(a, -128.0f, 127.0f)); }
static inline std::uint8_t encode_u8(float a) { return static_cast<std::uint8_t>(whole_between(a, 0.0f, 255.0f)); }
static inline float decode_i8(std::uint8_t code) { return static_cast<float>(static_cast<std::int8_t>(code)); }
static inline float decode_u8(std::uint8_t code) { return static_cast<float>(code); }

}  // namespace weft

// X(dtype, type of its code) for each dtype that a row program reads and writes besides f32.
#define WEFT_ROW_CODES(X)     \
  X(f16, std::uint16_t)       \
  X(bf16, std::uint16_t)      \
  X(i8, std::uint8_t)         \
  X(u8, std::uint8_t)         \
  X(f8e4m3, std::uint8_t)     \
  X(f8e4m3fnuz, std::uint8_t) \
  X(f8e5m2, std::uint8_t)

// X(op) for the functions above by the number of floats they take.
#define WEFT_ROW_UNARY(X) X(abs) X(exp) X(tanh) X(erf) X(sigmoid) X(sqrt) X(round) X(trunc)
#define WEFT_ROW_BINARY(X) X(maximum) X(minimum) X(larger) X(at_least) X(at_most) X(replace_nan)
