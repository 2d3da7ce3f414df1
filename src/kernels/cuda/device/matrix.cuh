#pragma once

// Products of small matrices by the matrix units: D = A x B + C with A 16 x 16, B 16 x 8, C and D 16 x 8. A and B have
// 16-bit elements, C and D f32. emulator/matrix_product.h has the elements of each lane, the emulator's order of sums,
// and the reason why a GPU's results are compared with bounds instead of these bits. The instruction needs sm_80; no
// build is for older devices.

#include "kernels/cuda/device/elements.cuh"

#if !defined(__CUDACC__)
#include "emulator/matrix_product.h"
#endif

namespace weft::cuda {

#if defined(__CUDACC__)
#define WEFT_MATRIX_PRODUCT(element)                                                  \
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." #element "." #element         \
               ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
               : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])           \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
#else
inline void add_matrix_product(const char* kind, MatrixElement element, const std::uint32_t* a, const std::uint32_t* b,
                               float* sums, const Site& site) {
  const MatrixWords own{{a[0], a[1], a[2], a[3]}, {b[0], b[1]}};
  const LaneWords* given = gather_lanes(kind, std::bit_cast<LaneWords>(own), site);
  std::array<MatrixWords, 32> words;
  for (std::size_t lane = 0; lane < 32; ++lane) words[lane] = std::bit_cast<MatrixWords>(given[lane]);
  for (std::uint32_t i = 0; i < 4; ++i) sums[i] = matrix_product(words, element, this_thread().lane(), i, sums[i]);
}
#endif

// sums[4] += a[4] x b[2] of this warp. All 32 lanes must call it together.
WEFT_DEVICE void multiply_matrices(const std::uint32_t* a, const std::uint32_t* b, float* sums, Half WEFT_SITE) {
#if defined(__CUDACC__)
  WEFT_MATRIX_PRODUCT(f16);
#else
  add_matrix_product("matrix product of f16", MatrixElement::f16, a, b, sums, site);
#endif
}
WEFT_DEVICE void multiply_matrices(const std::uint32_t* a, const std::uint32_t* b, float* sums, Brain WEFT_SITE) {
#if defined(__CUDACC__)
  WEFT_MATRIX_PRODUCT(bf16);
#else
  add_matrix_product("matrix product of bf16", MatrixElement::bf16, a, b, sums, site);
#endif
}

}  // namespace weft::cuda
