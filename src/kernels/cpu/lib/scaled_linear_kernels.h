#pragma once

// The functions of scaled_linear_skeleton.h for scaled_linear.cpp: one table per instruction set. Plain types only:
// these objects must instantiate nothing of std.

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/lib/element.h"

namespace weft::cpu {

enum class SmallCode : std::uint8_t { f8e4m3, f8e4m3fnuz, f4e2m1 };
inline constexpr int kSmallCodes = 3;

// Columns whose weights are widened together, and columns of one piece of work.
inline constexpr int kScaledTileColumns = 4;
inline constexpr int kScaledColumns = 16;
// Widened rows are padded with zeros to a multiple of this.
inline constexpr int kScaledPadding = 16;

struct ScaledTile {
  const float* weight = nullptr;  // [kScaledTileColumns, depth]
  std::int64_t weight_stride = 0;
  const float* x = nullptr;  // [rows, depth]
  std::int64_t x_stride = 0;
  std::int64_t depth = 0;  // a multiple of kScaledPadding
  std::int64_t rows = 0;
  float* sums = nullptr;  // [rows, kScaledColumns]: the products are added to the first kScaledTileColumns of each
};

// Products of integers, exact if depth is at most kDeepestIntegers.
struct IntegerTile {
  const std::int8_t* weight = nullptr;  // [columns, depth]
  std::int64_t weight_stride = 0;
  int columns = 0;                  // 1 to kScaledColumns
  const std::int16_t* x = nullptr;  // [rows, depth], each in [-128, 127]; zeros up to a multiple of kIntegerPadding
  std::int64_t x_stride = 0;
  std::int64_t depth = 0;
  std::int64_t rows = 0;
  std::int32_t* sums = nullptr;  // [rows, kScaledColumns]: the first `columns` of each are set
};
inline constexpr std::int64_t kIntegerPadding = 32;
inline constexpr std::int64_t kDeepestIntegers = (std::int64_t{1} << 31) / (128 * 128) - 1;

// output = sums * column_scale * row_scale + bias, rounded to the output's element.
struct ScaledFinish {
  const float* sums = nullptr;  // [rows, kScaledColumns]
  std::int64_t rows = 0;
  int columns = 0;                      // 1 to kScaledColumns
  const float* column_scale = nullptr;  // [kScaledColumns]; null for none
  const float* row_scale = nullptr;     // null for none
  std::int64_t row_scale_stride = 0;
  const float* bias = nullptr;  // [kScaledColumns]; null for none
  void* output = nullptr;
  std::int64_t output_stride = 0;  // elements
};

enum class TileCode : std::uint8_t { i8, bf16 };
inline constexpr std::int64_t kScaledStepBytes = 64;  // of the depth of one row
inline constexpr std::int64_t kScaledTileBytes = 1024;
inline constexpr std::int64_t kScaledTileRows = 16;

// Products of rows and columns in tiles (amx_tiles.h), added to sums.
struct ScaledTiles {
  TileCode code = TileCode::i8;
  const std::byte* weight = nullptr;  // [columns, kScaledStepBytes * steps]
  std::int64_t weight_stride = 0;     // bytes
  int columns = 0;                    // 1 to kScaledColumns
  // [rows / 16, 16 * x_steps, 16 rows, 4 bytes] from the first step on; the last 16 rows are filled up with zeros.
  const std::byte* x = nullptr;
  std::int64_t x_steps = 0;
  std::int64_t steps = 0;
  std::int64_t rows = 0;
  // Factors of the products; null for none.
  const float* column_scale = nullptr;  // [kScaledColumns]
  const float* row_scale = nullptr;
  std::int64_t row_scale_stride = 0;
  float* sums = nullptr;  // [rows, kScaledColumns], with rows up to a multiple of 16
};

struct ScaledTileKernels {
  void (*multiply)(const ScaledTiles&);
  // The values of codes of 8 bits as bf16, which is exact; zeros up to a multiple of 32.
  void (*widen[kSmallCodes])(const void* codes, std::int64_t count, std::uint16_t* to);  // null for f4e2m1
};
extern const ScaledTileKernels scaled_tile_kernels_amx;

struct ScaledLinearKernels {
  // to[i] = the value of code i times scale. Two codes of f4e2m1 are in a byte, the even one in the low bits; their
  // count is a multiple of 16.
  void (*widen[kSmallCodes])(const void* codes, float scale, float* to, std::int64_t count);
  // The order of a sum depends on depth only, not on the number of rows.
  void (*multiply)(const ScaledTile&);
  void (*multiply_integers)(const IntegerTile&);
  void (*finish[kElements])(const ScaledFinish&);
  const ScaledTileKernels* tiles = nullptr;  // null for none
};
extern const ScaledLinearKernels scaled_linear_kernels_baseline;
extern const ScaledLinearKernels scaled_linear_kernels_avx2;
extern const ScaledLinearKernels scaled_linear_kernels_avx512;

}  // namespace weft::cpu
