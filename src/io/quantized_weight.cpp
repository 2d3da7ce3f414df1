#include "io/quantized_weight.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "io/grouped_weight.h"
#include "tensor/block_format.h"
#include "tensor/convert.h"
#include "tensor/quant_key.h"

namespace weft {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

bool is_scale_dtype(DType dtype) { return dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16; }

void check_number(const Checkpoint& checkpoint, const std::string& name) {
  const Meta& meta = checkpoint.tensor(name).meta;
  USER_CHECK(is_scale_dtype(meta.dtype) && element_count(meta.shape) == Dim(1),
             "[{}] tensor {} must be one number of f32, bf16 or f16, but is {}", checkpoint.path(), name, meta.text());
  const float value = number_in(checkpoint, name);
  USER_CHECK(std::isfinite(value) && value > 0, "[{}] tensor {} must be above 0 and finite, but is {}",
             checkpoint.path(), name, value);
}

Meta codes_meta(const QuantizationConfig& config, std::int64_t rows, std::int64_t columns) {
  const bool is_packed = config.scheme == QuantizationScheme::nvfp4;
  return Meta::tensor(is_packed ? DType::u8 : config.codes, {rows, is_packed ? columns / 2 : columns});
}

// Returns the type of the scales. Some schemes let the file choose between one scale and one for each row.
Meta scale_meta(const QuantizationConfig& config, std::int64_t rows, std::int64_t columns) {
  using enum QuantizationScheme;
  if (config.scheme == block)
    return Meta::tensor(DType::f32, {ceil_div(rows, config.block_rows), columns / config.block_columns});
  if (config.scheme == nvfp4) return Meta::tensor(DType::f8e4m3, {rows, columns / kNvfp4Group});
  return config.scale_per_row ? Meta::tensor(DType::f32, {rows, 1}) : Meta::tensor(DType::f32, {1});
}

void check_codes(const Checkpoint& checkpoint, const QuantizationConfig& config, const QuantizedNames& names,
                 std::int64_t rows, std::int64_t columns) {
  const Meta wanted = codes_meta(config, rows, columns);
  const Meta& meta = checkpoint.tensor(names.codes).meta;
  USER_CHECK(meta == wanted, "[{}] tensor {} must be {} as quantization_config says, but is {}", checkpoint.path(),
             names.codes, wanted.text(), meta.text());
}

void check_scale(const Checkpoint& checkpoint, const QuantizationConfig& config, const QuantizedNames& names,
                 std::int64_t rows, std::int64_t columns) {
  const Meta& meta = checkpoint.tensor(names.scale).meta;
  const auto fits = [&](bool dtype_fits, const Shape& wanted, const char* dtype) {
    USER_CHECK(dtype_fits && meta.shape == wanted, "[{}] tensor {} must be {}{} as quantization_config says, but is {}",
               checkpoint.path(), names.scale, dtype, shape_text(wanted), meta.text());
  };
  using enum QuantizationScheme;
  const Shape shape = scale_meta(config, rows, columns).shape;
  if (config.scheme == block) {
    fits(is_scale_dtype(meta.dtype), shape, "f32");
  } else if (config.scheme == nvfp4) {
    fits(meta.dtype == DType::f8e4m3, shape, "f8e4m3");
  } else {
    const bool is_one = meta.rank() <= 1 && element_count(meta.shape) == Dim(1);
    if (!is_one && meta.shape != Shape{rows}) fits(is_scale_dtype(meta.dtype), {rows, 1}, "f32[1] or f32");
    USER_CHECK(is_scale_dtype(meta.dtype), "[{}] tensor {} must be of f32, bf16 or f16, but is {}", checkpoint.path(),
               names.scale, meta.text());
  }
}

// Writes the scale of each element of a row to `out`, in f32. It is stored at [row / block_rows, column /
// block_columns] of a matrix of scales, at [row] of a column, or at [0] if there is only one.
void fill_scales(const Tensor& scales, std::int64_t row, std::int64_t block_rows, std::int64_t block_columns,
                 std::vector<float>& out) {
  const std::int64_t count = element_count(scales.meta.shape).number();
  const auto columns = static_cast<std::int64_t>(out.size());
  const std::int64_t across = ceil_div(columns, block_columns);
  for (std::int64_t i = 0; i < columns; ++i) {
    const std::int64_t at = count == 1 ? 0 : row / block_rows * across + i / block_columns;
    out[static_cast<std::size_t>(i)] = load_float(scales.meta.dtype, scales.data(), at);
  }
}

}  // namespace

Meta meta_of_stored(const Meta& stored) {
  if (stored.dtype != DType::u8 || stored.rank() == 0) return stored;
  Shape shape = stored.shape;
  shape.back() = shape.back() * 2;
  return Meta::tensor(DType::f4e2m1, shape);
}

