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
  std::vector<GroupedPart> parts{{names.codes, {DType::u8}, {rows * columns / 2, 1}},
                                 {names.scale, {has_codes ? DType::u8 : DType::f32}, {blocks}},
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
               {names.scale, {DType::bf16, DType::f16}, {rows, count}},
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
    case GroupLayout::bitsandbytes:
      if (bits == 8) return {{names.codes, {DType::i8}, {rows, columns}}, {names.scale, {DType::f32}, {rows}}};
      return block_parts(config, names, rows, columns, kLeastBlock);
  }
  if (!names.groups.empty()) parts.push_back({names.groups, {DType::i32}, {columns}});
  return parts;
}

void check_part(const Checkpoint& checkpoint, const GroupedPart& part) {
  const Meta& meta = checkpoint.tensor(part.name).meta;
  const bool fits = std::find(part.dtypes.begin(), part.dtypes.end(), meta.dtype) != part.dtypes.end();
  std::vector<std::string_view> dtypes;
  for (const DType dtype : part.dtypes) dtypes.push_back(dtype_text(dtype));
  USER_CHECK(fits && meta.shape == part.shape, "[{}] tensor {} must be {}{} as quantization_config says, but is {}",
             checkpoint.path(), part.name, fmt::join(dtypes, " or "), shape_text(part.shape), meta.text());
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
  for (const GroupedPart& part : block_parts(config, names, rows, columns, state.block)) check_part(checkpoint, part);
  check_values(checkpoint, names.values, config.groups.values);
}

void check_shape_tensor(const Checkpoint& checkpoint, const std::string& name, std::int64_t rows,
                        std::int64_t columns) {
  const auto* shape = checkpoint.tensor(name).as<const std::int64_t>();
  USER_CHECK(shape[0] == rows && shape[1] == columns, "[{}] tensor {} must be [{}, {}], but is [{}, {}]",
             checkpoint.path(), name, rows, columns, shape[0], shape[1]);
}

// Without desc_act, the file's own order has to be that of the columns.
void check_in_order(const Checkpoint& checkpoint, const std::string& name, std::int64_t group) {
  const Tensor& tensor = checkpoint.tensor(name);
  for (std::int64_t k = 0; k < tensor.meta.shape[0].number(); ++k) {
    const std::int32_t came = tensor.as<const std::int32_t>()[k];
    USER_CHECK(came == k / group, "[{}] tensor {} must be {} at {} where desc_act is false, but is {}",
               checkpoint.path(), name, k / group, k, came);
  }
}

}  // namespace

std::vector<NamedMeta> grouped_tensors(const QuantizationConfig& config, const std::string& weight, std::int64_t rows,
                                       std::int64_t columns) {
  const QuantizedNames names = quantized_names(config, weight);
  std::vector<NamedMeta> tensors;
  for (const GroupedPart& part : grouped_parts(config, names, rows, columns))
    tensors.push_back({part.name, Meta::tensor(part.dtypes[0], part.shape)});
  // No JSON has the shape of weights that are not there, so it is the shape of their codes.
  if (is_bitsandbytes(config.groups) && config.groups.bits == 4)
    tensors[0].meta = Meta::tensor(DType::u8, {rows, columns / 2});
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
    USER_CHECK(columns % kLeastGroup == 0 && columns % group == 0,
               "[{}] {} has rows of {}, which groups of {} do not divide", checkpoint.path(), weight, columns,
               columns % group == 0 ? kLeastGroup : group);
  }
  USER_CHECK(!has_words_of_rows(groups) || rows % of_words == 0,
             "[{}] {} has {} rows, which words of {} codes do not divide", checkpoint.path(), weight, rows, of_words);
  const QuantizedNames names = quantized_names(config, weight);
  if (checkpoint.is_dummy()) return;
  if (is_bitsandbytes(groups)) return check_bitsandbytes(checkpoint, config, names, rows, columns);
  const bool may_lack_groups = !groups.is_reordered;
  for (const GroupedPart& part : grouped_parts(config, names, rows, columns))
    if (part.name != names.groups || !may_lack_groups || checkpoint.find(part.name) != nullptr)
      check_part(checkpoint, part);
  if (!names.shape.empty()) check_shape_tensor(checkpoint, names.shape, rows, columns);
  if (!names.groups.empty() && may_lack_groups && checkpoint.find(names.groups) != nullptr)
    check_in_order(checkpoint, names.groups, group);
}

}  // namespace weft
