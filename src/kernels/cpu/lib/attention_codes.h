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

// Exchanges the lanes with bit `width` of the vectors without that bit, and the lanes without it of those with it. The
// stages of all widths transpose kLanes vectors.
template <int width>
inline void transpose_stages(Floats (&rows)[kLanes]) {
  if constexpr (width < kLanes) {
    Integers low, high;
    for (int lane = 0; lane < kLanes; ++lane) {
      const bool is_set = (lane & width) != 0;
      low[lane] = is_set ? lane - width + kLanes : lane;
      high[lane] = is_set ? lane + kLanes : lane + width;
    }
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) {
      if ((i & width) != 0) continue;
      const Floats first = rows[i], second = rows[i + width];
      rows[i] = __builtin_shuffle(first, second, low);
      rows[i + width] = __builtin_shuffle(first, second, high);
    }
    transpose_stages<2 * width>(rows);
  }
}

// Transposes [kChunkTokens][head_dim] to [head_dim][kChunkTokens].
template <int tokens>
inline void transpose_keys(const float* from, std::int64_t head_dim, float* to) {
  static_assert(tokens % kLanes == 0);
  for (int first = 0; first < tokens; first += kLanes) {
    const float* block = from + first * head_dim;
    std::int64_t d = 0;
    for (; d + kLanes <= head_dim; d += kLanes) {
      Floats rows[kLanes];
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) rows[i] = load(block + i * head_dim + d);
      transpose_stages<1>(rows);
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) store(to + (d + i) * tokens + first, rows[i]);
    }
    for (; d < head_dim; ++d)
      for (int i = 0; i < kLanes; ++i) to[d * tokens + first + i] = block[i * head_dim + d];
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
