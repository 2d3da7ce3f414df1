#pragma once

// Vectors of floats for one instruction set: the primitives of float_vector_<set>.h, which the object names as
// WEFT_FLOAT_VECTORS, and what follows from them. Everything has internal linkage.

#include <cstdint>
#include <cstring>

#include WEFT_FLOAT_VECTORS

namespace weft::cpu {
namespace {

// Sums of integers that may wrap around.
using Words = std::uint32_t __attribute__((vector_size(sizeof(Integers))));
inline Integers wrapping_sum(Integers a, Integers b) {
  return reinterpret_cast<Integers>(reinterpret_cast<Words>(a) + reinterpret_cast<Words>(b));
}

// 0, 1, 2, ... from a table, which the compiler folds to a constant; for a loop it emits instructions.
constexpr std::int32_t kLaneNumbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
inline Integers lane_numbers() {
  Integers numbers;
  std::memcpy(&numbers, kLaneNumbers, sizeof(numbers));
  return numbers;
}

inline Integers bits_of(Floats x) { return reinterpret_cast<Integers>(x); }
inline Floats floats_of(Integers x) { return reinterpret_cast<Floats>(x); }
inline Floats absolute(Floats x) { return floats_of(bits_of(x) & 0x7fffffff); }
// Lanes hold integers below 2^31.
inline Integers integers_of(Floats x) { return __builtin_convertvector(x, Integers); }

// The bf16 codes nearest to x, ties to even. A NaN is made quiet instead, because rounding could carry into its sign.
inline Integers brain_bits(Floats x) {
  const Integers bits = bits_of(x);
  const Integers rounded = wrapping_sum(bits, ((bits >> 16) & 1) + 0x7fff);
  const Integers is_nan = x != x;
  return ((is_nan ? (bits | 0x400000) : rounded) >> 16) & 0xffff;
}
inline void store(Brain* to, Floats x) { store_low_halves(&to->bits, brain_bits(x)); }
// The same for vectors without subnormal numbers, which the instruction of AVX-512 BF16 takes for zeros.
inline void store_normal(Brain* to, Floats x) {
#ifdef __AVX512BF16__
  const __m256bh bits = _mm512_cvtneps_pbh(x);
  std::memcpy(to, &bits, sizeof(bits));
#else
  store(to, x);
#endif
}
// The same for results of arithmetic on bf16 operands and constants. The low half of their NaNs is 0, so nothing
// carries out of that half.
inline Integers quiet_brain_bits(Floats x) {
  const Integers bits = bits_of(x);
  return wrapping_sum(bits, ((bits >> 16) & 1) + 0x7fff);
}

template <class T>
inline Floats load_first(const T* from, int count) {
  T buffer[kLanes] = {};
  std::memcpy(buffer, from, sizeof(T) * static_cast<unsigned>(count));
  return load(buffer);
}
template <class T>
inline void store_first(T* to, Floats x, int count) {
  T buffer[kLanes];
  store(buffer, x);
  std::memcpy(to, buffer, sizeof(T) * static_cast<unsigned>(count));
}

// x as it would read after a store as T.
template <class T>
inline Floats rounded_to(Floats x);
template <>
inline Floats rounded_to<float>(Floats x) {
  return x;
}
template <>
inline Floats rounded_to<Half>(Floats x) {
  return rounded_to_half(x);
}
template <>
inline Floats rounded_to<Brain>(Floats x) {
  return floats_of(brain_bits(x) << 16);
}

// Both functions for results of arithmetic on operands of type T and constants.
template <class T>
inline Floats rounded_result(Floats x) {
  return rounded_to<T>(x);
}
template <>
inline Floats rounded_result<Brain>(Floats x) {
  return floats_of(quiet_brain_bits(x) & static_cast<std::int32_t>(0xffff0000));
}
template <class T>
inline void store_result(T* to, Floats x) {
  store(to, x);
}
inline void store_result(Brain* to, Floats x) {
  store_low_halves(&to->bits, reinterpret_cast<Integers>(reinterpret_cast<Words>(quiet_brain_bits(x)) >> 16));
}

// The lanes of a vector that are inside the row: all, or the first `count`.
struct AllLanes {};
struct FirstLanes {
  int count;
};
template <class T>
inline Floats load(const T* from, AllLanes) {
  return load(from);
}
template <class T>
inline Floats load(const T* from, FirstLanes lanes) {
  return load_first(from, lanes.count);
}
template <class T>
inline void store(T* to, Floats x, AllLanes) {
  store(to, x);
}
template <class T>
inline void store(T* to, Floats x, FirstLanes lanes) {
  store_first(to, x, lanes.count);
}
template <class T>
inline void store_result(T* to, Floats x, AllLanes) {
  store_result(to, x);
}
template <class T>
inline void store_result(T* to, Floats x, FirstLanes lanes) {
  store_first(to, x, lanes.count);
}

// The even or the odd ones of 2 * kLanes columns, as a first and a second vector. Reading bf16 this way takes only a
// shift or a mask.
struct EvenLanes : AllLanes {};
struct OddLanes : AllLanes {};
inline Integers load_bits(const Brain* from) {
  Integers bits;
  std::memcpy(&bits, from, sizeof(bits));
  return bits;
}
inline Floats even_of(Integers pairs) { return reinterpret_cast<Floats>(reinterpret_cast<Words>(pairs) << 16); }
inline Floats odd_of(Integers pairs) { return floats_of(pairs & static_cast<std::int32_t>(0xffff0000)); }
inline Floats load(const Brain* from, EvenLanes) { return even_of(load_bits(from)); }
inline Floats load(const Brain* from, OddLanes) { return odd_of(load_bits(from - kLanes)); }

// The values of f8e4m3 codes in the low bytes. Exponent and mantissa are moved to those of a float. A factor of 2^120
// corrects the difference of the biases and makes denormals right.
inline Floats fp8_values(Integers codes) {
  const Integers magnitude = codes & 0x7f;
  const Integers value = bits_of(floats_of(magnitude << 20) * 0x1p120f) | ((magnitude == 0x7f) & 0x7fc00000);
  return floats_of(value | ((codes & 0x80) << 24));
}

// The same for f8e4m3fnuz: half the value, and the only code of a NaN is that of -0.
inline Floats fnuz_values(Integers codes) {
  const Integers magnitude = bits_of(floats_of((codes & 0x7f) << 20) * 0x1p119f);
  return floats_of((codes & 0xff) == 0x80 ? (Integers{} + 0x7fc00000) : magnitude | ((codes & 0x80) << 24));
}

// Codes of f8e4m3, each 968 too large, of the magnitudes of numbers in (-464, 464). A magnitude is added to 2^20 times
// the power of two below it, or to 2^14 if it is below 2^-6. The low bits of the sum are then the multiple of the
// code's last place. The addend also contains the code of that power.
constexpr int kFp8Bias = 968;
inline Integers biased_fp8_codes(Floats x) {
  const Integers bits = bits_of(x) & 0x7f800000;
  const Words power = reinterpret_cast<Words>(bits > 0x3c800000 ? bits : Integers{} + 0x3c800000);
  const Floats sum = absolute(x) + reinterpret_cast<Floats>(power + ((power >> 20) + (20u << 23)));
  return bits_of(sum) & 0x7ff;
}

// f8e4m3 codes of numbers in [-448, 448] or NaN, sign-extended. With `fnuz`, the f8e4m3fnuz codes of half the numbers.
template <bool fnuz = false>
inline Integers fp8_codes(Floats x) {
  const Integers bits = bits_of(x);
  const Integers code = biased_fp8_codes(x) - kFp8Bias, sign = (bits >> 31) & -128;
  const Integers is_nan = (bits & 0x7fffffff) > 0x7f800000;
  if constexpr (fnuz) return is_nan ? (Integers{} - 128) : code | (sign & (code != 0));
  return (is_nan ? (Integers{} + 0x7f) : code) | sign;
}

// Calls body(column, lanes) for each vector of a row of `columns`.
template <class Body>
inline void for_each_vector(std::int64_t columns, Body body) {
  std::int64_t column = 0;
  for (; column + kLanes <= columns; column += kLanes) body(column, AllLanes{});
  if (column < columns) body(column, FirstLanes{static_cast<int>(columns - column)});
}

// The same, in whole pairs of vectors if `paired`.
template <bool paired, class Body>
inline void for_each_vector_or_pair(std::int64_t columns, Body body) {
  if constexpr (!paired) return for_each_vector(columns, body);
  for (std::int64_t column = 0; column < columns; column += 2 * kLanes) {
    body(column, EvenLanes{});
    body(column + kLanes, OddLanes{});
  }
}

}  // namespace
}  // namespace weft::cpu