float number_in(const Checkpoint& checkpoint, const std::string& name) {
  const Tensor& tensor = checkpoint.tensor(name);
  return load_float(tensor.meta.dtype, tensor.data(), 0);
}

std::vector<NamedMeta> quantized_tensors(const QuantizationConfig& config, const std::string& weight, std::int64_t rows,
                                         std::int64_t columns) {
  if (config.scheme == QuantizationScheme::grouped) return grouped_tensors(config, weight, rows, columns);
  const QuantizedNames names = quantized_names(config, weight);
  std::vector<NamedMeta> tensors{{names.codes, codes_meta(config, rows, columns)},
                                 {names.scale, scale_meta(config, rows, columns)}};
  for (const std::string& name : {names.global_scale, names.input_scale})
    if (!name.empty()) tensors.push_back({name, Meta::tensor(DType::f32, {1})});
  return tensors;
}

void check_quantized_weight(const Checkpoint& checkpoint, const QuantizationConfig& config, const std::string& weight,
                            std::int64_t rows, std::int64_t columns) {
  using enum QuantizationScheme;
  if (config.scheme == grouped) return check_grouped_weight(checkpoint, config, weight, rows, columns);
  const std::int64_t width = config.scheme == block ? config.block_columns : config.scheme == nvfp4 ? kNvfp4Group : 1;
  USER_CHECK(columns % width == 0, "[{}] {} has rows of {}, which blocks of {} do not divide", checkpoint.path(),
             weight, columns, width);
  const QuantizedNames names = quantized_names(config, weight);
  check_codes(checkpoint, config, names, rows, columns);
  check_scale(checkpoint, config, names, rows, columns);
  for (const std::string& name : {names.global_scale, names.input_scale})
    if (!name.empty()) check_number(checkpoint, name);
}

Tensor quantized_codes(const Checkpoint& checkpoint, const QuantizationConfig& config, const std::string& weight) {
  Tensor codes = checkpoint.tensor(quantized_names(config, weight).codes);
  codes.meta = meta_of_stored(codes.meta);
  return codes;
}

namespace {

Tensor dequantized_groups(const GroupedWeight& weight) {
  constexpr std::int64_t kRows = 32;
  const std::int64_t rows = weight.meta().shape[0].number(), columns = weight.meta().shape[1].number();
  const std::int64_t row_bytes = bytes_of(weight.meta().dtype, columns);
  const std::vector<std::int32_t>& order = weight.order();
  Tensor result = Tensor::empty(Meta::tensor(DType::f32, weight.meta().shape));
  std::vector<std::byte> blocks(static_cast<std::size_t>(kRows * row_bytes));
  std::vector<float> values(static_cast<std::size_t>(columns));
  for (std::int64_t row = 0; row < rows; ++row) {
    if (row % kRows == 0) weight.read_rows(row, std::min(kRows, rows - row), blocks.data());
    dequantize_row(weight.meta().dtype, blocks.data() + row % kRows * row_bytes, values.data(), columns);
    float* to = result.as<float>() + row * columns;
    for (std::size_t k = 0; k < values.size(); ++k)
      to[order.empty() ? k : static_cast<std::size_t>(order[k])] = values[k];
  }
  return result;
}

}  // namespace

Tensor dequantized_weight(const Checkpoint& checkpoint, const QuantizationConfig& config, const std::string& weight) {
  if (config.scheme == QuantizationScheme::grouped)
    return dequantized_groups(GroupedWeight(checkpoint, config, weight));
  const QuantizedNames names = quantized_names(config, weight);
  const Tensor codes = quantized_codes(checkpoint, config, weight);
  const Tensor& scales = checkpoint.tensor(names.scale);
  const std::int64_t rows = codes.meta.shape[0].number(), columns = codes.meta.shape[1].number();
  using enum QuantizationScheme;
  const std::int64_t block_rows = config.scheme == block ? config.block_rows : 1;
  const std::int64_t block_columns = config.scheme == block   ? config.block_columns
                                     : config.scheme == nvfp4 ? kNvfp4Group
                                                              : columns;
  const float global = names.global_scale.empty() ? 1.0F : 1.0F / number_in(checkpoint, names.global_scale);
  Tensor result = Tensor::empty(Meta::tensor(DType::f32, codes.meta.shape));
  std::vector<float> scale(static_cast<std::size_t>(columns));
  for (std::int64_t row = 0; row < rows; ++row) {
    float* values = result.as<float>() + row * columns;
    convert_row(codes.meta.dtype, codes.data() + bytes_of(codes.meta.dtype, row * columns), DType::f32,
                reinterpret_cast<std::byte*>(values), columns);
    fill_scales(scales, row, block_rows, block_columns, scale);
    for (std::int64_t i = 0; i < columns; ++i) values[i] *= scale[static_cast<std::size_t>(i)] * global;
  }
  return result;
}

}  // namespace weft
