#pragma once

// Products of small codes with the tiles of WEFT_TILES, for scaled_linear.cpp. Weights are the left operand, so that
// the rows of a checkpoint, which are columns of the result, are loaded as they are. Rows of the activations are packed
// once for a call as right operands. The sums are transposed when they are stored.

#include WEFT_TILES

#include <cstring>

#ifdef __AVX512BW__
#include <immintrin.h>
#endif

#include "kernels/cpu/lib/scaled_linear_kernels.h"

namespace weft::cpu {
namespace {

constexpr int kTileSide = 16;
static_assert(kScaledColumns == kTileSide);

// One row of a square.
using SquareFloats = float __attribute__((vector_size(4 * kTileSide)));
using SquareIntegers = std::int32_t __attribute__((vector_size(4 * kTileSide)));

struct Square {
  alignas(64) SquareFloats row[kTileSide];
};

// Exchanges the off-diagonal blocks of size `half` of all blocks of twice that size.
template <int half>
WEFT_VECTOR void transpose_blocks(SquareFloats (&rows)[kTileSide]) {
  SquareIntegers upper, lower;
  WEFT_UNROLL for (int i = 0; i < kTileSide; ++i) {
    upper[i] = (i & half) == 0 ? i : kTileSide + i - half;
    lower[i] = (i & half) == 0 ? i + half : kTileSide + i;
  }
  WEFT_UNROLL for (int i = 0; i < kTileSide; ++i) {
    if ((i & half) != 0) continue;
    const SquareFloats a = rows[i], b = rows[i + half];
    rows[i] = __builtin_shuffle(a, b, upper);
    rows[i + half] = __builtin_shuffle(a, b, lower);
  }
}

// sums [16 rows][16 columns] += factors * square [16 columns][16 rows].
inline void add_transposed(const Square& square, const ScaledTiles& tiles, std::int64_t row) {
  SquareFloats rows[kTileSide];
  WEFT_UNROLL for (int i = 0; i < kTileSide; ++i) {
    rows[i] = square.row[i];
    if (tiles.code == TileCode::i8)
      rows[i] = __builtin_convertvector(reinterpret_cast<SquareIntegers>(rows[i]), SquareFloats);
  }
  transpose_blocks<8>(rows), transpose_blocks<4>(rows), transpose_blocks<2>(rows), transpose_blocks<1>(rows);
  SquareFloats columns{};
  if (tiles.column_scale != nullptr) std::memcpy(&columns, tiles.column_scale, sizeof(columns));
  WEFT_UNROLL for (int i = 0; i < kTileSide; ++i) {
    float* to = tiles.sums + (row + i) * kScaledColumns;
    SquareFloats sum;
    std::memcpy(&sum, to, sizeof(sum));
    if (tiles.column_scale != nullptr && row + i < tiles.rows)
      sum += rows[i] * (columns * tiles.row_scale[(row + i) * tiles.row_scale_stride]);
    else
      sum += rows[i];
    std::memcpy(to, &sum, sizeof(sum));
  }
}

template <int sum, int b, TileCode code>
WEFT_VECTOR void square_product(const std::byte* x) {
  tile_load<b>(x, 64);
  if constexpr (code == TileCode::i8)
    tile_dot_i8<sum, 4, b>();
  else
    tile_dot_bf16<sum, 4, b>();
}

// Up to 64 rows: tiles 0 to 3 are their sums, 4 the weights, 5 to 7 the rows.
template <int squares, TileCode code>
void multiply_squares(const ScaledTiles& tiles, std::int64_t row) {
  tile_zero<0>(), tile_zero<1>(), tile_zero<2>(), tile_zero<3>();
  const std::int64_t of_square = tiles.x_steps * kScaledTileBytes;
  const std::byte* x = tiles.x + row / kTileSide * of_square;
  const std::byte* weight = tiles.weight;
  for (std::int64_t step = 0; step < tiles.steps; ++step, weight += kScaledStepBytes, x += kScaledTileBytes) {
    tile_load<4>(weight, tiles.weight_stride);
    square_product<0, 5, code>(x);
    if constexpr (squares > 1) square_product<1, 6, code>(x + of_square);
    if constexpr (squares > 2) square_product<2, 7, code>(x + 2 * of_square);
    if constexpr (squares > 3) square_product<3, 5, code>(x + 3 * of_square);
  }
  Square sums[4] = {};
  tile_store<0>(&sums[0], 64);
  if constexpr (squares > 1) tile_store<1>(&sums[1], 64);
  if constexpr (squares > 2) tile_store<2>(&sums[2], 64);
  if constexpr (squares > 3) tile_store<3>(&sums[3], 64);
  for (int i = 0; i < squares; ++i) add_transposed(sums[i], tiles, row + i * kTileSide);
}

template <TileCode code>
void multiply_rows_of(const ScaledTiles& tiles) {
  const std::int64_t squares = (tiles.rows + kTileSide - 1) / kTileSide;
  for (std::int64_t first = 0; first < squares; first += 4) {
    const std::int64_t row = first * kTileSide;
    if (squares - first == 1)
      multiply_squares<1, code>(tiles, row);
    else if (squares - first == 2)
      multiply_squares<2, code>(tiles, row);
    else if (squares - first == 3)
      multiply_squares<3, code>(tiles, row);
    else
      multiply_squares<4, code>(tiles, row);
  }
}

void multiply_scaled_tiles(const ScaledTiles& tiles) {
  TileShapes shapes;
  for (int tile = 0; tile < 5; ++tile) set_tile_shape(shapes, tile, tiles.columns, 64);
  for (int tile = 5; tile < 8; ++tile) set_tile_shape(shapes, tile, kTileSide, 64);
  const TileScope scope(shapes);
  if (tiles.code == TileCode::i8)
    multiply_rows_of<TileCode::i8>(tiles);
  else
    multiply_rows_of<TileCode::bf16>(tiles);
}

// ---- codes of 8 bits as bf16: exponents of normal codes are moved, and the eight subnormal codes are looked up ----

template <SmallCode code>
struct CodeBits {
  static constexpr bool fnuz = code == SmallCode::f8e4m3fnuz;
  static constexpr int bias = 127 - (fnuz ? 8 : 7), nan = 0x7fc0;
  static constexpr std::uint16_t subnormal(int exponent, int mantissa) {
    return static_cast<std::uint16_t>((bias - 2 + exponent) << 7 | mantissa << 5);
  }
  // By the magnitude of the code; only the first eight are used.
  static constexpr std::uint16_t table[32] = {0,
                                              subnormal(0, 0),
                                              subnormal(1, 0),
                                              subnormal(1, 2),
                                              subnormal(2, 0),
                                              subnormal(2, 1),
                                              subnormal(2, 2),
                                              subnormal(2, 3)};
};

constexpr std::int64_t kCodesAtOnce = 32;

#ifdef __AVX512BW__
// g++ needs twice as many instructions for the same in generic vectors.
template <SmallCode code>
WEFT_VECTOR void widen_codes(const std::uint8_t* from, std::uint16_t* to) {
  using Bits = CodeBits<code>;
  const __m512i codes = _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  const __m512i magnitude = _mm512_and_si512(codes, _mm512_set1_epi16(0x7f));
  __m512i values = _mm512_add_epi16(_mm512_slli_epi16(magnitude, 4), _mm512_set1_epi16(Bits::bias << 7));
  values = _mm512_mask_permutexvar_epi16(values, _mm512_cmplt_epu16_mask(magnitude, _mm512_set1_epi16(8)), magnitude,
                                         _mm512_loadu_si512(Bits::table));
  values = _mm512_or_si512(values, _mm512_and_si512(_mm512_slli_epi16(codes, 8), _mm512_set1_epi16(-0x8000)));
  const __mmask32 is_nan =
      _mm512_cmpeq_epi16_mask(Bits::fnuz ? codes : magnitude, _mm512_set1_epi16(Bits::fnuz ? 0x80 : 0x7f));
  _mm512_storeu_si512(to, _mm512_mask_mov_epi16(values, is_nan, _mm512_set1_epi16(Bits::nan)));
}
#else
template <SmallCode code>
void widen_codes(const std::uint8_t* from, std::uint16_t* to) {
  using Bits = CodeBits<code>;
  for (std::int64_t i = 0; i < kCodesAtOnce; ++i) {
    const int magnitude = from[i] & 0x7f;
    const bool is_nan = Bits::fnuz ? from[i] == 0x80 : magnitude == 0x7f;
    const int value = magnitude < 8 ? Bits::table[magnitude] : (magnitude << 4) + (Bits::bias << 7);
    to[i] = static_cast<std::uint16_t>(is_nan ? Bits::nan : value | (from[i] & 0x80) << 8);
  }
}
#endif

template <SmallCode code>
void widen_to_bf16(const void* from, std::int64_t count, std::uint16_t* to) {
  const auto* bytes = static_cast<const std::uint8_t*>(from);
  std::int64_t i = 0;
  for (; i + kCodesAtOnce <= count; i += kCodesAtOnce) widen_codes<code>(bytes + i, to + i);
  if (i == count) return;
  std::uint8_t rest[kCodesAtOnce] = {};
  std::memcpy(rest, bytes + i, static_cast<unsigned long>(count - i));
  widen_codes<code>(rest, to + i);
}

constexpr ScaledTileKernels kScaledTiles = {
    multiply_scaled_tiles, {widen_to_bf16<SmallCode::f8e4m3>, widen_to_bf16<SmallCode::f8e4m3fnuz>, nullptr}};

}  // namespace
}  // namespace weft::cpu
