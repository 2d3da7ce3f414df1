#pragma once

// Sums of products of small integers, for the instruction set that the object is built for.

#include <cstdint>
#include <cstring>

#include <immintrin.h>

#include "kernels/cpu/lib/scaled_linear_kernels.h"

namespace weft::cpu {
namespace {

#if defined(__AVX512BW__)
constexpr int kShorts = 32;
using Shorts = __m512i;
inline Shorts load_shorts(const std::int16_t* from) { return _mm512_loadu_si512(from); }
inline Shorts widened_bytes(const std::int8_t* from) {
  return _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}
inline Shorts zero_sums() { return _mm512_setzero_si512(); }
// Adds two products to each of 16 sums.
inline Shorts add_products(Shorts sums, Shorts a, Shorts b) { return _mm512_add_epi32(sums, _mm512_madd_epi16(a, b)); }
inline void store_sums(std::int32_t* to, Shorts sums) { _mm512_storeu_si512(to, sums); }
#elif defined(__AVX2__)
constexpr int kShorts = 16;
using Shorts = __m256i;
inline Shorts load_shorts(const std::int16_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
inline Shorts widened_bytes(const std::int8_t* from) {
  return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
inline Shorts zero_sums() { return _mm256_setzero_si256(); }
inline Shorts add_products(Shorts sums, Shorts a, Shorts b) { return _mm256_add_epi32(sums, _mm256_madd_epi16(a, b)); }
inline void store_sums(std::int32_t* to, Shorts sums) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), sums); }
#else
constexpr int kShorts = 8;
using Shorts = __m128i;
inline Shorts load_shorts(const std::int16_t* from) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); }
inline Shorts widened_bytes(const std::int8_t* from) {
  return _mm_cvtepi8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
}
inline Shorts zero_sums() { return _mm_setzero_si128(); }
inline Shorts add_products(Shorts sums, Shorts a, Shorts b) { return _mm_add_epi32(sums, _mm_madd_epi16(a, b)); }
inline void store_sums(std::int32_t* to, Shorts sums) { _mm_storeu_si128(reinterpret_cast<__m128i*>(to), sums); }
#endif
static_assert(kIntegerPadding % kShorts == 0);

inline std::int32_t total_of(Shorts sums) {
  std::int32_t lanes[kShorts / 2];
  store_sums(lanes, sums);
  for (int half = kShorts / 4; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  return lanes[0];
}

template <int rows, int columns>
__attribute__((noinline)) void multiply_integers(const IntegerTile& tile, std::int64_t row, int column) {
  Shorts sums[rows][columns];
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
    for (int c = 0; c < columns; ++c) sums[r][c] = zero_sums();
  const std::int16_t* x = tile.x + row * tile.x_stride;
  const auto add = [&](const std::int8_t* weight, std::int64_t weight_stride, std::int64_t k)
      __attribute__((always_inline)) {
    Shorts values[rows];
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) values[r] = load_shorts(x + r * tile.x_stride + k);
#pragma GCC unroll 4
    for (int c = 0; c < columns; ++c) {
      const Shorts codes = widened_bytes(weight + c * weight_stride);
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r) {
        sums[r][c] = add_products(sums[r][c], codes, values[r]);
        // Otherwise g++ multiplies all of them first, and runs out of registers.
        asm("" : "+x"(sums[r][c]));
      }
      // Columns are short, so the hardware prefetcher does not find the next ones in time.
      __builtin_prefetch(weight + (c + columns) * weight_stride);
    }
  };
  const std::int8_t* weight = tile.weight + column * tile.weight_stride;
  std::int64_t k = 0;
  for (; k + kShorts <= tile.depth; k += kShorts) add(weight + k, tile.weight_stride, k);
  if (k < tile.depth) {
    std::int8_t rest[columns][kShorts] = {};
    for (int c = 0; c < columns; ++c)
      std::memcpy(rest[c], weight + c * tile.weight_stride + k, static_cast<unsigned long>(tile.depth - k));
    add(rest[0], kShorts, k);
  }
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
    for (int c = 0; c < columns; ++c) tile.sums[(row + r) * kScaledColumns + column + c] = total_of(sums[r][c]);
}

template <int columns>
void multiply_integer_columns(const IntegerTile& tile, int column) {
  std::int64_t row = 0;
  for (; row + 3 <= tile.rows; row += 3) multiply_integers<3, columns>(tile, row, column);
  if (tile.rows - row == 2) multiply_integers<2, columns>(tile, row, column);
  if (tile.rows - row == 1) multiply_integers<1, columns>(tile, row, column);
}

void multiply_integer_tile(const IntegerTile& tile) {
  int column = 0;
  for (; column + kScaledTileColumns <= tile.columns; column += kScaledTileColumns)
    multiply_integer_columns<kScaledTileColumns>(tile, column);
  for (; column < tile.columns; ++column) multiply_integer_columns<1>(tile, column);
}

}  // namespace
}  // namespace weft::cpu
