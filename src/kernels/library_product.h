#pragma once

// A matrix product that a library of the device computes (LaunchQueue::call_library), as a kernel describes it, and the
// same product on the host.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "tensor/dtype.h"

namespace weft {

// The part of a tensor that each scale of codes applies to.
//   whole   x_scale [1], weight_scale [1]
//   rows    x_scale [rows], weight_scale [columns]
//   blocks  x_scale [groups][rows], where a group is 128 adjacent elements of a row; weight_scale
//           [ceil(columns / 128)][groups] for blocks of 128 x 128. The last groups and blocks may be short. Rows of
//           x_scale and groups of weight_scale are padded to multiples of four.
enum class ProductScales : std::uint8_t { none, whole, rows, blocks };

inline constexpr std::int64_t kScaleBlock = 128;
inline constexpr std::int64_t kScaleStep = 4;

// result[row, column] = (sum over k of x[row, k] * weight[column, k], each times its scale) + bias[column], in f32,
// rounded once. The library decides the order of the sum.
struct LibraryProduct {
  const std::byte* x = nullptr;       // [rows, depth]
  const std::byte* weight = nullptr;  // [columns, depth]
  const std::byte* bias = nullptr;    // [columns], or none
  std::byte* result = nullptr;        // [rows, columns]
  const float* x_scale = nullptr;     // as `scales` says
  const float* weight_scale = nullptr;
  // padded_product_bytes, needed with scales of blocks if rows are not a multiple of four. Contents undefined.
  std::byte* scratch = nullptr;
  std::int64_t rows = 0, columns = 0, depth = 0;
  std::int64_t x_stride = 0, weight_stride = 0, result_stride = 0;  // from row to row, in elements
  DType dtype = DType::bf16;                                        // of x and weight
  DType result_dtype = DType::bf16;                                 // of result and bias
  ProductScales scales = ProductScales::none;
};

// The name of the library's function in a queue. Its argument is a LibraryProduct.
inline constexpr const char* kLibraryProduct = "cublasLtMatmul";

constexpr std::int64_t scale_blocks(std::int64_t count) { return (count + kScaleBlock - 1) / kScaleBlock; }
constexpr std::int64_t whole_scale_steps(std::int64_t count) {
  return (count + kScaleStep - 1) / kScaleStep * kScaleStep;
}

// Whether a GPU's library multiplies codes with such scales: "", or the reason why not. A capability of 90 is 9.0, a
// version of 120903 is 12.9.3. From cuBLAS's manual: scales of the whole tensor from capability 8.9 on; scales of rows
// and blocks on 9.0 only, from version 12.9 on.
std::string refusal_of_scales(ProductScales scales, int compute_capability, std::size_t version);

// The bytes of x padded to a multiple of four rows; and of x and the result, padded likewise and stored one after the
// other.
std::int64_t padded_x_bytes(const LibraryProduct& product);
std::int64_t padded_product_bytes(const LibraryProduct& product);

// "bf16[5, 64] times the transpose of bf16[48, 64] to bf16[5, 48], with a bias"
std::string product_text(const LibraryProduct& product);

// Computes the product on the host. Each sum has eight partial sums: element k belongs to partial sum k % 8. With
// scales of blocks, each group has sums of its own. It widens as many rows of `depth` elements at a time as fit into
// `workspace`: InternalError if none fits.
void multiply_on_host(const LibraryProduct& product, std::span<float> workspace);

}  // namespace weft
