#include "quantize/weight_layouts.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

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

namespace {

std::int64_t row_width(const Tensor& tensor) {
  return element_count(tensor.meta.shape).number() / tensor.meta.shape[0].number();
}

// Row i of the result is row order[i].
Tensor rows_in_order(const Tensor& tensor, const std::vector<std::int64_t>& order) {
  Tensor result = Tensor::empty(tensor.meta);
  const std::int64_t width = row_width(tensor);
  auto* to = result.as<float>();
  for (const std::int64_t row : order) to = std::copy_n(tensor.as<const float>() + row * width, width, to);
  return result;
}

}  // namespace

Tensor joined_rows(const std::vector<Tensor>& parts) {
  Shape shape = parts[0].meta.shape;
  for (std::size_t i = 1; i < parts.size(); ++i) shape[0] = shape[0] + parts[i].meta.shape[0];
  Tensor joined = Tensor::empty(Meta::tensor(DType::f32, shape));
  auto* to = joined.as<float>();
  for (const Tensor& part : parts)
    to = std::copy_n(part.as<const float>(), element_count(part.meta.shape).number(), to);
  return joined;
}

Tensor joined_by_key_head(const Tensor& mixed, const Tensor& gates, const RecurrentConfig& config) {
  const Tensor rows = joined_rows({mixed, gates});
  const std::int64_t keys = config.keys_width(), values = config.values_width() / config.key_heads;
  const std::int64_t first_gate = 2 * keys + config.values_width();
  std::vector<std::int64_t> order;
  for (std::int64_t head = 0; head < config.key_heads; ++head) {
    const auto add = [&](std::int64_t first, std::int64_t count) {
      for (std::int64_t row = 0; row < count; ++row) order.push_back(first + head * count + row);
    };
    add(0, config.key_dim);
    add(keys, config.key_dim);
    add(2 * keys, values);
    add(first_gate, values);
  }
  return rows_in_order(rows, order);
}

Tensor untiled(const Tensor& tensor, const TiledHeads& heads, const RecurrentConfig& config) {
  if (heads.are_columns) return transpose_of(untiled(transpose_of(tensor), {heads.before, heads.width}, config));
  std::vector<std::int64_t> order;
  for (std::int64_t row = 0; row < heads.before; ++row) order.push_back(row);
  const std::int64_t shared = config.value_heads / config.key_heads;
  for (std::int64_t key = 0; key < config.key_heads; ++key)
    for (std::int64_t i = 0; i < shared; ++i)
      for (std::int64_t row = 0; row < heads.width; ++row)
        order.push_back(heads.before + (i * config.key_heads + key) * heads.width + row);
  return rows_in_order(tensor, order);
}

Tensor with_shape(const Tensor& tensor, const std::vector<std::int64_t>& shape) {
  const Shape wanted(shape.begin(), shape.end());
  CHECK(element_count(tensor.meta.shape) == element_count(wanted), "{} elements as {}", tensor.meta.text(),
        shape_text(wanted));
  CHECK(wanted == tensor.meta.shape || wanted.size() != 2 || tensor.meta.rank() != 2, "{} as {} has other rows",
        tensor.meta.text(), shape_text(wanted));
  Tensor result = tensor;
  result.meta = Meta::tensor(tensor.meta.dtype, wanted);
  return result;
}

}  // namespace weft
