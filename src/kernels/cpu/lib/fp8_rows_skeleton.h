#pragma once

// Quantisation of rows to f8e4m3 for one instruction set (WEFT_FLOAT_VECTORS: see float_vector_operations.h), with the
// bits of the ops' meanings.

#include "kernels/cpu/lib/fp8_rows_kernels.h"
#include "kernels/cpu/lib/quantised_rows_skeleton.h"

namespace weft::cpu {
namespace {

// f8e4m3 codes of numbers held to [-448, 448] or NaN, to the nearest, ties to even; sign-extended. Below 2^-6, adding
// 2^14 leaves the multiple of 2^-9 in the low bits.
inline Integers f8e4m3_codes(Floats x) {
  const Integers bits = bits_of(x), magnitude = bits & 0x7fffffff;
  const Integers normal = (wrapping_sum(magnitude, ((magnitude >> 20) & 1) + 0x7ffff) >> 20) - (120 << 3);
  const Integers small = bits_of(floats_of(magnitude) + 0x1p14f) - 0x46800000;
  const Integers code = magnitude < 0x3c800000 ? small : normal;
  return (magnitude > 0x7f800000 ? (Integers{} + 0x7f) : code) | ((bits >> 31) & -128);
}

// The power of two at or above x >= 0; 0, infinity and NaN as they are.
inline float power_of_two_above(float x) {
  const std::uint32_t bits = bits_of_float(x);
  if (bits == 0 || bits >= kFloatInfinity) return x;
  if (bits > 0x7fffffu) return float_of_bits((bits + 0x7fffffu) & 0x7f800000u);
  std::uint32_t power = 1;  // of a denormal, whose bits count its smallest parts
  while (power < bits) power *= 2;
  return float_of_bits(power);
}

// As the meanings' clamp, minimum and div_scalar treat a NaN: it passes.
inline float fp8_scale(float magnitude, const Fp8RowsTask& task) {
  if (magnitude < task.least_magnitude) magnitude = task.least_magnitude;
  if (task.has_bound && !(magnitude != magnitude) && !(magnitude < task.bound)) magnitude = task.bound;
  float scale = task.scale_by_reciprocal ? magnitude * static_cast<float>(1.0 / 448) : magnitude / 448.0f;
  if (task.power_of_two) scale = power_of_two_above(scale < task.least_power ? task.least_power : scale);
  return scale < task.least_scale ? task.least_scale : scale;
}

template <bool by_reciprocal, class T>
inline void store_fp8_codes(std::int8_t* codes, const T* x, std::int64_t columns, float scale) {
  const float divisor = by_reciprocal ? 1.0f / scale : scale;
  for_each_vector(columns, [&](std::int64_t column, auto lanes) {
    const Floats values = load(x + column, lanes);
    const Floats scaled = by_reciprocal ? values * divisor : values / divisor;
    store_bytes(codes + column, f8e4m3_codes(at_most(at_least(scaled, -448.0f), 448.0f)), lanes);
  });
}

template <class T>
void fp8_rows(const Fp8RowsTask& task) {
  for (std::int64_t row = 0; row < task.rows; ++row) {
    const T* x = row_of<T>(task.x, row, task.x_stride);
    std::int8_t* codes = task.codes + row * task.codes_stride;
    float* scales = task.scales + row * task.scales_stride;
    for (std::int64_t first = 0; first < task.columns; first += task.group, scales += task.scales_step) {
      const std::int64_t columns = task.columns - first < task.group ? task.columns - first : task.group;
      const float scale = fp8_scale(largest_magnitude(x + first, columns), task);
      *scales = scale;
      task.codes_by_reciprocal ? store_fp8_codes<true>(codes + first, x + first, columns, scale)
                               : store_fp8_codes<false>(codes + first, x + first, columns, scale);
    }
  }
}

constexpr Fp8RowsKernels make_fp8_rows_kernels() {
  return {.rows = {fp8_rows<float>, fp8_rows<Half>, fp8_rows<Brain>}};
}

}  // namespace
}  // namespace weft::cpu
