#pragma once

// The operations of vector.h in plain loops, 16 lanes. With them, tests run the skeletons for AVX-512 on any host.
// WEFT_EMULATED_DOTS adds the 32-bit and bf16 dots.

#include <cmath>
#include <cstring>

#include "kernels/cpu/lib/flushed.h"
#include "kernels/cpu/lib/vector.h"
#include "tensor/bfloat16.h"
#include "tensor/float16.h"

#define WEFT_FUSED_MULTIPLY_ADD

namespace weft::cpu {
namespace {

constexpr int kLanes = 16;
constexpr int kFloatTileRows = 8;
struct Floats {
  float lane[kLanes];
};
struct Codes {
  std::int8_t byte[4 * kLanes];
};

template <class Function>
Floats floats_of(Function function) {
  Floats result;
  for (int i = 0; i < kLanes; ++i) result.lane[i] = function(i);
  return result;
}
template <class Function>
Codes words_of(Function function) {
  Codes result;
  for (int i = 0; i < kLanes; ++i) {
    const std::uint32_t word = static_cast<std::uint32_t>(function(i));
    std::memcpy(result.byte + 4 * i, &word, 4);
  }
  return result;
}
template <class Function>
Codes bytes_of_codes(Function function) {
  Codes result;
  for (int i = 0; i < 4 * kLanes; ++i) result.byte[i] = static_cast<std::int8_t>(function(i));
  return result;
}
template <class Word>
Word word_at(const Codes& x, int index) {
  Word word;
  std::memcpy(&word, x.byte + index * static_cast<int>(sizeof(Word)), sizeof(Word));
  return word;
}
inline std::uint16_t sixteen_at(const void* from, int index) {
  std::uint16_t code;
  std::memcpy(&code, static_cast<const std::byte*>(from) + 2 * index, 2);
  return code;
}

inline Floats spread(float x) {
  return floats_of([x](int) { return x; });
}
inline Floats zero_floats() { return spread(0); }
inline Floats load_floats(const void* from) {
  Floats x;
  std::memcpy(&x, from, sizeof(x));
  return x;
}
inline void store_floats(void* to, Floats x) { std::memcpy(to, &x, sizeof(x)); }
// Whether the calling thread is in a scope of SubnormalsAsZeros.
inline thread_local bool subnormals_are_zeros = false;
class SubnormalsAsZeros {
 public:
  SubnormalsAsZeros() { subnormals_are_zeros = true; }
  ~SubnormalsAsZeros() { subnormals_are_zeros = false; }
};
inline Floats add(Floats a, Floats b) {
  return floats_of(
      [&](int i) { return subnormals_are_zeros ? flushed_sum(a.lane[i], b.lane[i]) : a.lane[i] + b.lane[i]; });
}
inline Floats multiply(Floats a, Floats b) {
  return floats_of([&](int i) { return a.lane[i] * b.lane[i]; });
}
inline Floats fused_multiply_add(Floats a, Floats b, Floats c) {
  return floats_of([&](int i) {
    return subnormals_are_zeros ? flushed_fma(a.lane[i], b.lane[i], c.lane[i])
                                : std::fma(a.lane[i], b.lane[i], c.lane[i]);
  });
}
inline Floats multiply_add(Floats a, Floats b, Floats c) { return fused_multiply_add(a, b, c); }

inline Floats load_halves(const void* from) {
  return floats_of([&](int i) { return f16_to_f32(sixteen_at(from, i)); });
}
inline Floats load_bfloats(const void* from) {
  return floats_of([&](int i) { return bf16_to_f32(sixteen_at(from, i)); });
}
inline void store_halves(void* to, Floats x) {
  for (int i = 0; i < kLanes; ++i) {
    const std::uint16_t code = f32_to_f16(x.lane[i]);
    std::memcpy(static_cast<std::byte*>(to) + 2 * i, &code, 2);
  }
}
inline void store_bfloats(void* to, Floats x) {
  for (int i = 0; i < kLanes; ++i) {
    const std::uint16_t code = f32_to_bf16(x.lane[i]);
    std::memcpy(static_cast<std::byte*>(to) + 2 * i, &code, 2);
  }
}

inline Codes bfloat_bits(Floats x) {
  return words_of([&](int i) { return static_cast<std::int32_t>(f32_to_bf16(x.lane[i])); });
}
inline void store_normal_bfloats(void* to, Floats x) { store_bfloats(to, x); }

inline Codes zero_codes() {
  return words_of([](int) { return 0; });
}
inline Codes load_codes(const void* from) {
  Codes x;
  std::memcpy(&x, from, sizeof(x));
  return x;
}
inline void store_codes(void* to, Codes x) { std::memcpy(to, &x, sizeof(x)); }
inline Codes subtract_bytes(Codes x, int y) {
  return bytes_of_codes([&](int i) { return x.byte[i] - y; });
}
inline Codes spread_four(const void* from) {
  std::uint32_t word;
  std::memcpy(&word, from, 4);
  return words_of([word](int) { return word; });
}
inline Codes low_nibbles(Codes x) {
  return bytes_of_codes([&](int i) { return x.byte[i] & 15; });
}
inline Codes high_nibbles(Codes x) {
  return bytes_of_codes([&](int i) { return x.byte[i] >> 4 & 15; });
}
inline Codes move_bits(Codes x, int from, int to, int bits) {
  return bytes_of_codes(
      [&](int i) { return (static_cast<std::uint8_t>(x.byte[i]) >> from & ((1 << bits) - 1)) << to; });
}
inline Codes either(Codes a, Codes b) {
  return bytes_of_codes([&](int i) { return a.byte[i] | b.byte[i]; });
}
inline Codes flip_bits(Codes a, Codes b) {
  return bytes_of_codes([&](int i) { return a.byte[i] ^ b.byte[i]; });
}
inline Codes add_bytes(Codes a, Codes b) {
  return bytes_of_codes([&](int i) { return a.byte[i] + b.byte[i]; });
}
inline Codes load_table(const void* from) {
  return bytes_of_codes([&](int i) { return static_cast<const std::int8_t*>(from)[i % 16]; });
}
inline Codes look_up(Codes table, Codes x) {
  return bytes_of_codes([&](int i) { return x.byte[i] < 0 ? std::int8_t{0} : table.byte[x.byte[i]]; });
}
inline Codes load_signed(const void* from) {
  return words_of([&](int i) { return static_cast<const std::int8_t*>(from)[i]; });
}
inline Codes load_unsigned(const void* from) {
  return words_of([&](int i) { return static_cast<const std::uint8_t*>(from)[i]; });
}
// The product of byte `i`; the weight's byte is unsigned.
inline int product_at(const Codes& weight, const Codes& x, int i) {
  return static_cast<std::uint8_t>(weight.byte[i]) * x.byte[i];
}
inline Codes whole_pairs(const Codes& sum, int factor) {
  return words_of(
      [&](int i) { return factor * (word_at<std::int16_t>(sum, 2 * i) + word_at<std::int16_t>(sum, 2 * i + 1)); });
}
inline Codes whole_dot(Codes low, Codes high) {
  const Codes a = whole_pairs(low, 1), b = whole_pairs(high, 16);
  return words_of([&](int i) { return word_at<std::uint32_t>(a, i) + word_at<std::uint32_t>(b, i); });
}

template <int index>
Codes nibble(Codes x) {
  return words_of([&](int i) { return word_at<std::uint32_t>(x, i) >> (4 * index) & 15; });
}
template <int index>
Codes byte(Codes x) {
  return words_of([&](int i) { return word_at<std::uint32_t>(x, i) >> (8 * index) & 255; });
}
inline Codes load_shorts(const void* from) {
  return words_of([&](int i) { return sixteen_at(from, i); });
}
template <int count>
Codes shift_left(Codes x) {
  return words_of([&](int i) { return word_at<std::uint32_t>(x, i) << count; });
}
template <int count>
Codes shift_right(Codes x) {
  return words_of([&](int i) { return word_at<std::uint32_t>(x, i) >> count; });
}
inline Codes lane_bits(Codes x, int bits) {
  return words_of([&](int i) { return word_at<std::int32_t>(x, i) & bits; });
}
inline Floats as_floats(Codes x) {
  return floats_of([&](int i) { return word_at<float>(x, i); });
}
inline Codes add(Codes a, Codes b) {
  return words_of([&](int i) { return word_at<std::uint32_t>(a, i) + word_at<std::uint32_t>(b, i); });
}
inline Codes subtract(Codes x, int y) {
  return words_of([&](int i) { return word_at<std::int32_t>(x, i) - y; });
}
inline Floats to_floats(Codes x) {
  return floats_of([&](int i) { return static_cast<float>(word_at<std::int32_t>(x, i)); });
}
inline Floats even_bfloats(Codes x) {
  return floats_of([&](int i) { return bf16_to_f32(word_at<std::uint16_t>(x, 2 * i)); });
}
inline Floats odd_bfloats(Codes x) {
  return floats_of([&](int i) { return bf16_to_f32(word_at<std::uint16_t>(x, 2 * i + 1)); });
}

#ifdef WEFT_EMULATED_DOTS
constexpr bool kWideDot = true;
inline Codes dot(Codes sum, Codes weight, Codes x) {
  return words_of([&](int i) {
    int total = word_at<std::int32_t>(sum, i);
    for (int j = 4 * i; j < 4 * i + 4; ++j) total += product_at(weight, x, j);
    return total;
  });
}
inline Codes whole_dot(Codes sum) { return sum; }
inline Floats bfloat_dot(Floats sum, Codes a, Codes b) {
  return fused_multiply_add(odd_bfloats(a), odd_bfloats(b), fused_multiply_add(even_bfloats(a), even_bfloats(b), sum));
}
#else
constexpr bool kWideDot = false;
// Pairs of products saturate at 16 bits, as the processor's do; sums wrap.
inline Codes dot(Codes sum, Codes weight, Codes x) {
  Codes result;
  for (int i = 0; i < 2 * kLanes; ++i) {
    int pair = product_at(weight, x, 2 * i) + product_at(weight, x, 2 * i + 1);
    pair = pair > INT16_MAX ? INT16_MAX : pair < INT16_MIN ? INT16_MIN : pair;
    const auto total = static_cast<std::uint16_t>(word_at<std::uint16_t>(sum, i) + static_cast<std::uint16_t>(pair));
    std::memcpy(result.byte + 2 * i, &total, 2);
  }
  return result;
}
inline Codes whole_dot(Codes sum) { return whole_pairs(sum, 1); }
#endif

}  // namespace
}  // namespace weft::cpu
