#include "io/quantized_weight.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "base/error.h"
#include "io/grouped_layout.h"
#include "io/grouped_weight.h"
#include "io/mxfp4_weight.h"
#include "io/ternary_weight.h"
#include "tensor/block_format.h"
#include "tensor/convert.h"
#include "tensor/group_blocks.h"
#include "tensor/quant_key.h"

namespace weft {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

bool is_scale_dtype(DType dtype) { return dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16; }

Meta codes_meta(const QuantizationConfig& config, std::int64_t rows, std::int64_t columns) {
  const bool is_packed = config.scheme == QuantizationScheme::nvfp4;
  return Meta::tensor(is_packed ? DType::u8 : config.codes, {rows, is_packed ? columns / 2 : columns});
}

// Returns the type of the scales. Some schemes let the file choose between one scale and one for each row.
Meta scale_meta(const QuantizationConfig& config, std::int64_t rows, std::int64_t columns) {
  using enum QuantizationScheme;
  if (config.scheme == block)
    return Meta::tensor(DType::f32, {ceil_div(rows, config.block_rows), ceil_div(columns, config.block_columns)});
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

}  // namespace

Meta meta_of_stored(const Meta& stored) {
  if (stored.dtype != DType::u8 || stored.rank() == 0) return stored;
  Shape shape = stored.shape;
  shape.back() = shape.back() * 2;
  return Meta::tensor(DType::f4e2m1, shape);
}

float number_in(const Checkpoint& checkpoint, const std::string& name) { return number_in(checkpoint.tensor(name)); }
float number_in(const Tensor& tensor) { return load_float(tensor.meta.dtype, tensor.data(), 0); }

void check_number(const Checkpoint& checkpoint, const std::string& name) {
  const Meta& meta = checkpoint.tensor(name).meta;
  USER_CHECK(is_scale_dtype(meta.dtype) && element_count(meta.shape) == Dim(1),
             "[{}] tensor {} must be one number of f32, bf16 or f16, but is {}", checkpoint.path(), name, meta.text());
  const float value = number_in(checkpoint, name);
  USER_CHECK(std::isfinite(value) && value > 0, "[{}] tensor {} must be above 0 and finite, but is {}",
             checkpoint.path(), name, value);
}

std::vector<NamedMeta> quantized_tensors(const QuantizationConfig& config, const std::string& weight, std::int64_t rows,
                                         std::int64_t columns) {
  if (config.scheme == QuantizationScheme::grouped) return grouped_tensors(config, weight, rows, columns);
  if (config.ternary != TernaryForm::none) return ternary_tensors(config, weight, rows, columns);
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
  if (config.ternary != TernaryForm::none) return check_ternary_weight(checkpoint, config, weight, rows, columns);
  const std::int64_t width = config.scheme == nvfp4 ? kNvfp4Group : 1;  // the last blocks of fp8 may be shorter
  USER_CHECK(columns % width == 0, "[{}] {} has rows of {}, which blocks of {} do not divide", checkpoint.path(),
             weight, columns, width);
  const QuantizedNames names = quantized_names(config, weight);
  check_codes(checkpoint, config, names, rows, columns);
  check_scale(checkpoint, config, names, rows, columns);
  for (const std::string& name : {names.global_scale, names.input_scale})
    if (!name.empty()) check_number(checkpoint, name);
  constexpr int kBits = 8;
  check_symmetric(checkpoint, names.zero_points, kBits);
}

bool has_codes(const Checkpoint& checkpoint, const QuantizationConfig& config, const std::string& weight) {
  const QuantizedNames names = quantized_names(config, weight);
  return checkpoint.find(config.ternary == TernaryForm::rounded ? names.codes : names.scale) != nullptr;
}

Meta quantized_codes_meta(const Checkpoint& checkpoint, const QuantizationConfig& config, const std::string& weight) {
  if (config.ternary != TernaryForm::none) return ternary_codes_meta(checkpoint, config, weight);
  const Meta& stored = checkpoint.tensor(quantized_names(config, weight).codes).meta;
  if (config.scheme != QuantizationScheme::grouped) return meta_of_stored(stored);
  CHECK(has_floats(config.groups) && stored.rank() == 2, "{} has no floats as codes", weight);
  return Meta::tensor(config.codes, {stored.shape[0], stored.shape[1].number() * kWordBits / config.groups.bits});
}

Tensor quantized_codes(const Checkpoint& checkpoint, const QuantizationConfig& config, const std::string& weight) {
  if (config.ternary != TernaryForm::none) return ternary_codes(checkpoint, config, weight);
  Tensor codes = checkpoint.tensor(quantized_names(config, weight).codes);
  codes.meta = quantized_codes_meta(checkpoint, config, weight);
  return codes;
}

Tensor quantized_scales(const Checkpoint& checkpoint, const QuantizationConfig& config, const std::string& weight) {
  if (config.ternary != TernaryForm::none) return ternary_scale(checkpoint, config, weight);
  return checkpoint.tensor(quantized_names(config, weight).scale);
}

namespace {

// The columns of a row with one scale.
std::int64_t columns_of_scale(const QuantizationConfig& config, std::int64_t columns) {
  using enum QuantizationScheme;
  if (config.scheme == grouped) return config.groups.group_size;
  return config.scheme == block ? config.block_columns : config.scheme == nvfp4 ? kNvfp4Group : columns;
}

// Codes with a scale for each block of rows and columns, and for NVFP4 one for all elements.
class ScaledCodes {
 public:
  ScaledCodes(const Checkpoint& checkpoint, const QuantizationConfig& config, const std::string& weight)
      : codes_(quantized_codes(checkpoint, config, weight)), path_(checkpoint.path()) {
    const QuantizedNames names = quantized_names(config, weight);
    scale_name_ = names.scale;
    scales_ = quantized_scales(checkpoint, config, weight);
    if (config.scheme == QuantizationScheme::grouped) scales_.meta.dtype = config.groups.scales;
    has_one_scale_ = element_count(scales_.meta.shape) == Dim(1);
    if (!names.global_scale.empty()) {
      const float number = number_in(checkpoint, names.global_scale);
      global_ = config.multiplies_globally ? number : 1.0F / number;
    }
    columns_ = codes_.meta.shape[1].number();
    block_rows_ = config.scheme == QuantizationScheme::block ? config.block_rows : 1;
    block_columns_ = columns_of_scale(config, columns_);
  }

