#pragma once

// A product that a library of the device computes (LaunchQueue::call_library), as a kernel states it, and the same on
// the host.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "tensor/dtype.h"

namespace weft {

// What scales of codes belong to.
//   whole   x_scale [1], weight_scale [1]
//   rows    x_scale [rows], weight_scale [columns]
//   blocks  x_scale [groups][rows], 128 elements of a row side by side being a group; weight_scale
//           [ceil(columns / 128)][groups] for blocks of 128 x 128. The last groups and blocks may be short; rows of
//           x_scale and groups of weight_scale are made up to whole steps of four.
enum class ProductScales : std::uint8_t { none, whole, rows, blocks };

inline constexpr std::int64_t kScaleBlock = 128;
inline constexpr std::int64_t kScaleStep = 4;

// result[row, column] = (sum over k of x[row, k] * weight[column, k], each times the scales of both) + bias[column], in
// f32, rounded once. The order of the sum is the library's.
struct LibraryProduct {
  const std::byte* x = nullptr;       // [rows, depth]
  const std::byte* weight = nullptr;  // [columns, depth]
  const std::byte* bias = nullptr;    // [columns], or none
  std::byte* result = nullptr;        // [rows, columns]
  const float* x_scale = nullptr;     // as `scales` says
  const float* weight_scale = nullptr;
  // Room for padded_product_bytes with scales of blocks, where rows are no whole steps. Contents undefined.
  std::byte* scratch = nullptr;
  std::int64_t rows = 0, columns = 0, depth = 0;
  std::int64_t x_stride = 0, weight_stride = 0, result_stride = 0;  // from row to row, in elements
  DType dtype = DType::bf16;                                        // of x and the weight
  DType result_dtype = DType::bf16;                                 // and of the bias
  ProductScales scales = ProductScales::none;
};

// The function of the library, as a queue knows it; its argument is a LibraryProduct.
inline constexpr const char* kLibraryProduct = "cublasLtMatmul";

constexpr std::int64_t scale_blocks(std::int64_t count) { return (count + kScaleBlock - 1) / kScaleBlock; }
constexpr std::int64_t whole_scale_steps(std::int64_t count) {
  return (count + kScaleStep - 1) / kScaleStep * kScaleStep;
}

// Whether a GPU's library multiplies codes with such scales: "" or why not. The capability is 90 for 9.0, the version
// 120903 for 12.9.3. From cuBLAS's manual: scales of the whole from 8.9 on; those of rows and blocks on 9.0 alone,
// since version 12.9.
std::string refusal_of_scales(ProductScales scales, int compute_capability, std::size_t version);

// Of x, made up to whole steps of rows; the result, made up likewise, lies behind it.
std::int64_t padded_x_bytes(const LibraryProduct& product);
std::int64_t padded_product_bytes(const LibraryProduct& product);

// "bf16[5, 64] times the transpose of bf16[48, 64] to bf16[5, 48], with a bias"
std::string product_text(const LibraryProduct& product);

// Sums of eight partial sums, element k in number k % 8, of blocks those of each group alone. As many rows at a time
// are widened as `workspace` has room for depth elements: InternalError where that is none.
void multiply_on_host(const LibraryProduct& product, std::span<float> workspace);

}  // namespace weft
