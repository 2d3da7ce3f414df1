#pragma once

// row_math.h lane by lane, for WEFT_LANES floats. It is what generated code calls: as bitcode (llvm/prelude.cpp) and in
// the C++ text, whose vocabulary is at the end. Vectors are those of g++ and clang, whose + - * / work lane by
// lane.

#include <cstdint>

// Processors of 8 lanes and more have these instructions (AVX2).
#if WEFT_LANES >= 8
#define WEFT_FUSES_MULTIPLY_ADD
#endif
#include "codegen/row_math.h"

namespace weft::row_vectors {

constexpr int kLanes = WEFT_LANES;
typedef float Floats __attribute__((vector_size(4 * WEFT_LANES)));
typedef std::uint16_t Codes16 __attribute__((vector_size(2 * WEFT_LANES)));
typedef std::uint8_t Codes8 __attribute__((vector_size(WEFT_LANES)));

template <class Code>
struct CodesOf;
template <>
struct CodesOf<std::uint16_t> {
  using type = Codes16;
};
template <>
struct CodesOf<std::uint8_t> {
  using type = Codes8;
};

#define WEFT_LANE_FUNCTION static inline __attribute__((always_inline))
#ifdef __clang__
#define WEFT_EACH_LANE                                                                                                 \
  _Pragma("clang loop vectorize(enable) vectorize_width(kLanes) interleave_count(1) unroll(disable)") for (int i = 0;  \
                                                                                                           i < kLanes; \
                                                                                                           ++i)
#else
#define WEFT_EACH_LANE for (int i = 0; i < kLanes; ++i)
#endif

// Lanes are in an array while a loop goes over them, which compilers vectorize.
template <class Vector, class Element>
struct LanesOf {
  alignas(64) Element lane[kLanes];
  WEFT_LANE_FUNCTION LanesOf of(Vector x) {
    LanesOf lanes;
    __builtin_memcpy(lanes.lane, &x, sizeof(x));
    return lanes;
  }
  __attribute__((always_inline)) Vector vector() const {
    Vector x;
    __builtin_memcpy(&x, lane, sizeof(x));
    return x;
  }
};
using FloatLanes = LanesOf<Floats, float>;

#define WEFT_LANES_OF_UNARY(op)                                \
  WEFT_LANE_FUNCTION float op(float a) { return row_##op(a); } \
  WEFT_LANE_FUNCTION Floats op(Floats a) {                     \
    const FloatLanes x = FloatLanes::of(a);                    \
    FloatLanes y;                                              \
    WEFT_EACH_LANE y.lane[i] = row_##op(x.lane[i]);            \
    return y.vector();                                         \
  }
#define WEFT_LANES_OF_BINARY(op)                                           \
  WEFT_LANE_FUNCTION float op(float a, float b) { return row_##op(a, b); } \
  WEFT_LANE_FUNCTION Floats op(Floats a, Floats b) {                       \
    const FloatLanes x = FloatLanes::of(a), z = FloatLanes::of(b);         \
    FloatLanes y;                                                          \
    WEFT_EACH_LANE y.lane[i] = row_##op(x.lane[i], z.lane[i]);             \
    return y.vector();                                                     \
  }
#define WEFT_LANES_OF_TERNARY(op)                                                         \
  WEFT_LANE_FUNCTION float op(float a, float b, float c) { return row_##op(a, b, c); }    \
  WEFT_LANE_FUNCTION Floats op(Floats a, Floats b, Floats c) {                            \
    const FloatLanes x = FloatLanes::of(a), z = FloatLanes::of(b), w = FloatLanes::of(c); \
    FloatLanes y;                                                                         \
    WEFT_EACH_LANE y.lane[i] = row_##op(x.lane[i], z.lane[i], w.lane[i]);                 \
    return y.vector();                                                                    \
  }
#define WEFT_LANES_OF_CODES(dtype, Code)                                                    \
  WEFT_LANE_FUNCTION Code to_##dtype(float a) { return encode_##dtype(a); }                 \
  WEFT_LANE_FUNCTION float from_##dtype(Code a) { return decode_##dtype(a); }               \
  WEFT_LANE_FUNCTION CodesOf<Code>::type to_##dtype(Floats a) {                             \
    const FloatLanes x = FloatLanes::of(a);                                                 \
    LanesOf<CodesOf<Code>::type, Code> y;                                                   \
    WEFT_EACH_LANE y.lane[i] = encode_##dtype(x.lane[i]);                                   \
    return y.vector();                                                                      \
  }                                                                                         \
  WEFT_LANE_FUNCTION Floats from_##dtype(CodesOf<Code>::type a) {                           \
    const LanesOf<CodesOf<Code>::type, Code> x = LanesOf<CodesOf<Code>::type, Code>::of(a); \
    FloatLanes y;                                                                           \
    WEFT_EACH_LANE y.lane[i] = decode_##dtype(x.lane[i]);                                   \
    return y.vector();                                                                      \
  }
WEFT_ROW_UNARY(WEFT_LANES_OF_UNARY)
WEFT_ROW_BINARY(WEFT_LANES_OF_BINARY)
WEFT_ROW_TERNARY(WEFT_LANES_OF_TERNARY)
WEFT_ROW_CODES(WEFT_LANES_OF_CODES)

WEFT_LANE_FUNCTION std::uint16_t to_plain_bf16(float a) { return encode_plain_bf16(a); }
WEFT_LANE_FUNCTION Codes16 to_plain_bf16(Floats a) {
  const FloatLanes x = FloatLanes::of(a);
  LanesOf<Codes16, std::uint16_t> y;
  WEFT_EACH_LANE y.lane[i] = encode_plain_bf16(x.lane[i]);
  return y.vector();
}
#define WEFT_LANES_OF_PLAIN_CODES(dtype)                        \
  WEFT_LANE_FUNCTION Codes8 to_plain_##dtype(Floats a) {        \
    const FloatLanes x = FloatLanes::of(a);                     \
    LanesOf<Codes8, std::uint8_t> y;                            \
    WEFT_EACH_LANE y.lane[i] = encode_plain_##dtype(x.lane[i]); \
    return y.vector();                                          \
  }
WEFT_LANES_OF_PLAIN_CODES(i8)
WEFT_LANES_OF_PLAIN_CODES(f8e4m3)
WEFT_LANES_OF_PLAIN_CODES(f4e2m1)
WEFT_LANE_FUNCTION Floats rounded_f8e4m3(Floats a) {
  const FloatLanes x = FloatLanes::of(a);
  FloatLanes y;
  WEFT_EACH_LANE y.lane[i] = row_rounded_f8e4m3(x.lane[i]);
  return y.vector();
}
WEFT_LANE_FUNCTION float select_at_most(float a, float number, float b, float c) {
  return row_select_at_most(a, number, b, c);
}
WEFT_LANE_FUNCTION Floats select_at_most(Floats a, Floats number, Floats b, Floats c) {
  const FloatLanes x = FloatLanes::of(a), n = FloatLanes::of(number), z = FloatLanes::of(b), w = FloatLanes::of(c);
  FloatLanes y;
  WEFT_EACH_LANE y.lane[i] = row_select_at_most(x.lane[i], n.lane[i], z.lane[i], w.lane[i]);
  return y.vector();
}
WEFT_LANE_FUNCTION float replace_zero(float a, float number, float b) { return row_replace_zero(a, number, b); }
WEFT_LANE_FUNCTION Floats replace_zero(Floats a, Floats number, Floats b) {
  const FloatLanes x = FloatLanes::of(a), n = FloatLanes::of(number), z = FloatLanes::of(b);
  FloatLanes y;
  WEFT_EACH_LANE y.lane[i] = row_replace_zero(x.lane[i], n.lane[i], z.lane[i]);
  return y.vector();
}

#ifndef __clang__
// The rest of the vocabulary of the C++ text.

template <class Element>
struct VectorOf {
  using type = typename CodesOf<Element>::type;
};
template <>
struct VectorOf<float> {
  using type = Floats;
};

typedef double Doubles __attribute__((vector_size(8 * WEFT_LANES)));

WEFT_LANE_FUNCTION Floats splat(float x) { return Floats{} + x; }
WEFT_LANE_FUNCTION Doubles splat(double x) { return Doubles{} + x; }
WEFT_LANE_FUNCTION Floats splat_halves(float first, float second) {
  Floats x;
  for (int i = 0; i < kLanes; ++i) x[i] = i < kLanes / 2 ? first : second;
  return x;
}
WEFT_LANE_FUNCTION double widen(float x) { return x; }
WEFT_LANE_FUNCTION Doubles widen(Floats x) { return __builtin_convertvector(x, Doubles); }
WEFT_LANE_FUNCTION float narrow(double x) { return static_cast<float>(x); }
WEFT_LANE_FUNCTION Floats narrow(Doubles x) { return __builtin_convertvector(x, Floats); }

// `count` elements, and zeros in the lanes after them.
template <class Element>
WEFT_LANE_FUNCTION typename VectorOf<Element>::type load(const Element* from, int count = kLanes) {
  typename VectorOf<Element>::type x{};
  __builtin_memcpy(&x, from, static_cast<unsigned long>(count) * sizeof(Element));
  return x;
}
template <class Element>
WEFT_LANE_FUNCTION void store(Element* to, typename VectorOf<Element>::type x, int count = kLanes) {
  __builtin_memcpy(to, &x, static_cast<unsigned long>(count) * sizeof(Element));
}
// The same for elements at a distance of `stride`.
template <class Element>
WEFT_LANE_FUNCTION typename VectorOf<Element>::type load_every(const Element* from, int stride, int count) {
  typename VectorOf<Element>::type x{};
  for (int i = 0; i < count; ++i) x[i] = from[i * stride];
  return x;
}
template <class Element>
WEFT_LANE_FUNCTION void store_every(Element* to, int stride, typename VectorOf<Element>::type x, int count) {
  for (int i = 0; i < count; ++i) to[i * stride] = x[i];
}
template <class Element>
WEFT_LANE_FUNCTION void store_pairs(Element* to, typename VectorOf<Element>::type first,
                                    typename VectorOf<Element>::type second, int count) {
  store_every(to, 2, first, count);
  store_every(to + 1, 2, second, count);
}
// Two codes of four bits a byte, the first in its low half.
WEFT_LANE_FUNCTION void store_pairs_of_nibbles(std::uint8_t* to, Codes8 first, Codes8 second) {
  store(to, first | second << 4);
}
WEFT_LANE_FUNCTION void store_nibbles(std::uint8_t* to, Codes8 x, int count) {
  for (int i = 0; i < count; i += 2) to[i / 2] = static_cast<std::uint8_t>(x[i] | x[i + 1] << 4);
}
// Half of the floats of `even` and `odd` interleaved, from index `begin`.
WEFT_LANE_FUNCTION Floats joined_pairs(Floats even, Floats odd, int begin) {
  Floats x;
  for (int i = 0; i < kLanes; ++i) x[i] = (i % 2 == 0 ? even : odd)[(begin + i) / 2];
  return x;
}
// x in the first `count` lanes, `rest` in the others.
WEFT_LANE_FUNCTION Floats first_lanes(Floats x, int count, float rest) {
  for (int i = count; i < kLanes; ++i) x[i] = rest;
  return x;
}
template <class Combine>
WEFT_LANE_FUNCTION float folded(Floats* parts, int count, Combine combine) {
  for (int width = count / 2; width > 0; width /= 2)
    for (int v = 0; v < width; ++v) parts[v] = combine(parts[v], parts[v + width]);
  for (int width = kLanes / 2; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) parts[0][i] = combine(parts[0][i], parts[0][i + width]);
  return parts[0][0];
}
// The tree of reference math over 64 partial sums.
template <class... Parts>
WEFT_LANE_FUNCTION float sum_of(Parts... each) {
  Floats parts[] = {each...};
  return folded(parts, sizeof...(each), [](auto a, auto b) { return a + b; });
}
// Of any number of vectors: halves of them would leave one out.
template <class... Parts>
WEFT_LANE_FUNCTION float largest_of(Parts... each) {
  const Floats parts[] = {each...};
  Floats largest = parts[0];
  for (const Floats& part : parts) largest = larger(largest, part);
  return folded(&largest, 1, [](auto a, auto b) { return larger(a, b); });
}
template <class... Parts>
WEFT_LANE_FUNCTION float signed_largest_of(Parts... each) {
  Floats parts[] = {each...};
  return folded(parts, sizeof...(each), [](auto a, auto b) { return maximum(a, b); });
}
#endif

}  // namespace weft::row_vectors
