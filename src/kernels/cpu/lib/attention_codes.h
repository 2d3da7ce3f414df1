#pragma once

// KV pages of codes, f8e4m3 and q8_0, for attention_skeleton.h. Both hold the keys and the values of a token as rows. A
// step's rows are converted to floats, and its keys are transposed, once for all rows of a tile.

#include <cstdint>
#include <cstring>

#include "kernels/cpu/lib/attention_kernels.h"
#include "kernels/cpu/lib/float_vector_operations.h"

namespace weft::cpu {
namespace {

constexpr int kBlockElements = 32;  // of q8_0
// ggml's block_q8_0: value = scale * code.
struct BlockQ8 {
  Half scale;
  std::uint8_t codes[kBlockElements];
};
static_assert(sizeof(BlockQ8) == 34);

template <class Page>
constexpr bool kIsCodes = false;
template <>
constexpr bool kIsCodes<Float8> = true;
template <>
constexpr bool kIsCodes<BlockQ8> = true;

inline int count_of(AllLanes) { return kLanes; }
inline int count_of(FirstLanes lanes) { return lanes.count; }
inline Integers load_bytes(const std::uint8_t* from, AllLanes) { return load_bytes(from); }
inline Integers load_bytes(const std::uint8_t* from, FirstLanes lanes) {
  std::uint8_t buffer[kLanes] = {};
  std::memcpy(buffer, from, static_cast<unsigned>(lanes.count));
  return load_bytes(buffer);
}

// The row of codes from element `element` on, which begins a block.
inline const Float8* row_at(const Float8* codes, std::int64_t element) { return codes + element; }
inline const BlockQ8* row_at(const BlockQ8* blocks, std::int64_t element) { return blocks + element / kBlockElements; }

inline void load_row(const Float8* row, std::int64_t head_dim, float* to) {
  for_each_vector(
      head_dim, [&](std::int64_t d, auto lanes) { store(to + d, fp8_values(load_bytes(&row[d].bits, lanes)), lanes); });
}
inline void load_row(const BlockQ8* row, std::int64_t head_dim, float* to) {
  for (std::int64_t d = 0; d < head_dim; d += kBlockElements, ++row) {
    const Floats scale = fill(load(&row->scale, FirstLanes{1})[0]);
    for (int i = 0; i < kBlockElements; i += kLanes)
      store(to + d + i, __builtin_convertvector(load_signed_bytes(row->codes + i), Floats) * scale);
  }
}

// The tokens whose keys are transposed together, and the bytes of one of them.
constexpr int kKeysTogether = 16;
using KeyBytes = std::uint8_t __attribute__((vector_size(kKeysTogether)));

// Transposes 16 rows of 16 bytes. Each round interleaves the rows of the first half with those of the second.
inline void transpose(KeyBytes (&rows)[kKeysTogether]) {
  constexpr KeyBytes kLow = {0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23};
  constexpr KeyBytes kHigh = {8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  for (int round = 0; round < 4; ++round) {
    KeyBytes next[kKeysTogether];
#pragma GCC unroll 8
    for (int i = 0; i < kKeysTogether / 2; ++i) {
      next[2 * i] = __builtin_shuffle(rows[i], rows[i + kKeysTogether / 2], kLow);
      next[2 * i + 1] = __builtin_shuffle(rows[i], rows[i + kKeysTogether / 2], kHigh);
    }
    std::memcpy(rows, next, sizeof(next));
  }
}

// The keys of 16 tokens as [head_dim][16] floats. `convert(bytes, lane)` gives kLanes values from token `lane` on.
template <class Convert>
inline void store_keys(KeyBytes (&rows)[kKeysTogether], int columns, float* to, Convert convert) {
  transpose(rows);
  for (int i = 0; i < columns; ++i) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(&rows[i]);
    for (int lane = 0; lane < kKeysTogether; lane += kLanes)
      store(to + i * kKeysTogether + lane, convert(bytes + lane, lane));
  }
}
inline void load_keys(const Float8* const (&keys)[kKeysTogether], std::int64_t head_dim, float* to) {
  for (std::int64_t d = 0; d < head_dim; d += kKeysTogether) {
    const int columns = head_dim - d < kKeysTogether ? static_cast<int>(head_dim - d) : kKeysTogether;
    KeyBytes rows[kKeysTogether] = {};
    for (int t = 0; t < kKeysTogether; ++t) std::memcpy(&rows[t], keys[t] + d, static_cast<unsigned>(columns));
    store_keys(rows, columns, to + d * kKeysTogether,
               [](const std::uint8_t* bytes, int) { return fp8_values(load_bytes(bytes)); });
  }
}
inline void load_keys(const BlockQ8* const (&keys)[kKeysTogether], std::int64_t head_dim, float* to) {
  for (std::int64_t d = 0; d < head_dim; d += kBlockElements) {
    Half halves[kKeysTogether];
    for (int t = 0; t < kKeysTogether; ++t) halves[t] = keys[t][d / kBlockElements].scale;
    float scales[kKeysTogether];
    for (int lane = 0; lane < kKeysTogether; lane += kLanes) store(scales + lane, load(halves + lane));
    for (int first = 0; first < kBlockElements; first += kKeysTogether) {
      KeyBytes rows[kKeysTogether];
      for (int t = 0; t < kKeysTogether; ++t)
        std::memcpy(&rows[t], keys[t][d / kBlockElements].codes + first, sizeof(KeyBytes));
      store_keys(rows, kKeysTogether, to + (d + first) * kKeysTogether, [&](const std::uint8_t* bytes, int lane) {
        return __builtin_convertvector(load_signed_bytes(bytes), Floats) * load(scales + lane);
      });
    }
  }
}

template <class From>
void store_row(const From* from, std::int64_t head_dim, Float8* to) {
  for_each_vector(head_dim, [&](std::int64_t d, auto lanes) {
    const Floats x = load(from + d, lanes);
    const Floats held = x == x ? larger(smaller(x, fill(448.0f)), fill(-448.0f)) : x;
    std::int8_t codes[kLanes];
    store_bytes(codes, fp8_codes(held));
    std::memcpy(to + d, codes, static_cast<unsigned>(count_of(lanes)));
  });
}

// x rounded to the nearest integer, halves away from zero.
inline Floats round_away(Floats x) {
  const Floats whole = truncated(x), rest = x - whole;
  const Floats more = rest <= -0.5f ? fill(-1.0f) : Floats{};
  return whole + (rest >= 0.5f ? fill(1.0f) : more);
}

// As ggml quantizes a block: the scale is the largest magnitude / 127. If a value is not finite, all values of the
// block are NaN, so that the logits show it.
template <class From>
void store_row(const From* from, std::int64_t head_dim, BlockQ8* to) {
  for (std::int64_t d = 0; d < head_dim; d += kBlockElements, ++to) {
    Floats magnitudes{};
    Floats are_zero{};  // NaN where a value is not finite
    for (int i = 0; i < kBlockElements; i += kLanes) {
      const Floats x = load(from + d + i);
      magnitudes = larger(absolute(x), magnitudes);
      are_zero = are_zero + (x - x);
    }
    float largest = 0, zero = 0;
    for (int lane = 0; lane < kLanes; ++lane) {
      largest = magnitudes[lane] > largest ? magnitudes[lane] : largest;
      zero += are_zero[lane];
    }
    const bool is_finite = zero == 0;
    const float scale = largest / 127.0f, inverse = is_finite && scale != 0 ? 1.0f / scale : 0.0f;
    store_first(&to->scale, fill(is_finite ? scale : __builtin_nanf("")), 1);
    for (int i = 0; i < kBlockElements; i += kLanes) {
      const Floats code = round_away(load(from + d + i) * inverse);
      const Floats held = is_finite ? smaller(larger(code, fill(-128.0f)), fill(127.0f)) : Floats{};
      std::int8_t codes[kLanes];
      store_bytes(codes, integers_of(held));
      std::memcpy(to->codes + i, codes, sizeof(codes));
    }
  }
}

}  // namespace
}  // namespace weft::cpu
