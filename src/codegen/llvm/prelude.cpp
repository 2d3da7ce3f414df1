// vector_math.h as bitcode: the functions that generated code calls; they are inlined when it is compiled. Clang builds
// this file once for each number of lanes; it is not linked into any program. The function of an op is weft_<op>_v for
// vectors and weft_<op>_s for a single float.

#include "codegen/vector_math.h"

using namespace weft;
using namespace weft::row_vectors;

typedef std::uint32_t Words __attribute__((vector_size(4 * WEFT_LANES)));
using WordLanes = LanesOf<Words, std::uint32_t>;

#define WEFT_EXPORT extern "C" __attribute__((always_inline))

#define WEFT_EXPORT_UNARY(op)                                  \
  WEFT_EXPORT Floats weft_##op##_v(Floats a) { return op(a); } \
  WEFT_EXPORT float weft_##op##_s(float a) { return op(a); }
#define WEFT_EXPORT_BINARY(op)                                              \
  WEFT_EXPORT Floats weft_##op##_v(Floats a, Floats b) { return op(a, b); } \
  WEFT_EXPORT float weft_##op##_s(float a, float b) { return op(a, b); }
#define WEFT_EXPORT_TERNARY(op)                                                          \
  WEFT_EXPORT Floats weft_##op##_v(Floats a, Floats b, Floats c) { return op(a, b, c); } \
  WEFT_EXPORT float weft_##op##_s(float a, float b, float c) { return op(a, b, c); }
// Codes are passed as 32-bit words, because vectors of smaller ones would be passed as other types.
#define WEFT_EXPORT_CODES(dtype, Code)                                                 \
  WEFT_EXPORT Words weft_to_##dtype##_v(Floats a) {                                    \
    const FloatLanes x = FloatLanes::of(a);                                            \
    WordLanes y;                                                                       \
    WEFT_EACH_LANE y.lane[i] = encode_##dtype(x.lane[i]);                              \
    return y.vector();                                                                 \
  }                                                                                    \
  WEFT_EXPORT std::uint32_t weft_to_##dtype##_s(float a) { return encode_##dtype(a); } \
  WEFT_EXPORT Floats weft_from_##dtype##_v(Words a) {                                  \
    const WordLanes x = WordLanes::of(a);                                              \
    FloatLanes y;                                                                      \
    WEFT_EACH_LANE y.lane[i] = decode_##dtype(static_cast<Code>(x.lane[i]));           \
    return y.vector();                                                                 \
  }                                                                                    \
  WEFT_EXPORT float weft_from_##dtype##_s(std::uint32_t a) { return decode_##dtype(static_cast<Code>(a)); }

WEFT_ROW_UNARY(WEFT_EXPORT_UNARY)
WEFT_ROW_BINARY(WEFT_EXPORT_BINARY)
WEFT_ROW_TERNARY(WEFT_EXPORT_TERNARY)
WEFT_ROW_CODES(WEFT_EXPORT_CODES)

#define WEFT_EXPORT_WORDS(name, function)           \
  WEFT_EXPORT Words weft_##name##_v(Floats a) {     \
    const FloatLanes x = FloatLanes::of(a);         \
    WordLanes y;                                    \
    WEFT_EACH_LANE y.lane[i] = function(x.lane[i]); \
    return y.vector();                              \
  }
WEFT_EXPORT_WORDS(to_plain_f8e4m3, encode_plain_f8e4m3)
WEFT_EXPORT_WORDS(to_words_of_f4e2m1, word_of_f4e2m1)
WEFT_EXPORT_WORDS(to_plain_f4e2m1, plain_word_of_f4e2m1)

WEFT_EXPORT Floats weft_rounded_f8e4m3_v(Floats a) { return rounded_f8e4m3(a); }
WEFT_EXPORT Floats weft_rounded_f8e4m3_of_held_v(Floats a, Floats held) {
  const FloatLanes x = FloatLanes::of(a), z = FloatLanes::of(held);
  FloatLanes y;
  WEFT_EACH_LANE y.lane[i] = rounded_f8e4m3_of_held(x.lane[i], z.lane[i]);
  return y.vector();
}

// For processors with fused multiply-add: codes of magnitudes, and the functions of fast paths (codegen/short_ways.h).
#ifdef WEFT_FUSES_MULTIPLY_ADD
WEFT_EXPORT_WORDS(ordinary_f8e4m3, ordinary_f8e4m3)
WEFT_EXPORT_WORDS(ordinary_f4e2m1, ordinary_f4e2m1)
#define WEFT_EXPORT_SHORT(op)                       \
  WEFT_EXPORT Floats weft_##op##_v(Floats a) {      \
    const FloatLanes x = FloatLanes::of(a);         \
    FloatLanes y;                                   \
    WEFT_EACH_LANE y.lane[i] = row_##op(x.lane[i]); \
    return y.vector();                              \
  }
WEFT_EXPORT_SHORT(split_bf16)
WEFT_EXPORT_SHORT(fused_bf16)
WEFT_EXPORT_SHORT(half_up_bf16)

WEFT_EXPORT Floats weft_inverse_rest_v(Floats b, Floats c) {
  const FloatLanes x = FloatLanes::of(b), z = FloatLanes::of(c);
  FloatLanes y;
  WEFT_EACH_LANE y.lane[i] = row_inverse_rest(x.lane[i], z.lane[i]);
  return y.vector();
}
WEFT_EXPORT Floats weft_shorter_quotient_v(Floats a, Floats rest, Floats c) {
  const FloatLanes x = FloatLanes::of(a), z = FloatLanes::of(rest), w = FloatLanes::of(c);
  FloatLanes y;
  WEFT_EACH_LANE y.lane[i] = row_shorter_quotient(x.lane[i], z.lane[i], w.lane[i]);
  return y.vector();
}
#endif

WEFT_EXPORT Floats weft_select_at_most_v(Floats a, Floats number, Floats b, Floats c) {
  return select_at_most(a, number, b, c);
}
WEFT_EXPORT float weft_select_at_most_s(float a, float number, float b, float c) {
  return select_at_most(a, number, b, c);
}
WEFT_EXPORT Floats weft_replace_zero_v(Floats a, Floats number, Floats b) { return replace_zero(a, number, b); }
WEFT_EXPORT float weft_replace_zero_s(float a, float number, float b) { return replace_zero(a, number, b); }