  const Meta& meta() const { return codes_.meta; }

  // The rows as f32 or as blocks.
  void read(std::int64_t first, std::int64_t count, DType dtype, std::byte* rows) const {
    const std::int64_t row_bytes = bytes_of(dtype, columns_);
    for (std::int64_t row = first; row < first + count; ++row, rows += row_bytes) {
      if (is_block(dtype)) {
        write_blocks(row, dtype, rows);
      } else {
        read_numbers(row, reinterpret_cast<float*>(rows));
      }
    }
  }

 private:
  float scale(std::int64_t row, std::int64_t block) const {
    const std::int64_t across = ceil_div(columns_, block_columns_);
    const std::int64_t at = has_one_scale_ ? 0 : row / block_rows_ * across + block;
    const float scale = load_float(scales_.meta.dtype, scales_.data(), at);
    USER_CHECK(std::isfinite(scale), "[{}] tensor {} must be finite, but has {} for row {}", path_, scale_name_, scale,
               row);
    return scale * global_;
  }

  void read_numbers(std::int64_t row, float* values) const {
    convert_row(codes_.meta.dtype, codes_.data() + bytes_of(codes_.meta.dtype, row * columns_), DType::f32,
                reinterpret_cast<std::byte*>(values), columns_);
    for (std::int64_t k = 0; k < columns_; k += block_columns_) {
      const float factor = scale(row, k / block_columns_);
      const std::int64_t end = std::min(columns_, k + block_columns_);
      for (std::int64_t i = k; i < end; ++i) values[i] *= factor;
    }
  }

  // The blocks of group_blocks.h: a scale in f32 and codes, or the scale of all elements, scales of groups and codes.
  // Or ggml's blocks of mxfp4.
  void write_blocks(std::int64_t row, DType dtype, std::byte* to) const {
    const bool has_small_scales = dtype == DType::e2m1g16;
    const std::int64_t elements = dtype_info(dtype).block_elements;
    const std::int64_t code_bytes = bytes_of(codes_.meta.dtype, elements);
    const std::byte* codes = codes_.data() + bytes_of(codes_.meta.dtype, row * columns_);
    const auto put = [&](const void* from, std::int64_t bytes) {
      std::memcpy(to, from, static_cast<std::size_t>(bytes));
      to += bytes;
    };
    const auto bytes_of_scales = [&](std::int64_t k) { return scales_.data() + (row * columns_ + k) / block_columns_; };
    for (std::int64_t k = 0; k < columns_; k += elements, codes += code_bytes) {
      float own = 0;  // each scale is read, because scale() refuses what is not finite
      for (std::int64_t i = k; i < k + elements; i += block_columns_) own = scale(row, i / block_columns_);
      if (dtype == DType::mxfp4) {
        write_mxfp4_block(codes, *bytes_of_scales(k), to);
        to += dtype_info(dtype).block_bytes;
        continue;
      }
      put(has_small_scales ? &global_ : &own, kFloatScaleBytes);
      if (has_small_scales) put(bytes_of_scales(k), kSmallScales);
      put(codes, code_bytes);
    }
  }

