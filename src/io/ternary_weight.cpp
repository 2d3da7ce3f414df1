#include "io/ternary_weight.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "io/quantized_weight.h"
#include "tensor/convert.h"

namespace weft {
namespace {

constexpr std::int64_t kRowsOfByte = 4;
constexpr unsigned kBits = 2, kMask = 3;
constexpr double kLeastMean = 1e-5;  // as in the published code, against a division by zero

// The mean magnitude of a weight. Rows are summed one after another, so that the result does not depend on threads.
float mean_magnitude(const Tensor& numbers) {
  const std::int64_t rows = numbers.meta.shape[0].number(), columns = numbers.meta.shape[1].number();
  std::vector<float> row(static_cast<std::size_t>(columns));
  double sum = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    convert_row(numbers.meta.dtype, numbers.data() + bytes_of(numbers.meta.dtype, i * columns), DType::f32,
                reinterpret_cast<std::byte*>(row.data()), columns);
    for (const float value : row) sum += std::abs(static_cast<double>(value));
  }
  return static_cast<float>(std::max(sum / static_cast<double>(rows * columns), kLeastMean));
}

Tensor rounded_codes(const Tensor& numbers) {
  Tensor codes = Tensor::empty(Meta::tensor(DType::i8, numbers.meta.shape));
  const float inverse = 1 / mean_magnitude(numbers);
  const std::int64_t columns = numbers.meta.shape[1].number();
  std::vector<float> row(static_cast<std::size_t>(columns));
  auto* to = codes.as<std::int8_t>();
  for (std::int64_t i = 0; i < numbers.meta.shape[0].number(); ++i) {
    convert_row(numbers.meta.dtype, numbers.data() + bytes_of(numbers.meta.dtype, i * columns), DType::f32,
                reinterpret_cast<std::byte*>(row.data()), columns);
    for (const float value : row)
      *to++ = static_cast<std::int8_t>(std::clamp(std::nearbyint(value * inverse), -1.0F, 1.0F));
  }
  return codes;
}

Tensor unpacked_codes(const Tensor& packed, const Meta& meta) {
  Tensor codes = Tensor::empty(meta);
  const std::int64_t count = element_count(packed.meta.shape).number();
  const auto* from = reinterpret_cast<const unsigned char*>(packed.data());
  auto* to = codes.as<std::int8_t>();
  for (unsigned part = 0; part < kRowsOfByte; ++part)
    for (std::int64_t i = 0; i < count; ++i)
      *to++ = static_cast<std::int8_t>(static_cast<int>(from[i] >> (kBits * part) & kMask) - 1);
  return codes;
}

}  // namespace

std::vector<NamedMeta> ternary_tensors(const QuantizationConfig& config, const std::string& weight, std::int64_t rows,
                                       std::int64_t columns) {
  const QuantizedNames names = quantized_names(config, weight);
  if (config.ternary == TernaryForm::rounded) return {{names.codes, Meta::tensor(DType::bf16, {rows, columns})}};
  USER_CHECK(rows % kRowsOfByte == 0, "{} has {} rows, but a byte has the codes of {}", weight, rows, kRowsOfByte);
  return {{names.codes, Meta::tensor(DType::u8, {rows / kRowsOfByte, columns})},
          {names.scale, Meta::tensor(DType::f32, {1})}};
}

void check_ternary_weight(const Checkpoint& checkpoint, const QuantizationConfig& config, const std::string& weight,
                          std::int64_t rows, std::int64_t columns) {
  const std::vector<NamedMeta> wanted = ternary_tensors(config, weight, rows, columns);
  const Meta& meta = checkpoint.tensor(wanted[0].name).meta;
  const bool is_rounded = config.ternary == TernaryForm::rounded;
  const bool has_dtype = is_rounded ? is_floating(meta.dtype) : meta.dtype == DType::u8;
  USER_CHECK(has_dtype && meta.shape == wanted[0].meta.shape,
             "[{}] tensor {} must be {}{} as quantization_config says, but is {}", checkpoint.path(), wanted[0].name,
             is_rounded ? "numbers " : "u8", shape_text(wanted[0].meta.shape), meta.text());
  if (!is_rounded) check_number(checkpoint, wanted[1].name);
}

Meta ternary_codes_meta(const Checkpoint& checkpoint, const QuantizationConfig& config, const std::string& weight) {
  Shape shape = checkpoint.tensor(quantized_names(config, weight).codes).meta.shape;
  if (config.ternary == TernaryForm::packed) shape[0] = shape[0] * kRowsOfByte;
  return Meta::tensor(DType::i8, shape);
}

Tensor ternary_codes(const Checkpoint& checkpoint, const QuantizationConfig& config, const std::string& weight) {
  const Tensor& stored = checkpoint.tensor(quantized_names(config, weight).codes);
  if (config.ternary == TernaryForm::rounded) return rounded_codes(stored);
  return unpacked_codes(stored, ternary_codes_meta(checkpoint, config, weight));
}

Tensor ternary_scale(const Checkpoint& checkpoint, const QuantizationConfig& config, const std::string& weight) {
  const QuantizedNames names = quantized_names(config, weight);
  const float value = config.ternary == TernaryForm::rounded ? mean_magnitude(checkpoint.tensor(names.codes))
                      : config.divides_by_scale              ? 1 / number_in(checkpoint, names.scale)
                                                             : number_in(checkpoint, names.scale);
  return Tensor::from_bytes(Meta::tensor(DType::f32, {1}), &value);
}

}  // namespace weft
