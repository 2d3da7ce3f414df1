#pragma once

// Quantizes values to NVFP4, with the bits of scaled_fp4_quant's meaning, for one instruction set (WEFT_FLOAT_VECTORS:
// see float_vector_operations.h): f4e2m1 codes of groups of 16, two per byte, and the f8e4m3 codes of their scales.

#include <cstdint>
#include <cstring>

#include "kernels/cpu/lib/quantize_fp8.h"

namespace weft::cpu {
namespace {

constexpr std::int64_t kFp4GroupsOfBlock = kBlockColumns / kFp4Group;

// Codes of f4e2m1; NaN becomes 7. A magnitude is added to 2^22 times the power of two below it, or to 2^22 if it is
// below 1. The low bits of the sum are then the multiple of the code's last place. The addend also contains the code of
// that power, 254 too large.
inline Integers fp4_codes(Floats x) {
  constexpr int kBias = 254;
  const Floats held = at_most(at_least(x, -6.0f), 6.0f);
  const Integers bits = bits_of(held) & 0x7f800000;
  const Words power = reinterpret_cast<Words>(bits > 0x3f800000 ? bits : Integers{} + 0x3f800000);
  const Floats sum = absolute(held) + reinterpret_cast<Floats>(power + ((power >> 22) + (22u << 23)));
  const Integers code = ((bits_of(sum) & 0x1ff) - kBias) | ((bits_of(held) >> 28) & 8);
  return held == held ? code : Integers{} + 7;
}

inline Floats reciprocal_or_zero(Floats x) { return x == 0.0f ? fill(0.0f) : 1.0f / x; }

template <class F>
inline void store_fp4_group(std::int8_t* to, const typename F::Element* x, std::int64_t first, float inverse) {
  using Pairs = std::uint16_t __attribute__((vector_size(kFp4Group)));
  using Bytes = std::uint8_t __attribute__((vector_size(kFp4Group / 2)));
  const Floats factor = fill(inverse);
  std::int8_t codes[kFp4Group];
#pragma GCC unroll 4
  for (int i = 0; i < kFp4Group; i += kLanes) {
    // Adding 0 removes the sign of -0.
    store_bytes(codes + i, fp4_codes(load_in_order<F>(x, first + i, AllLanes{}) * factor + 0.0f));
  }
  Pairs pairs;
  std::memcpy(&pairs, codes, sizeof(pairs));
  const Bytes bytes = __builtin_convertvector((pairs | pairs >> 4) & 0xff, Bytes);
  std::memcpy(to, &bytes, sizeof(bytes));
}

// The index of a scale in tiles of 128 rows and 4 groups, in the layout of swizzle_scale.
inline std::int64_t place_in_tiles(std::int64_t row, std::int64_t group, std::int64_t tiles) {
  return (row / 128 * tiles + group / 4) * 512 + row % 32 * 16 + row % 128 / 32 * 4 + group % 4;
}

inline void give_fp4_scales(const QuantTask& task, std::int64_t row, std::int64_t group, const std::int8_t* codes,
                            std::int64_t count) {
  if (task.scale_tiles == 0) {
    std::memcpy(task.scale_codes + row * task.scales_stride + group, codes, static_cast<std::size_t>(count));
    return;
  }
  for (std::int64_t i = 0; i < count; ++i)
    task.scale_codes[place_in_tiles(task.first_row + row, task.first_group + group + i, task.scale_tiles)] = codes[i];
}

template <class F>
inline void quantize_fp4_groups(const QuantTask& task, const Part<F>& part) {
  float inverse[kFp4GroupsOfBlock];
  std::int8_t scales[kFp4GroupsOfBlock];
  const std::int64_t count = part.columns / kFp4Group;
  for (std::int64_t i = 0; i < count; ++i) inverse[i] = largest_magnitude(part.x + i * kFp4Group, kFp4Group);
  const Floats global_scale = fill(task.global_scale), inverse_of_all = reciprocal_or_zero(global_scale);
  for_each_vector(count, [&](std::int64_t group, auto lanes) {
    const Floats scale = load(inverse + group, lanes) * static_cast<float>(1.0 / 6) * global_scale;
    const Integers codes = fp8_codes(at_most(at_least(scale, -448.0f), 448.0f));
    store_bytes(scales + group, codes, lanes);
    store(inverse + group, reciprocal_or_zero(fp8_values(codes) * inverse_of_all), lanes);
  });
  give_fp4_scales(task, part.row, part.group, scales, count);
  for (std::int64_t i = 0; i < count; ++i)
    store_fp4_group<F>(part.codes + i * (kFp4Group / 2), part.x, i * kFp4Group, inverse[i]);
}

}  // namespace
}  // namespace weft::cpu