  Tensor codes_, scales_;
  std::string path_, scale_name_;
  bool has_one_scale_ = false;
  float global_ = 1;
  std::int64_t columns_ = 0, block_rows_ = 1, block_columns_ = 1;
};

// The block types with a scale for some columns of a row, the largest of equal codes first.
struct BlocksOfCodes {
  DType codes;
  DType blocks;
  std::int64_t group;  // columns with one scale
};
constexpr BlocksOfCodes kBlocksOfCodes[] = {{DType::f8e4m3, DType::e4m3g128, 128},
                                            {DType::f8e4m3, DType::e4m3g32, 32},
                                            {DType::i8, DType::i8g32, 32},
                                            {DType::f4e2m1, DType::mxfp4, 32},
                                            {DType::f4e2m1, DType::e2m1g16, 16}};

// The columns of the numbers have the order of the layer's input.
void read_groups(const GroupedWeight& weight, std::int64_t first, std::int64_t count, float* numbers) {
  const DType dtype = weight.meta().dtype;
  const std::int64_t columns = weight.meta().shape[1].number(), row_bytes = bytes_of(dtype, columns);
  const std::vector<std::int32_t>& order = weight.order();
  std::vector<std::byte> rows(static_cast<std::size_t>(count * row_bytes));
  std::vector<float> values(static_cast<std::size_t>(columns));
  weight.read_rows(first, count, rows.data());
  for (std::int64_t row = 0; row < count; ++row, numbers += columns) {
    convert_row(dtype, rows.data() + row * row_bytes, DType::f32, reinterpret_cast<std::byte*>(values.data()), columns);
    for (std::size_t k = 0; k < values.size(); ++k)
      numbers[order.empty() ? k : static_cast<std::size_t>(order[k])] = values[k];
  }
}

WeightRows converted_rows(WeightRows numbers, DType dtype) {
  const Shape& shape = numbers.meta.shape;
  return {Meta::tensor(dtype, shape), [read = std::move(numbers.read), dtype, columns = shape[1].number()](
                                          std::int64_t first, std::int64_t count, std::byte* rows) {
            std::vector<float> values(static_cast<std::size_t>(count * columns));
            read(first, count, reinterpret_cast<std::byte*>(values.data()));
            convert_row(DType::f32, reinterpret_cast<const std::byte*>(values.data()), dtype, rows, count * columns);
          }};
}

}  // namespace

WeightRows weight_rows(const Checkpoint& checkpoint, const QuantizationConfig& config, const std::string& weight,
                       DType dtype) {
  if (is_floating(dtype) && dtype != DType::f32) return converted_rows(weight_rows(checkpoint, config, weight), dtype);
  if (config.scheme == QuantizationScheme::grouped && !has_floats(config.groups)) {
    auto groups = std::make_shared<const GroupedWeight>(checkpoint, config, weight);
    const bool has_blocks = is_block(dtype) && dtype == groups->meta().dtype;
    CHECK(has_blocks || dtype == DType::f32, "{} is read as {} or numbers, not {}", weight, groups->meta().text(),
          dtype_text(dtype));
    return {Meta::tensor(dtype, groups->meta().shape),
            [groups, has_blocks](std::int64_t first, std::int64_t count, std::byte* rows) {
              if (has_blocks) return groups->read_rows(first, count, rows);
              read_groups(*groups, first, count, reinterpret_cast<float*>(rows));
            }};
  }
  auto codes = std::make_shared<const ScaledCodes>(checkpoint, config, weight);
  CHECK(dtype == DType::f32 || dtype == dtype_of_codes(config, codes->meta()), "{} is not read as {}", weight,
        dtype_text(dtype));
  return {Meta::tensor(dtype, codes->meta().shape),
          [codes, dtype](std::int64_t first, std::int64_t count, std::byte* rows) {
            codes->read(first, count, dtype, rows);
          }};
}

DType dtype_of_codes(const QuantizationConfig& config, const Meta& codes) {
  const std::int64_t columns = codes.shape[1].number(), scaled = columns_of_scale(config, columns);
  for (const BlocksOfCodes& row : kBlocksOfCodes)
    if (row.codes == codes.dtype && scaled % row.group == 0 && columns % dtype_info(row.blocks).block_elements == 0)
      return row.blocks;
  return DType::f32;
}

Tensor dequantized_weight(const Checkpoint& checkpoint, const QuantizationConfig& config, const std::string& weight) {
  constexpr std::int64_t kRows = 32;
  const WeightRows rows = weight_rows(checkpoint, config, weight);
  Tensor result = Tensor::empty(rows.meta);
  const std::int64_t count = rows.meta.shape[0].number(),
                     row_bytes = rows.meta.bytes().number() / std::max<std::int64_t>(count, 1);
  for (std::int64_t first = 0; first < count; first += kRows)
    rows.read(first, std::min(kRows, count - first), result.data() + first * row_bytes);
  return result;
}

}  // namespace weft
