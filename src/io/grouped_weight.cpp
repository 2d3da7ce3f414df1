#include "io/grouped_weight.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include <fmt/ranges.h>

#include "base/error.h"
#include "io/nf4_weight.h"
#include "io/quantized_weight.h"
#include "tensor/block_format.h"
#include "tensor/convert.h"
#include "tensor/float16.h"
#include "tensor/group_blocks.h"

namespace weft {
namespace {

constexpr std::int64_t kLeastGroup = 32;  // columns of the smallest block
constexpr std::int64_t kWordBits = 32;
constexpr int kNibbles = 8;
// Where a word of AWQ has column n % 8.
constexpr int kAwqNibble[kNibbles] = {0, 4, 1, 5, 2, 6, 3, 7};

std::int64_t rounded_up(std::int64_t count, std::int64_t of) { return (count + of - 1) / of; }

// A tensor of the weight: the dtypes that it may have, the writers' usual one first.
struct GroupedPart {
  std::string name;
  std::vector<DType> dtypes;
  Shape shape;
};

std::int64_t group_of(const GroupedCodes& groups, std::int64_t columns) {
  return groups.group_size > 0 ? groups.group_size : columns;
}

std::vector<GroupedPart> nf4_parts(const QuantizationConfig& config, const QuantizedNames& names, std::int64_t rows,
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
  const std::int64_t of_word = kWordBits / groups.bits, count = columns / group_of(groups, columns);
  const std::vector<DType> halves{DType::f16, DType::bf16}, packed{DType::i32};
  std::vector<GroupedPart> parts;
  switch (groups.layout) {
    case GroupLayout::compressed_tensors:
      parts = {{names.codes, packed, {rows, columns / of_word}},
               {names.scale, {DType::bf16, DType::f16}, {rows, count}},
               {names.shape, {DType::i64}, {2}}};
      if (groups.has_zero_points) parts.push_back({names.zero_points, packed, {rounded_up(rows, of_word), count}});
      break;
    case GroupLayout::gptq:
      parts = {{names.codes, packed, {columns / of_word, rows}},
               {names.scale, halves, {count, rows}},
               {names.zero_points, packed, {count, rows / of_word}}};
      break;
    case GroupLayout::awq:
      parts = {{names.codes, packed, {columns, rows / of_word}},
               {names.scale, halves, {count, rows}},
               {names.zero_points, packed, {count, rows / of_word}}};
      break;
    case GroupLayout::bitsandbytes:
      return nf4_parts(config, names, rows, columns, kBlockOfNf4);
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

void check_nf4(const Checkpoint& checkpoint, const QuantizationConfig& config, const QuantizedNames& names,
               std::int64_t rows, std::int64_t columns) {
  const Nf4State state = read_nf4_state(checkpoint, config, names);
  USER_CHECK(state.rows == rows && state.columns == columns, "[{}] {} must have the shape [{}, {}], but it is [{}, {}]",
             checkpoint.path(), names.shape, rows, columns, state.rows, state.columns);
  for (const GroupedPart& part : nf4_parts(config, names, rows, columns, state.block)) check_part(checkpoint, part);
  check_nf4_values(checkpoint, names.values);
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

DType block_type(const GroupedCodes& groups, std::int64_t columns) {
  if (groups.bits == 8) return DType::q8_0;
  if (groups.layout == GroupLayout::bitsandbytes) return columns % 64 == 0 ? DType::nf4g64 : DType::nf4g32;
  const std::int64_t group = group_of(groups, columns);
  return group % 128 == 0 ? DType::i4g128 : group % 64 == 0 ? DType::i4g64 : DType::i4g32;
}

int bits_at(const Tensor& words, std::int64_t word, std::int64_t index, int bits) {
  return static_cast<int>(words.as<const std::uint32_t>()[word] >> index * bits & ((1u << bits) - 1));
}

}  // namespace

// The columns of one group keep their order.
std::vector<std::int32_t> column_order(const Checkpoint& checkpoint, const QuantizationConfig& config,
                                       const std::string& name) {
  const std::int64_t group = config.groups.group_size;
  const Tensor& tensor = checkpoint.tensor(name);
  const auto* groups = tensor.as<const std::int32_t>();
  std::vector<std::int32_t> order(static_cast<std::size_t>(tensor.meta.shape[0].number()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) { return groups[a] < groups[b]; });
  for (std::size_t k = 0; k < order.size(); ++k) {
    const auto wanted = static_cast<std::int64_t>(k) / group;
    USER_CHECK(groups[order[k]] == wanted,
               "[{}] tensor {} must have each group from 0 on {} times, but group {} is not", checkpoint.path(), name,
               group, wanted);
  }
  return order;
}

std::vector<NamedMeta> grouped_tensors(const QuantizationConfig& config, const std::string& weight, std::int64_t rows,
                                       std::int64_t columns) {
  const QuantizedNames names = quantized_names(config, weight);
  std::vector<NamedMeta> tensors;
  for (const GroupedPart& part : grouped_parts(config, names, rows, columns))
    tensors.push_back({part.name, Meta::tensor(part.dtypes[0], part.shape)});
  // No JSON has the shape of weights that are not there, so it is the shape of their codes.
  if (config.groups.layout == GroupLayout::bitsandbytes) tensors[0].meta = Meta::tensor(DType::u8, {rows, columns / 2});
  return tensors;
}

void check_grouped_weight(const Checkpoint& checkpoint, const QuantizationConfig& config, const std::string& weight,
                          std::int64_t rows, std::int64_t columns) {
  const GroupedCodes& groups = config.groups;
  const std::int64_t group = group_of(groups, columns), of_word = kWordBits / groups.bits;
  USER_CHECK(columns % kLeastGroup == 0 && columns % group == 0,
             "[{}] {} has rows of {}, which groups of {} do not divide", checkpoint.path(), weight, columns,
             columns % group == 0 ? kLeastGroup : group);
  const bool has_words_of_rows = groups.layout == GroupLayout::awq || groups.layout == GroupLayout::gptq;
  USER_CHECK(!has_words_of_rows || rows % of_word == 0, "[{}] {} has {} rows, which words of {} codes do not divide",
             checkpoint.path(), weight, rows, of_word);
  const QuantizedNames names = quantized_names(config, weight);
  if (checkpoint.is_dummy()) return;
  if (groups.layout == GroupLayout::bitsandbytes) return check_nf4(checkpoint, config, names, rows, columns);
  const bool may_lack_groups = !groups.is_reordered;
  for (const GroupedPart& part : grouped_parts(config, names, rows, columns))
    if (part.name != names.groups || !may_lack_groups || checkpoint.find(part.name) != nullptr)
      check_part(checkpoint, part);
  if (!names.shape.empty()) check_shape_tensor(checkpoint, names.shape, rows, columns);
  if (!names.groups.empty() && may_lack_groups && checkpoint.find(names.groups) != nullptr)
    check_in_order(checkpoint, names.groups, group);
}

Meta grouped_meta(const Checkpoint& checkpoint, const QuantizationConfig& config, const std::string& weight) {
  const QuantizedNames names = quantized_names(config, weight);
  const Meta& codes = checkpoint.tensor(names.codes).meta;
  CHECK(codes.rank() == 2, "{} is no matrix of codes", names.codes);
  const std::int64_t of_word = kWordBits / config.groups.bits;
  std::int64_t rows = codes.shape[0].number(), columns = codes.shape[1].number();
  switch (config.groups.layout) {
    case GroupLayout::compressed_tensors:
      columns *= of_word;
      break;
    case GroupLayout::gptq:
      std::swap(rows, columns);
      columns *= of_word;
      break;
    case GroupLayout::awq:
      std::swap(rows, columns);
      rows *= of_word;
      break;
    case GroupLayout::bitsandbytes:
      columns *= 2;
      if (checkpoint.is_dummy()) break;
      const Nf4State state = read_nf4_state(checkpoint, config, names);
      rows = state.rows;
      columns = state.columns;
      break;
  }
  return Meta::tensor(block_type(config.groups, columns), {rows, columns});
}

GroupedWeight::GroupedWeight(const Checkpoint& checkpoint, const QuantizationConfig& config, const std::string& weight)
    : groups_(config.groups),
      names_(quantized_names(config, weight)),
      where_(checkpoint.path()),
      meta_(grouped_meta(checkpoint, config, weight)),
      rows_(meta_.shape[0].number()),
      columns_(meta_.shape[1].number()),
      group_(group_of(groups_, columns_)),
      codes_(checkpoint.tensor(names_.codes)),
      scales_(checkpoint.tensor(names_.scale)) {
  if (groups_.layout == GroupLayout::bitsandbytes) {
    const Nf4State state = read_nf4_state(checkpoint, config, names_);
    group_ = state.block;
    own_scales_ = nf4_scales(checkpoint, names_, state);
    return;
  }
  if (groups_.has_zero_points) zero_points_ = checkpoint.tensor(names_.zero_points);
  if (groups_.is_reordered) order_ = column_order(checkpoint, config, names_.groups);
}

float GroupedWeight::scale(std::int64_t row, std::int64_t column) const {
  const std::int64_t group = column / group_;
  const bool is_by_row = groups_.layout == GroupLayout::compressed_tensors;
  const float scale = groups_.layout == GroupLayout::bitsandbytes
                          ? own_scales_[static_cast<std::size_t>((row * columns_ + column) / group_)]
                          : load_float(scales_.meta.dtype, scales_.data(),
                                       is_by_row ? row * (columns_ / group_) + group : group * rows_ + row);
  USER_CHECK(std::isfinite(scale), "[{}] tensor {} must be finite, but has {} for row {}", where_, names_.scale, scale,
             row);
  return scale;
}

int GroupedWeight::zero_point(std::int64_t row, std::int64_t column) const {
  if (!groups_.has_zero_points) return 1 << (groups_.bits - 1);
  const std::int64_t group = column / group_, of_word = kWordBits / groups_.bits;
  if (groups_.layout == GroupLayout::compressed_tensors)
    return bits_at(zero_points_, row / of_word * (columns_ / group_) + group, row % of_word, groups_.bits);
  const std::int64_t word = group * (rows_ / of_word) + row / of_word;
  if (groups_.layout == GroupLayout::awq) return bits_at(zero_points_, word, kAwqNibble[row % kNibbles], groups_.bits);
  return bits_at(zero_points_, word, row % of_word, groups_.bits) + (groups_.zeros_less_one ? 1 : 0);
}

void GroupedWeight::read_transposed_codes(std::int64_t first, std::int64_t count, std::uint8_t* codes,
                                          std::int64_t stride) const {
  const auto* words = codes_.as<const std::uint32_t>();
  if (groups_.layout == GroupLayout::gptq) {
    for (std::int64_t r = 0; r < columns_ * groups_.bits / kWordBits; ++r)
      for (std::int64_t i = 0; i < count; ++i)
        std::memcpy(codes + i * stride + r * 4, words + r * rows_ + first + i, 4);
    return;
  }
  const std::int64_t width = rows_ / kNibbles;
  for (std::int64_t k = 0; k < columns_; k += 2)
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t word = k * width + (first + i) / kNibbles;
      const int shift = 4 * kAwqNibble[(first + i) % kNibbles];
      codes[i * stride + k / 2] =
          static_cast<std::uint8_t>((words[word] >> shift & 15) | (words[word + width] >> shift & 15) << 4);
    }
}

void GroupedWeight::read_codes(std::int64_t first, std::int64_t count, std::uint8_t* codes, std::int64_t stride) const {
  const std::int64_t row_bytes = columns_ * groups_.bits / 8;
  switch (groups_.layout) {
    case GroupLayout::compressed_tensors:
      for (std::int64_t i = 0; i < count; ++i)
        std::memcpy(codes + i * stride, codes_.data() + (first + i) * row_bytes, static_cast<std::size_t>(row_bytes));
      break;
    case GroupLayout::bitsandbytes: {
      const auto* bytes = codes_.as<const std::uint8_t>() + first * row_bytes;
      for (std::int64_t i = 0; i < count; ++i)
        for (std::int64_t j = 0; j < row_bytes; ++j) {
          const int both = bytes[i * row_bytes + j];
          codes[i * stride + j] = static_cast<std::uint8_t>(both >> 4 | both << 4);
        }
      break;
    }
    case GroupLayout::gptq:
    case GroupLayout::awq:
      read_transposed_codes(first, count, codes, stride);
      break;
  }
  if (!order_.empty())
    for (std::int64_t i = 0; i < count; ++i) reorder(codes + i * stride);
}

void GroupedWeight::reorder(std::uint8_t* codes) const {
  const std::vector<std::uint8_t> row(codes, codes + columns_ * groups_.bits / 8);
  const auto code_of = [&](std::int64_t k) {
    const int both = row[static_cast<std::size_t>(k / 2)];
    return k % 2 == 0 ? both & 15 : both >> 4;
  };
  for (std::size_t k = 0; k < order_.size(); k += 2) {
    if (groups_.bits == 8) {
      for (std::size_t i = k; i < k + 2; ++i) codes[i] = row[static_cast<std::size_t>(order_[i])];
    } else {
      codes[k / 2] = static_cast<std::uint8_t>(code_of(order_[k]) | code_of(order_[k + 1]) << 4);
    }
  }
}

void GroupedWeight::write_block(std::int64_t row, std::int64_t column, const std::uint8_t* codes,
                                std::byte* block) const {
  const float scale = this->scale(row, column);
  const std::int64_t bytes = dtype_info(meta_.dtype).block_elements * groups_.bits / 8;
  if (groups_.layout == GroupLayout::bitsandbytes) {
    std::memcpy(block, &scale, kFloatScaleBytes);
    std::memcpy(block + kFloatScaleBytes, codes, static_cast<std::size_t>(bytes));
    return;
  }
  const int zero_point = this->zero_point(row, column);
  if (groups_.bits == 4) {
    USER_CHECK(fits_group_header(scale), "[{}] tensor {} must have scales that are f16 or bf16, but has {}", where_,
               names_.scale, scale);
    store_group_header(group_header(scale, zero_point), block);
    std::memcpy(block + kGroupHeaderBytes, codes, static_cast<std::size_t>(bytes));
    return;
  }
  constexpr int kMiddle = 128;
  USER_CHECK(zero_point == kMiddle, "[{}] tensor {} must have zero points of {} where codes have 8 bits, but has {}",
             where_, names_.zero_points, kMiddle, zero_point);
  const std::uint16_t half = f32_to_f16(scale);
  USER_CHECK(f16_to_f32(half) == scale, "[{}] tensor {} must have scales that are f16, but has {}", where_,
             names_.scale, scale);
  std::memcpy(block, &half, sizeof half);
  for (std::int64_t i = 0; i < bytes; ++i)
    block[sizeof half + static_cast<std::size_t>(i)] = static_cast<std::byte>(codes[i] ^ kMiddle);
}

void GroupedWeight::read_rows(std::int64_t first, std::int64_t count, std::byte* rows) const {
  // Rows whose distance is a power of two would share few sets of a cache.
  constexpr std::int64_t kPadding = 64;
  const DTypeInfo& info = dtype_info(meta_.dtype);
  const std::int64_t stride = columns_ * groups_.bits / 8 + kPadding, row_bytes = bytes_of(meta_.dtype, columns_);
  std::vector<std::uint8_t> codes(static_cast<std::size_t>(count * stride));
  read_codes(first, count, codes.data(), stride);
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t k = 0; k < columns_; k += info.block_elements)
      write_block(first + i, k, codes.data() + i * stride + k * groups_.bits / 8,
                  rows + i * row_bytes + k / info.block_elements * info.block_bytes);
}

}  // namespace weft
