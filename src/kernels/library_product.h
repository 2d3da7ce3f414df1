#pragma once

// A product that a library of the device computes (LaunchQueue::call_library), as a kernel states it, and the same on
// the host.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "tensor/dtype.h"

namespace weft {

// result[row, column] = x_scale * weight_scale * (sum over k of x[row, k] * weight[column, k]) + bias[column], in f32,
// rounded once. The order of the sum is the library's.
struct LibraryProduct {
  const std::byte* x = nullptr;       // [rows, depth]
  const std::byte* weight = nullptr;  // [columns, depth]
  const std::byte* bias = nullptr;    // [columns], or none
  std::byte* result = nullptr;        // [rows, columns]
  const float* x_scale = nullptr;     // [1], both or none
  const float* weight_scale = nullptr;
  std::int64_t rows = 0, columns = 0, depth = 0;
  std::int64_t x_stride = 0, weight_stride = 0, result_stride = 0;  // from row to row, in elements
  DType dtype = DType::bf16;                                        // of x and the weight
  DType result_dtype = DType::bf16;                                 // and of the bias
};

// The function of the library, as a queue knows it; its argument is a LibraryProduct.
inline constexpr const char* kLibraryProduct = "cublasLtMatmul";

// "bf16[5, 64] times the transpose of bf16[48, 64] to bf16[5, 48], with a bias"
std::string product_text(const LibraryProduct& product);

// Sums of eight partial sums, element k in number k % 8. As many rows at a time are widened as `workspace` has room for
// depth elements: InternalError where that is none.
void multiply_on_host(const LibraryProduct& product, std::span<float> workspace);

}  // namespace weft
