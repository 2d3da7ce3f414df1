// The part of grouped_weight.h that compares the tensors of a weight with the config.

#include <algorithm>

#include <fmt/ranges.h>

#include "base/error.h"
#include "io/bitsandbytes_weight.h"
#include "io/grouped_layout.h"
#include "io/grouped_weight.h"

namespace weft {
namespace {

// A tensor of the weight: the dtypes that it may have, the writers' usual one first.
struct GroupedPart {
  std::string name;
  std::vector<DType> dtypes;
  Shape shape;
};

std::vector<GroupedPart> block_parts(const QuantizationConfig& config, const QuantizedNames& names, std::int64_t rows,
                                     std::int64_t columns, std::int64_t block) {
  const std::int64_t blocks = rounded_up(rows * columns, block);
  const bool has_codes = config.groups.has_quantized_scales;
  std::vector<GroupedPart> parts{{names.scale, {has_codes ? DType::u8 : DType::f32}, {blocks}},
                                 {names.values, {DType::f32}, {16}}};
  if (has_codes) {
    parts.push_back({names.scales_of_scales, {DType::f32}, {rounded_up(blocks, kBlocksOfScales)}});
    parts.push_back({names.values_of_scales, {DType::f32}, {256}});
  }
  return parts;
}

std::vector<GroupedPart> grouped_parts(const QuantizationConfig& config, const QuantizedNames& names, std::int64_t rows,
                                       std::int64_t columns) {
  const GroupedCodes& groups = config.groups;
  const int bits = groups.bits;
  const std::int64_t count = columns / group_of(groups, columns);
  const std::vector<DType> halves{DType::f16, DType::bf16}, packed{DType::i32};
  std::vector<GroupedPart> parts;
  switch (groups.layout) {
    case GroupLayout::compressed_tensors:
      parts = {{names.codes, packed, {rows, words_of(columns, bits)}},
               {names.scale, {DType::bf16, DType::f16, DType::f32}, {rows, count}},
               {names.shape, {DType::i64}, {2}}};
      if (groups.has_zero_points)
        parts.push_back({names.zero_points, packed, {rounded_up(rows, codes_of_words(bits)), count}});
      break;
    case GroupLayout::gptq:
      parts = {{names.codes, packed, {words_of(columns, bits), rows}},
               {names.scale, halves, {count, rows}},
               {names.zero_points, packed, {count, words_of(rows, bits)}}};
      break;
    case GroupLayout::awq:
      parts = {{names.codes, packed, {columns, words_of(rows, bits)}},
               {names.scale, halves, {count, rows}},
               {names.zero_points, packed, {count, words_of(rows, bits)}}};
      break;
    case GroupLayout::mlx:
      parts = {{names.codes, {DType::u32}, {rows, words_of(columns, bits)}}, {names.scale, {DType::u8}, {rows, count}}};
      if (has_floats(groups)) break;
      parts.back().dtypes = {DType::bf16, DType::f16, DType::f32};
      parts.push_back({names.minimums, parts.back().dtypes, {rows, count}});
      break;
    case GroupLayout::bitsandbytes:
      if (bits == 8) return {{names.codes, {DType::i8}, {rows, columns}}, {names.scale, {DType::f32}, {rows}}};
      return block_parts(config, names, rows, columns, kLeastBlock);
  }
  if (groups.is_reordered) parts.push_back({names.groups, {DType::i32}, {columns}});
  return parts;
}

void check_part(const Checkpoint& checkpoint, const GroupedPart& part) {
  const Meta& meta = checkpoint.tensor(part.name).meta;
  const bool fits = std::find(part.dtypes.begin(), part.dtypes.end(), meta.dtype) != part.dtypes.end();
  std::vector<std::string_view> dtypes;
  for (const DType dtype : part.dtypes) dtypes.push_back(dtype_text(dtype));
  USER_CHECK(fits && meta.shape == part.shape, "[{}] tensor {} must be {}{} as the config says, but is {}",
             checkpoint.path(), part.name, fmt::join(dtypes, " or "), shape_text(part.shape), meta.text());
}

// The bytes with the codes of 4 bits. bitsandbytes may store them as tensors of another type, and then as fewer
// elements (bnb_4bit_quant_storage).
void check_bytes(const Checkpoint& checkpoint, const std::string& name, std::int64_t bytes) {
  const Meta& meta = checkpoint.tensor(name).meta;
  using enum DType;
  const bool is_storage =
      meta.dtype == u8 || meta.dtype == i8 || meta.dtype == f16 || meta.dtype == bf16 || meta.dtype == f32;
  USER_CHECK(is_storage && meta.rank() == 2 && meta.shape[1] == Dim(1) && meta.bytes() == Dim(bytes),
             "[{}] tensor {} must be u8[{}, 1], or the same bytes as a column of i8, f16, bf16 or f32, but is {}",
             checkpoint.path(), name, bytes, meta.text());
}

void check_bitsandbytes(const Checkpoint& checkpoint, const QuantizationConfig& config, const QuantizedNames& names,
                        std::int64_t rows, std::int64_t columns) {
  if (config.groups.bits == 8) {
    for (const GroupedPart& part : grouped_parts(config, names, rows, columns)) check_part(checkpoint, part);
    return check_order_of_rows(checkpoint, names);
  }
  const BlockState state = read_block_state(checkpoint, config, names);
  USER_CHECK(state.rows == rows && state.columns == columns, "[{}] {} must have the shape [{}, {}], but it is [{}, {}]",
             checkpoint.path(), names.shape, rows, columns, state.rows, state.columns);
  check_bytes(checkpoint, names.codes, rows * columns / 2);
  for (const GroupedPart& part : block_parts(config, names, rows, columns, state.block)) check_part(checkpoint, part);
  check_values(checkpoint, names.values, state.values);
}

void check_shape_tensor(const Checkpoint& checkpoint, const std::string& name, std::int64_t rows,
                        std::int64_t columns) {
  const auto* shape = checkpoint.tensor(name).as<const std::int64_t>();
  USER_CHECK(shape[0] == rows && shape[1] == columns, "[{}] tensor {} must be [{}, {}], but is [{}, {}]",
             checkpoint.path(), name, rows, columns, shape[0], shape[1]);
}

// Without act-order, the file's own order has to be that of the columns. compressed-tensors has -1 where it set none.
void check_in_order(const Checkpoint& checkpoint, const std::string& name, std::int64_t columns,
                    const GroupedCodes& groups) {
  const TensorEntry* entry = checkpoint.find(name);
  if (entry == nullptr) return;
  check_part(checkpoint, {name, {DType::i32}, {columns}});
  const bool is_gptq = groups.layout == GroupLayout::gptq;
  for (std::int64_t k = 0; k < columns; ++k) {
    const std::int32_t came = entry->tensor.as<const std::int32_t>()[k];
    const std::int64_t wanted = k / group_of(groups, columns);
    USER_CHECK(came == wanted || (came == -1 && !is_gptq), "[{}] tensor {} must be {} at {} where {}, but is {}",
               checkpoint.path(), name, wanted, k, is_gptq ? "desc_act is false" : "actorder is not group", came);
  }
}

}  // namespace

// Zero points are stored as numbers around 0, or in words of codes around the middle.
void check_symmetric(const Checkpoint& checkpoint, const std::string& zero_points, int bits) {
  const TensorEntry* entry = checkpoint.find(zero_points);
  if (entry == nullptr) return;
  const Tensor& tensor = entry->tensor;
  const int middle = bits == 8 ? 0x80 : 0x88;
  const auto wanted = static_cast<std::byte>(tensor.meta.dtype == DType::i32 ? middle : 0);
  const std::byte *begin = tensor.data(), *end = begin + tensor.meta.bytes().number();
  USER_CHECK(std::all_of(begin, end, [&](std::byte one) { return one == wanted; }),
             "[{}] tensor {} must have only zero points of 0 where symmetric is true, but has others",
             checkpoint.path(), zero_points);
}

std::vector<NamedMeta> grouped_tensors(const QuantizationConfig& config, const std::string& weight, std::int64_t rows,
                                       std::int64_t columns) {
  const QuantizedNames names = quantized_names(config, weight);
  std::vector<NamedMeta> tensors;
  for (const GroupedPart& part : grouped_parts(config, names, rows, columns))
    tensors.push_back({part.name, Meta::tensor(part.dtypes[0], part.shape)});
  // No JSON has the shape of weights that are not there, so it is the shape of their codes.
  if (is_bitsandbytes(config.groups) && config.groups.bits == 4)
    tensors.push_back({names.codes, Meta::tensor(DType::u8, {rows, columns / 2})});
  return tensors;
}

void check_grouped_weight(const Checkpoint& checkpoint, const QuantizationConfig& config, const std::string& weight,
                          std::int64_t rows, std::int64_t columns) {
  const GroupedCodes& groups = config.groups;
  const std::int64_t group = group_of(groups, columns), of_words = codes_of_words(groups.bits);
  if (is_bitsandbytes(groups)) {
    USER_CHECK(columns % 2 == 0, "[{}] {} has rows of {}, which pairs of codes do not divide", checkpoint.path(),
               weight, columns);
  } else {
    USER_CHECK(columns % group == 0, "[{}] {} has rows of {}, which groups of {} do not divide", checkpoint.path(),
               weight, columns, group);
    USER_CHECK(columns % kLeastGroup == 0 || has_floats(groups),
               "[{}] {} must have rows of a multiple of {} columns, but they have {}", checkpoint.path(), weight,
               kLeastGroup, columns);
  }
  USER_CHECK(!has_words_of_rows(groups) || rows % of_words == 0,
             "[{}] {} has {} rows, which words of {} codes do not divide", checkpoint.path(), weight, rows, of_words);
  const QuantizedNames names = quantized_names(config, weight);
  if (checkpoint.is_dummy()) return;
  if (is_bitsandbytes(groups)) return check_bitsandbytes(checkpoint, config, names, rows, columns);
  for (const GroupedPart& part : grouped_parts(config, names, rows, columns)) check_part(checkpoint, part);
  if (!names.shape.empty()) check_shape_tensor(checkpoint, names.shape, rows, columns);
  if (!groups.has_zero_points) check_symmetric(checkpoint, names.zero_points, groups.bits);
  if (!groups.is_reordered) check_in_order(checkpoint, names.groups, columns, groups);
}

}  // namespace weft
