#include "engine/weights/derived.h"

#include <algorithm>
#include <cmath>

#include "tensor/convert.h"
#include "tensor/reference_math.h"

namespace weft {

Tensor converted(const Tensor& tensor, DType dtype) {
  Tensor result = Tensor::empty(Meta::tensor(dtype, tensor.meta.shape));
  convert_row(tensor.meta.dtype, tensor.data(), dtype, result.data(), element_count(tensor.meta.shape).number());
  return result;
}

void add_one(Tensor& tensor) {
  for (std::int64_t i = 0; i < element_count(tensor.meta.shape).number(); ++i) tensor.as<float>()[i] += 1;
}

void take_minus_exp(Tensor& tensor) {
  for (std::int64_t i = 0; i < element_count(tensor.meta.shape).number(); ++i)
    tensor.as<float>()[i] = -reference_exp(tensor.as<float>()[i]);
}

Tensor taps_of(const Tensor& weight) {
  const std::int64_t channels = weight.meta.shape[0].number(), taps = weight.meta.shape.back().number();
  Tensor turned = Tensor::empty(Meta::tensor(DType::f32, {taps, channels}));
  for (std::int64_t i = 0; i < channels; ++i)
    for (std::int64_t tap = 0; tap < taps; ++tap)
      turned.as<float>()[tap * channels + i] = load_float(weight.meta.dtype, weight.data(), i * taps + tap);
  return turned;
}

Tensor inverse_lengths_of(const WeightRows& rows) {
  constexpr double kLeastLength = 1e-12;
  const std::int64_t count = rows.meta.shape[0].number();
  const auto width = static_cast<std::size_t>(rows.meta.shape[1].number());
  Tensor result = Tensor::empty(Meta::tensor(DType::f32, {count}));
  std::vector<float> row(width);
  for (std::int64_t i = 0; i < count; ++i) {
    rows.read(i, 1, reinterpret_cast<std::byte*>(row.data()));
    double square = 0;
    for (const float value : row) square += static_cast<double>(value) * value;
    result.as<float>()[i] = static_cast<float>(1 / std::max(std::sqrt(square), kLeastLength));
  }
  return result;
}

Tensor inverse_column_lengths_of(const WeightRows& rows) {
  constexpr double kAdded = 1e-7;
  const auto width = static_cast<std::size_t>(rows.meta.shape[1].number());
  std::vector<float> row(width);
  std::vector<double> squares(width);
  for (std::int64_t i = 0; i < rows.meta.shape[0].number(); ++i) {
    rows.read(i, 1, reinterpret_cast<std::byte*>(row.data()));
    for (std::size_t k = 0; k < width; ++k) squares[k] += static_cast<double>(row[k]) * row[k];
  }
  Tensor result = Tensor::empty(Meta::tensor(DType::f32, {rows.meta.shape[1]}));
  for (std::size_t k = 0; k < width; ++k)
    result.as<float>()[k] = static_cast<float>(1 / (std::sqrt(squares[k]) + kAdded));
  return result;
}

}  // namespace weft
