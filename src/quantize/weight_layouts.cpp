#include "quantize/weight_layouts.h"

#include <algorithm>
#include <cstring>

namespace weft {

Tensor transpose_of(const Tensor& matrix) {
  const std::int64_t rows = matrix.meta.shape[0].number(), columns = matrix.meta.shape[1].number();
  Tensor result = Tensor::empty(Meta::tensor(DType::f32, {columns, rows}));
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = 0; column < columns; ++column)
      result.as<float>()[column * rows + row] = matrix.as<const float>()[row * columns + column];
  return result;
}

Tensor halves_from_neighbours(const Tensor& tensor, std::int64_t heads, std::int64_t rotary_dim) {
  Tensor result = Tensor::empty(tensor.meta);
  const std::int64_t width = tensor.meta.rank() == 2 ? tensor.meta.shape[1].number() : 1;  // 1 in a bias
  const std::int64_t dims = tensor.meta.shape[0].number() / heads;
  for (std::int64_t head = 0; head < heads; ++head)
    for (std::int64_t i = 0; i < dims; ++i) {
      const std::int64_t from = i >= rotary_dim ? i : i % (rotary_dim / 2) * 2 + i / (rotary_dim / 2);
      std::memcpy(result.as<float>() + (head * dims + i) * width, tensor.as<float>() + (head * dims + from) * width,
                  static_cast<std::size_t>(width) * sizeof(float));
    }
  return result;
}

Tensor grouped_by_key_head(const Tensor& tensor, const ModelConfig& config) {
  Tensor result = Tensor::empty(tensor.meta);
  const std::int64_t heads = config.head_count, keys = config.kv_head_count, queries = heads / keys;
  const std::int64_t size = config.head_dim * (tensor.meta.rank() == 2 ? tensor.meta.shape[1].number() : 1);
  const auto* from = tensor.as<const float>();
  auto* to = result.as<float>();
  for (std::int64_t key = 0; key < keys; ++key) {
    to = std::copy_n(from + key * queries * size, queries * size, to);
    to = std::copy_n(from + (heads + key) * size, size, to);
    to = std::copy_n(from + (heads + keys + key) * size, size, to);
  }
  return result;
}

Tensor joined_latents(const Tensor& keys, const Tensor& values) {
  const std::int64_t heads = keys.meta.shape[0].number(), rank = keys.meta.shape[1].number(),
                     key_dim = keys.meta.shape[2].number(), value_dim = values.meta.shape[1].number();
  Tensor joined = Tensor::empty(Meta::tensor(DType::f32, {heads * (key_dim + value_dim), rank}));
  auto* to = joined.as<float>();
  for (std::int64_t head = 0; head < heads; ++head) {
    const float* key = keys.as<const float>() + head * rank * key_dim;
    for (std::int64_t row = 0; row < key_dim; ++row)
      for (std::int64_t column = 0; column < rank; ++column) *to++ = key[column * key_dim + row];
    to = std::copy_n(values.as<const float>() + head * value_dim * rank, value_dim * rank, to);
  }
  return joined;
}

}  // namespace weft
