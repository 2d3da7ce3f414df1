#pragma once

// The GPU's product of small matrices on the host, for the emulator and for the interpreter of PTX: D = A x B + C by
// mma.sync.aligned.m16n8k16.row.col.f32, A 16 x 16 and B 16 x 8 of f16 or bf16, C and D 16 x 8 of f32. The PTX ISA
// defines the elements of each lane ("Matrix Fragments for mma.m16n8k16 with floating point type"). With g = lane / 4
// and t = lane % 4, and the first of two elements in the lower half of a word:
//
//   A  words 0 to 3: rows g, g + 8, g, g + 8; columns 2t and 2t + 1, in words 2 and 3 8 more
//   B  words 0 and 1: rows 2t and 2t + 1, in word 1 8 more; column g
//   C  numbers 0 to 3: rows g, g, g + 8, g + 8; columns 2t, 2t + 1, 2t, 2t + 1
//
// Here an element of D is c + a[0] b[0] + ... + a[15] b[15] in this order, each step a fused multiply-add. The order
// and the intermediate rounding of a GPU are not documented and differ between GPUs. Measurements show that a GPU
// computes products exactly, aligns them and c to the largest of them, and drops what is below its last place (Fasi,
// Higham, Mikaitis and Pranesh, Numerical behavior of NVIDIA tensor cores, 2021). Approximations other than exact
// (approximation.h) do the same, eight products at a time: results on a device are compared with bounds, not bits, and
// a kernel must be within its op's bounds for both.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include "emulator/approximation.h"
#include "tensor/bfloat16.h"
#include "tensor/float16.h"

namespace weft::cuda {

enum class MatrixElement : std::uint8_t { f16, bf16 };

// A lane's elements of A and B.
struct MatrixWords {
  std::array<std::uint32_t, 4> a;
  std::array<std::uint32_t, 2> b;
};

// The sum of up to nine exact terms. Bits more than 23 places below the first bit of the largest term are dropped.
inline float truncated_sum(const double* terms, int count) {
  double largest = 0;
  for (int i = 0; i < count; ++i) largest = std::max(largest, std::fabs(terms[i]));
  if (largest == 0) return 0;
  const double unit = std::ldexp(1.0, std::ilogb(largest) - 23);
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += std::trunc(terms[i] / unit) * unit;
  return static_cast<float>(sum);
}

// c + a[0] b[0] + ... + a[15] b[15]. A NaN has the device's bits.
inline float matrix_sum(const std::array<float, 16>& a, const std::array<float, 16>& b, float c) {
  float sum = c;
  for (std::size_t k = 0; k < 16; ++k) sum = __builtin_fmaf(a[k], b[k], sum);
  if (sum != sum) return std::bit_cast<float>(0x7fffffffu);
  if (current_approximation == Approximation::exact || !std::isfinite(sum)) return sum;
  sum = c;
  for (std::size_t first = 0; first < 16; first += 8) {
    double terms[9] = {static_cast<double>(sum)};
    for (std::size_t k = 0; k < 8; ++k)
      terms[k + 1] = static_cast<double>(a[first + k]) * static_cast<double>(b[first + k]);
    sum = truncated_sum(terms, 9);
  }
  return sum;
}

// Element `i` of D in `lane`; `words` has all 32 lanes.
inline float matrix_product(const std::array<MatrixWords, 32>& words, MatrixElement element, std::uint32_t lane,
                            std::uint32_t i, float c) {
  const auto number_of = [element](std::uint32_t word, std::uint32_t half) {
    const auto code = static_cast<std::uint16_t>(word >> 16 * half);
    return element == MatrixElement::f16 ? f16_to_f32(code) : bf16_to_f32(code);
  };
  const std::uint32_t lower = i / 2, column = lane % 4 * 2 + i % 2;
  std::array<float, 16> a, b;
  for (std::uint32_t k = 0; k < 16; ++k) {
    const std::uint32_t in_quad = k % 8 / 2, further = k / 8;
    a[k] = number_of(words[lane / 4 * 4 + in_quad].a[further * 2 + lower], k % 2);
    b[k] = number_of(words[column * 4 + in_quad].b[further], k % 2);
  }
  return matrix_sum(a, b, c);
}

}  // namespace weft::cuda
