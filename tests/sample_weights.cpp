#include "tests/sample_weights.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "ir/sample.h"
#include "tensor/block_format.h"
#include "tensor/convert.h"

namespace weft {
namespace {

std::int64_t width_of(const Tensor& tensor) { return tensor.meta.shape.back().number(); }
std::int64_t rows_of(const Tensor& tensor) { return element_count(tensor.meta.shape).number() / width_of(tensor); }

// Random blocks, the same for the same values. Those of a matrix are the same in a stack.
Tensor random_blocks(const Tensor& tensor, DType dtype) {
  const std::int64_t all = element_count(tensor.meta.shape).number();
  const std::int64_t count = tensor.meta.rank() == 3 ? all / tensor.meta.shape[0].number() : all;
  Tensor stored = Tensor::empty(Meta::tensor(dtype, tensor.meta.shape));
  for (std::int64_t first = 0; first < all; first += count) {
    const std::uint64_t seed =
        std::bit_cast<std::uint32_t>(tensor.as<float>()[first]) + static_cast<std::uint64_t>(count);
    const Tensor matrix = make_sample_tensor(SampleTensor("w", {count}, dtype), dtype, seed);
    std::memcpy(stored.data() + bytes_of(dtype, first), matrix.data(),
                static_cast<std::size_t>(bytes_of(dtype, count)));
  }
  return stored;
}

}  // namespace

DType stored_dtype(const Tensor& tensor, DType dtype) {
  return width_of(tensor) % dtype_info(dtype).block_elements == 0 ? dtype : DType::f32;
}

Tensor stored_as(const Tensor& tensor, DType dtype) {
  if (is_block(dtype) && block_format(dtype).quantize == nullptr) return random_blocks(tensor, dtype);
  Tensor stored = Tensor::empty(Meta::tensor(dtype, tensor.meta.shape));
  const std::int64_t width = width_of(tensor), bytes = bytes_of(dtype, width);
  for (std::int64_t row = 0; row < rows_of(tensor); ++row) {
    const float* values = tensor.as<float>() + row * width;
    std::byte* target = stored.data() + row * bytes;
    if (is_block(dtype)) {
      quantize_row(dtype, values, target, width);
    } else {
      convert_row(DType::f32, reinterpret_cast<const std::byte*>(values), dtype, target, width);
    }
  }
  return stored;
}

Tensor random_weight(const std::vector<std::int64_t>& shape, std::uint64_t seed) {
  const bool is_vector = shape.size() == 1;
  Tensor tensor = make_sample_tensor(SampleTensor("w", shape, DType::f32, is_vector ? Fill::positive : Fill::normal),
                                     DType::f32, seed);
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  for (std::int64_t i = 0; i < count; ++i) {
    float& value = tensor.as<float>()[i];
    value = std::round(std::min(std::max(value, -4.0F), 4.0F) * 16) / 16;
  }
  return tensor;
}

bool is_vector(const std::string& name, const Tensor& tensor) {
  return tensor.meta.rank() == 1 || (tensor.meta.rank() == 2 && name.ends_with("_bias"));
}

Tensor rounded(const Tensor& tensor, DType dtype) {
  if (stored_dtype(tensor, dtype) != dtype) return tensor;
  const Tensor stored = stored_as(tensor, dtype);
  Tensor result = Tensor::empty(tensor.meta);
  const std::int64_t width = width_of(tensor), bytes = bytes_of(dtype, width);
  for (std::int64_t row = 0; row < rows_of(tensor); ++row)
    convert_row(dtype, stored.data() + row * bytes, DType::f32,
                reinterpret_cast<std::byte*>(result.as<float>() + row * width), width);
  return result;
}

}  // namespace weft
