#include "kernels/library_product.h"

#include <algorithm>
#include <vector>

#include <fmt/core.h>

#include "base/error.h"
#include "tensor/convert.h"

namespace weft {
namespace {

float product_of_rows(const float* a, const float* b, std::int64_t count) {
  constexpr std::int64_t kParts = 8;
  float parts[kParts] = {};
  std::int64_t k = 0;
  for (; k + kParts <= count; k += kParts)
    for (std::int64_t i = 0; i < kParts; ++i) parts[i] += a[k + i] * b[k + i];
  for (std::int64_t i = 0; k + i < count; ++i) parts[i] += a[k + i] * b[k + i];
  return ((parts[0] + parts[4]) + (parts[2] + parts[6])) + ((parts[1] + parts[5]) + (parts[3] + parts[7]));
}

// The product of a row and a column, multiplied by their scales.
float scaled_product(const LibraryProduct& product, const float* x, const float* weight, std::int64_t row,
                     std::int64_t column) {
  switch (product.scales) {
    case ProductScales::none:
      break;
    case ProductScales::whole:
      return *product.x_scale * *product.weight_scale * product_of_rows(x, weight, product.depth);
    case ProductScales::rows:
      return product.x_scale[row] * product.weight_scale[column] * product_of_rows(x, weight, product.depth);
    case ProductScales::blocks: {
      const std::int64_t groups = scale_blocks(product.depth);
      const float* const x_scale = product.x_scale + row;
      const float* const weight_scale = product.weight_scale + column / kScaleBlock * whole_scale_steps(groups);
      float sum = 0;
      for (std::int64_t k = 0, group = 0; group < groups; k += kScaleBlock, ++group)
        sum += x_scale[group * whole_scale_steps(product.rows)] * weight_scale[group] *
               product_of_rows(x + k, weight + k, std::min(kScaleBlock, product.depth - k));
      return sum;
    }
  }
  return product_of_rows(x, weight, product.depth);
}

const char* scales_text(ProductScales scales) {
  switch (scales) {
    case ProductScales::none:
      return "";
    case ProductScales::whole:
      return ", scaled";
    case ProductScales::rows:
      return ", scaled by rows";
    case ProductScales::blocks:
      return ", scaled by blocks";
  }
  return "";
}

void widen_row(DType dtype, const std::byte* rows, std::int64_t first, float* to, std::int64_t count) {
  convert_row(dtype, rows + bytes_of(dtype, first), DType::f32, reinterpret_cast<std::byte*>(to), count);
}

}  // namespace

std::string refusal_of_scales(ProductScales scales, int compute_capability, std::size_t version) {
  constexpr int kLeastForCodes = 89, kForScales = 90;
  constexpr std::size_t kLeastForScales = 120900;
  const std::string has = fmt::format("it has {}.{}", compute_capability / 10, compute_capability % 10);
  if (compute_capability < kLeastForCodes)
    return "products of fp8 codes want a GPU of compute capability 8.9 or newer, and " + has;
  if (scales != ProductScales::rows && scales != ProductScales::blocks) return "";
  const char* const kind = scales == ProductScales::rows ? "rows" : "blocks";
  if (compute_capability != kForScales)
    return fmt::format("scales of {} want a GPU of compute capability 9.0, and {}", kind, has);
  if (version < kLeastForScales)
    return fmt::format("scales of {} want cuBLASLt 12.9 or newer, and it is {}.{}.{}", kind, version / 10000,
                       version / 100 % 100, version % 100);
  return "";
}

std::int64_t padded_x_bytes(const LibraryProduct& product) {
  constexpr std::int64_t kAlignment = 256;  // of the result, which is stored after x
  const std::int64_t bytes = bytes_of(product.dtype, whole_scale_steps(product.rows) * product.depth);
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

std::int64_t padded_product_bytes(const LibraryProduct& product) {
  return padded_x_bytes(product) + bytes_of(product.result_dtype, whole_scale_steps(product.rows) * product.columns);
}

std::string product_text(const LibraryProduct& product) {
  const auto matrix = [](DType dtype, std::int64_t rows, std::int64_t columns, std::int64_t stride) {
    const std::string text = fmt::format("{}[{}, {}]", dtype_text(dtype), rows, columns);
    return stride == columns ? text : fmt::format("{} (rows {} apart)", text, stride);
  };
  return fmt::format("{} times the transpose of {} to {}{}{}",
                     matrix(product.dtype, product.rows, product.depth, product.x_stride),
                     matrix(product.dtype, product.columns, product.depth, product.weight_stride),
                     matrix(product.result_dtype, product.rows, product.columns, product.result_stride),
                     product.bias == nullptr ? "" : ", with a bias", scales_text(product.scales));
}

void multiply_on_host(const LibraryProduct& product, std::span<float> workspace) {
  const std::int64_t depth = product.depth;
  const std::int64_t room = depth == 0 ? product.rows : std::ssize(workspace) / depth;
  CHECK(room > 0 || product.rows == 0, "{} wants room for a row, but has {} elements", product_text(product),
        workspace.size());
  std::vector<float> weight(static_cast<std::size_t>(depth));
  for (std::int64_t first = 0; first < product.rows; first += room) {
    const std::int64_t rows = std::min(room, product.rows - first);
    for (std::int64_t row = 0; row < rows; ++row)
      widen_row(product.dtype, product.x, (first + row) * product.x_stride, workspace.data() + row * depth, depth);
    for (std::int64_t column = 0; column < product.columns; ++column) {
      widen_row(product.dtype, product.weight, column * product.weight_stride, weight.data(), depth);
      const float bias = product.bias == nullptr ? 0.0f : load_float(product.result_dtype, product.bias, column);
      for (std::int64_t row = 0; row < rows; ++row) {
        const float sum = scaled_product(product, workspace.data() + row * depth, weight.data(), first + row, column);
        store_float(product.result_dtype, product.result, (first + row) * product.result_stride + column, sum + bias);
      }
    }
  }
}

}  // namespace weft
