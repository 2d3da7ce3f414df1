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

void widen_row(DType dtype, const std::byte* rows, std::int64_t first, float* to, std::int64_t count) {
  convert_row(dtype, rows + bytes_of(dtype, first), DType::f32, reinterpret_cast<std::byte*>(to), count);
}

}  // namespace

std::string product_text(const LibraryProduct& product) {
  const auto matrix = [](DType dtype, std::int64_t rows, std::int64_t columns, std::int64_t stride) {
    const std::string text = fmt::format("{}[{}, {}]", dtype_text(dtype), rows, columns);
    return stride == columns ? text : fmt::format("{} (rows {} apart)", text, stride);
  };
  return fmt::format("{} times the transpose of {} to {}{}{}",
                     matrix(product.dtype, product.rows, product.depth, product.x_stride),
                     matrix(product.dtype, product.columns, product.depth, product.weight_stride),
                     matrix(product.result_dtype, product.rows, product.columns, product.result_stride),
                     product.bias == nullptr ? "" : ", with a bias", product.x_scale == nullptr ? "" : ", scaled");
}

void multiply_on_host(const LibraryProduct& product, std::span<float> workspace) {
  const std::int64_t depth = product.depth;
  const std::int64_t room = depth == 0 ? product.rows : std::ssize(workspace) / depth;
  CHECK(room > 0 || product.rows == 0, "{} wants room for a row, but has {} elements", product_text(product),
        workspace.size());
  const float scale = product.x_scale == nullptr ? 1.0f : *product.x_scale * *product.weight_scale;
  std::vector<float> weight(static_cast<std::size_t>(depth));
  for (std::int64_t first = 0; first < product.rows; first += room) {
    const std::int64_t rows = std::min(room, product.rows - first);
    for (std::int64_t row = 0; row < rows; ++row)
      widen_row(product.dtype, product.x, (first + row) * product.x_stride, workspace.data() + row * depth, depth);
    for (std::int64_t column = 0; column < product.columns; ++column) {
      widen_row(product.dtype, product.weight, column * product.weight_stride, weight.data(), depth);
      const float bias = product.bias == nullptr ? 0.0f : load_float(product.result_dtype, product.bias, column);
      for (std::int64_t row = 0; row < rows; ++row) {
        const float sum = scale * product_of_rows(workspace.data() + row * depth, weight.data(), depth);
        store_float(product.result_dtype, product.result, (first + row) * product.result_stride + column, sum + bias);
      }
    }
  }
}

}  // namespace weft
