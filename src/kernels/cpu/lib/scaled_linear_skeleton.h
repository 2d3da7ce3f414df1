#pragma once

// Products of rows of small codes for one instruction set (WEFT_FLOAT_VECTORS: see float_vector_operations.h).

#include <cstdint>

#include "kernels/cpu/lib/float_vector_operations.h"
#include "kernels/cpu/lib/integer_dots.h"
#include "kernels/cpu/lib/scaled_linear_kernels.h"

namespace weft::cpu {
namespace {

template <Floats (*values)(Integers)>
void widen_bytes(const void* from, float scale, float* to, std::int64_t count) {
  const auto* codes = static_cast<const std::uint8_t*>(from);
  const Floats factor = fill(scale);
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(to + i, values(load_bytes(codes + i)) * factor);
  if (i == count) return;
  std::uint8_t rest[kLanes] = {};
  std::memcpy(rest, codes + i, static_cast<unsigned long>(count - i));
  store_first(to + i, values(load_bytes(rest)) * factor, static_cast<int>(count - i));
}

// Each value is twice that of its code. The sign of -0 does not matter for a sum.
void widen_fours(const void* from, float scale, float* to, std::int64_t count) {
  using Bytes = std::int8_t __attribute__((vector_size(16)));
  using Words64 = std::int64_t __attribute__((vector_size(16)));
  constexpr Bytes kTwice = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  constexpr Bytes kInTurn = {0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23};
  const Floats factor = fill(scale) * 0.5f;
  for (std::int64_t i = 0; i < count; i += 16) {
    std::int64_t word;
    std::memcpy(&word, static_cast<const std::uint8_t*>(from) + i / 2, sizeof(word));
    const Bytes pairs = reinterpret_cast<Bytes>(Words64{word, 0});
    const Bytes codes = __builtin_shuffle(pairs & 15, (pairs >> 4) & 15, kInTurn);
    const Bytes twice = __builtin_shuffle(kTwice, codes);
    std::uint8_t bytes[16];
    std::memcpy(bytes, &twice, sizeof(bytes));
    for (int part = 0; part < 16; part += kLanes)
      store(to + i + part, __builtin_convertvector(load_signed_bytes(bytes + part), Floats) * factor);
  }
}

inline float total(Floats x) {
  float lanes[kLanes];
  store(lanes, x);
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  return lanes[0];
}

template <int rows>
__attribute__((noinline)) void multiply_rows(const ScaledTile& tile, std::int64_t row) {
  Floats sums[rows][kScaledTileColumns];
  for (auto& of_row : sums)
    for (Floats& sum : of_row) sum = fill(0.0f);
  const float* x = tile.x + row * tile.x_stride;
  for (std::int64_t k = 0; k < tile.depth; k += kLanes) {
    Floats values[rows];
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) values[r] = load(x + r * tile.x_stride + k);
#pragma GCC unroll 8
    for (int c = 0; c < kScaledTileColumns; ++c) {
      const Floats weight = load(tile.weight + c * tile.weight_stride + k);
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) sums[r][c] = multiply_add(weight, values[r], sums[r][c]);
    }
  }
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < kScaledTileColumns; ++c) tile.sums[(row + r) * kScaledColumns + c] += total(sums[r][c]);
}

void multiply_tile(const ScaledTile& tile) {
  std::int64_t row = 0;
  for (; row + 3 <= tile.rows; row += 3) multiply_rows<3>(tile, row);
  if (tile.rows - row == 2) multiply_rows<2>(tile, row);
  if (tile.rows - row == 1) multiply_rows<1>(tile, row);
}

template <class T>
void finish_rows(const ScaledFinish& task) {
  for (std::int64_t row = 0; row < task.rows; ++row) {
    const float* sums = task.sums + row * kScaledColumns;
    T* to = static_cast<T*>(task.output) + row * task.output_stride;
    for_each_vector(task.columns, [&](std::int64_t column, auto lanes) {
      Floats y = load(sums + column);
      if (task.column_scale != nullptr) y *= load(task.column_scale + column);
      if (task.row_scale != nullptr) y *= fill(task.row_scale[row * task.row_scale_stride]);
      if (task.bias != nullptr) y += load(task.bias + column);
      store(to + column, y, lanes);
    });
  }
}

constexpr ScaledLinearKernels make_scaled_linear_kernels() {
  return {{widen_bytes<fp8_values>, widen_bytes<fnuz_values>, widen_fours},
          multiply_tile,
          multiply_integer_tile,
          {finish_rows<float>, finish_rows<Half>, finish_rows<Brain>},
          nullptr};
}

}  // namespace
}  // namespace weft::cpu
