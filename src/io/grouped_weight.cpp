#include "io/grouped_weight.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include <fmt/ranges.h>

#include "base/error.h"
#include "io/bitsandbytes_weight.h"
#include "io/grouped_layout.h"
#include "io/quantized_weight.h"
#include "tensor/block_format.h"
#include "tensor/convert.h"
#include "tensor/float16.h"
#include "tensor/float_bits.h"
#include "tensor/group_blocks.h"

namespace weft {
namespace {

constexpr int kNibbles = 8;
// Where a word of AWQ has column n % 8.
constexpr int kAwqNibble[kNibbles] = {0, 4, 1, 5, 2, 6, 3, 7};

// The type of the rows: blocks, or numbers where no block type has their values.
DType type_of_rows(const GroupedCodes& groups, std::int64_t columns, DType scales) {
  const std::int64_t group = group_of(groups, columns);
  if (has_minimums(groups)) return groups.bits <= 4 ? DType::q4_1 : groups.bits == 5 ? DType::q5_1 : DType::f32;
  if (is_bitsandbytes(groups)) {
    if (columns % kLeastGroup != 0 || groups.values == CodeValues::fp4) return DType::f32;
    if (groups.values == CodeValues::nf4) return columns % 64 == 0 ? DType::nf4g64 : DType::nf4g32;
  }
  if (groups.bits == 8) return !groups.is_symmetric ? DType::f32 : scales == DType::f16 ? DType::q8_0 : DType::i8g32;
  return group % 128 == 0 ? DType::i4g128 : group % 64 == 0 ? DType::i4g64 : DType::i4g32;
}

int bits_at(const Tensor& words, std::int64_t word, std::int64_t index, int bits) {
  return static_cast<int>(words.as<const std::uint32_t>()[word] >> index * bits & ((1u << bits) - 1));
}

// Code `index` of consecutive bits, which may cross the border of two words.
int code_in(const std::uint32_t* words, std::int64_t index, int bits) {
  const std::int64_t word = index * bits / kWordBits, shift = index * bits % kWordBits;
  std::uint64_t both = words[word];
  if (shift + bits > kWordBits) both |= static_cast<std::uint64_t>(words[word + 1]) << kWordBits;
  return static_cast<int>(both >> shift & ((1u << bits) - 1));
}

// A scale of f32 is rounded to the bits of mantissa that a header has, as many as f16. vLLM rounds such scales to the
// model's dtype. Scales of f16 and bf16 are unchanged.
float rounded_to_header(float scale) {
  constexpr int kDropped = 13;
  constexpr std::uint32_t kHalf = 1u << (kDropped - 1), kGreatest = 0x7f7fe000, kSign = 0x80000000;
  const std::uint32_t bits = bits_of_float(scale), magnitude = bits & ~kSign;
  const std::uint32_t rounded = (magnitude + kHalf - 1 + (magnitude >> kDropped & 1)) >> kDropped << kDropped;
  return float_of_bits((bits & kSign) | std::min(rounded, kGreatest));
}

int code_in_row(const std::uint8_t* codes, std::int64_t index, int bits) {
  if (bits == 8) return codes[index];
  return index % 2 == 0 ? codes[index / 2] & 15 : codes[index / 2] >> 4;
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

Meta grouped_meta(const Checkpoint& checkpoint, const QuantizationConfig& config, const std::string& weight) {
  const QuantizedNames names = quantized_names(config, weight);
  if (has_floats(config.groups)) {
    const Meta floats = quantized_codes(checkpoint, config, weight).meta;
    return Meta::tensor(dtype_of_codes(config, floats), floats.shape);
  }
  const Meta& codes = checkpoint.tensor(names.codes).meta;
  CHECK(codes.rank() == 2, "{} is no matrix of codes", names.codes);
  const int bits = config.groups.bits;
  std::int64_t rows = codes.shape[0].number(), columns = codes.shape[1].number();
  GroupedCodes groups = config.groups;
  switch (groups.layout) {
    case GroupLayout::compressed_tensors:
    case GroupLayout::mlx:
      columns = columns * kWordBits / bits;
      break;
    case GroupLayout::gptq:
      std::swap(rows, columns);
      columns = columns * kWordBits / bits;
      break;
    case GroupLayout::awq:
      std::swap(rows, columns);
      rows = rows * kWordBits / bits;
      break;
    case GroupLayout::bitsandbytes:
      if (bits == 8) break;
      columns *= 2;
      if (checkpoint.is_dummy()) break;
      const BlockState state = read_block_state(checkpoint, config, names);
      rows = state.rows;
      columns = state.columns;
      groups.values = state.values;
      break;
  }
  const DType scales = checkpoint.tensor(names.scale).meta.dtype;
  return Meta::tensor(type_of_rows(groups, columns, scales), {rows, columns});
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
  if (is_bitsandbytes(groups_) && groups_.bits == 8) {
    own_scales_ = scales_of_rows(checkpoint, names_);
    return;
  }
  if (is_bitsandbytes(groups_)) {
    const BlockState state = read_block_state(checkpoint, config, names_);
    group_ = state.block;
    groups_.values = state.values;
    own_scales_ = scales_of_blocks(checkpoint, names_, state);
    return;
  }
  if (groups_.has_zero_points) zero_points_ = checkpoint.tensor(names_.zero_points);
  if (has_minimums(groups_)) minimums_ = checkpoint.tensor(names_.minimums);
  if (groups_.is_reordered) order_ = column_order(checkpoint, config, names_.groups);
}

float GroupedWeight::scale(std::int64_t row, std::int64_t column) const {
  const std::int64_t group = column / group_;
  const bool is_by_row = groups_.layout == GroupLayout::compressed_tensors || has_minimums(groups_);
  const float scale = is_bitsandbytes(groups_)
                          ? own_scales_[static_cast<std::size_t>((row * columns_ + column) / group_)]
                          : load_float(scales_.meta.dtype, scales_.data(),
                                       is_by_row ? row * (columns_ / group_) + group : group * rows_ + row);
  USER_CHECK(std::isfinite(scale), "[{}] tensor {} must be finite, but has {} for row {}", where_, names_.scale, scale,
             row);
  return scale;
}

float GroupedWeight::minimum(std::int64_t row, std::int64_t column) const {
  const std::int64_t group = row * (columns_ / group_) + column / group_;
  const float minimum = load_float(minimums_.meta.dtype, minimums_.data(), group);
  USER_CHECK(std::isfinite(minimum), "[{}] tensor {} must be finite, but has {} for row {}", where_, names_.minimums,
             minimum, row);
  return minimum;
}

int GroupedWeight::zero_point(std::int64_t row, std::int64_t column) const {
  const int bits = groups_.bits;
  if (!groups_.has_zero_points) return 1 << (bits - 1);
  const std::int64_t group = column / group_, of_word = kWordBits / bits;
  if (groups_.layout == GroupLayout::compressed_tensors)
    return bits_at(zero_points_, row / of_word * (columns_ / group_) + group, row % of_word, bits);
  const std::int64_t first_word = group * words_of(rows_, bits);
  if (groups_.layout == GroupLayout::awq)
    return bits_at(zero_points_, first_word + row / of_word, kAwqNibble[row % kNibbles], bits);
  return zero_point_of_gptq(zero_points_.as<const std::uint32_t>() + first_word, row);
}

// A zero point of 0 less one is stored as ones alone. AutoGPTQ adds one to each code and masks the sum. GPTQModel
// subtracted one from the codes of a word at once, so the next code has lent it one, and only the sum of the whole word
// is what the weight was quantized with. Codes of 3 bits cross the borders of words, and GPTQModel masks each of them.
int GroupedWeight::zero_point_of_gptq(const std::uint32_t* words, std::int64_t row) const {
  const int bits = groups_.bits;
  const std::uint32_t mask = (1u << bits) - 1;
  if (!groups_.zeros_less_one) return code_in(words, row, bits);
  if (groups_.zeros_borrow && kWordBits % bits == 0) {
    const std::int64_t of_word = kWordBits / bits;
    const std::uint32_t ones = ~0u / mask, word = words[row / of_word] + ones;  // 0x11111111 of codes of 4 bits
    return static_cast<int>(word >> row % of_word * bits & mask);
  }
  return static_cast<int>((static_cast<std::uint32_t>(code_in(words, row, bits)) + 1) & mask);
}

void GroupedWeight::read_words(std::int64_t first, std::int64_t count, std::uint8_t* codes, std::int64_t stride) const {
  const auto* words = codes_.as<const std::uint32_t>();
  const std::int64_t width = words_of(columns_, groups_.bits);
  if (kWordBits % groups_.bits == 0 && groups_.bits == bits_in_blocks(groups_)) {
    for (std::int64_t r = 0; r < width; ++r)
      for (std::int64_t i = 0; i < count; ++i)
        std::memcpy(codes + i * stride + r * 4, words + r * rows_ + first + i, 4);
    return;
  }
  std::vector<std::uint32_t> row(static_cast<std::size_t>(width));
  const auto code = [&](std::int64_t k) { return code_in(row.data(), k, groups_.bits); };
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t r = 0; r < width; ++r) row[static_cast<std::size_t>(r)] = words[r * rows_ + first + i];
    for (std::int64_t k = 0; k < columns_; k += 2)
      codes[i * stride + k / 2] = static_cast<std::uint8_t>(code(k) | code(k + 1) << 4);
  }
}

void GroupedWeight::read_transposed_codes(std::int64_t first, std::int64_t count, std::uint8_t* codes,
                                          std::int64_t stride) const {
  if (groups_.layout == GroupLayout::gptq) return read_words(first, count, codes, stride);
  const auto* words = codes_.as<const std::uint32_t>();
  const std::int64_t width = rows_ / kNibbles;
  for (std::int64_t k = 0; k < columns_; k += 2)
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t word = k * width + (first + i) / kNibbles;
      const int shift = 4 * kAwqNibble[(first + i) % kNibbles];
      codes[i * stride + k / 2] =
          static_cast<std::uint8_t>((words[word] >> shift & 15) | (words[word + width] >> shift & 15) << 4);
    }
}

void GroupedWeight::read_codes_of_mlx(std::int64_t first, std::int64_t count, std::uint8_t* codes,
                                      std::int64_t stride) const {
  const int bits = groups_.bits;
  const auto width = static_cast<std::size_t>(words_of(columns_, bits));
  std::vector<std::uint32_t> aligned(width);
  const std::uint32_t* words = aligned.data();
  for (std::int64_t i = 0; i < count; ++i) {
    const std::size_t bytes = width * sizeof *words;
    const std::byte* stored = codes_.data() + (first + i) * static_cast<std::int64_t>(bytes);
    std::uint8_t* row = codes + i * stride;
    if (bits == bits_in_blocks(groups_)) {
      std::memcpy(row, stored, bytes);
      continue;
    }
    std::memcpy(aligned.data(), stored, bytes);
    if (bits > 4) {
      for (std::int64_t k = 0; k < columns_; ++k) row[k] = static_cast<std::uint8_t>(code_in(words, k, bits));
    } else {
      for (std::int64_t k = 0; k < columns_; k += 2)
        row[k / 2] = static_cast<std::uint8_t>(code_in(words, k, bits) | code_in(words, k + 1, bits) << 4);
    }
  }
}

void GroupedWeight::read_codes(std::int64_t first, std::int64_t count, std::uint8_t* codes, std::int64_t stride) const {
  const std::int64_t row_bytes = columns_ * bits_in_blocks(groups_) / 8;
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
          codes[i * stride + j] = static_cast<std::uint8_t>(groups_.bits == 8 ? both ^ 0x80 : both >> 4 | both << 4);
        }
      break;
    }
    case GroupLayout::gptq:
    case GroupLayout::awq:
      read_transposed_codes(first, count, codes, stride);
      break;
    case GroupLayout::mlx:
      read_codes_of_mlx(first, count, codes, stride);
      break;
  }
  if (!order_.empty())
    for (std::int64_t i = 0; i < count; ++i) reorder(codes + i * stride);
}

void GroupedWeight::reorder(std::uint8_t* codes) const {
  const int bits = bits_in_blocks(groups_);
  const std::vector<std::uint8_t> row(codes, codes + columns_ * bits / 8);
  const auto code_of = [&](std::size_t k) { return code_in_row(row.data(), order_[k], bits); };
  for (std::size_t k = 0; k < order_.size(); k += 2) {
    if (bits == 8) {
      for (std::size_t i = k; i < k + 2; ++i) codes[i] = static_cast<std::uint8_t>(code_of(i));
    } else {
      codes[k / 2] = static_cast<std::uint8_t>(code_of(k) | code_of(k + 1) << 4);
    }
  }
}

void GroupedWeight::write_numbers_with_minimum(std::int64_t row, const std::uint8_t* codes, float* numbers) const {
  const int bits = bits_in_blocks(groups_);
  for (std::int64_t begin = 0; begin < columns_; begin += group_) {
    const float scale = this->scale(row, begin), minimum = this->minimum(row, begin);
    for (std::int64_t k = begin; k < begin + group_; ++k)
      numbers[k] = scale * static_cast<float>(code_in_row(codes, k, bits)) + minimum;
  }
}

// Each product is rounded once: those of integers are exact.
void GroupedWeight::write_numbers(std::int64_t row, const std::uint8_t* codes, float* numbers) const {
  if (has_minimums(groups_)) return write_numbers_with_minimum(row, codes, numbers);
  const int bits = bits_in_blocks(groups_);
  const float* values = groups_.values == CodeValues::integers ? nullptr : values_of_codes(groups_.values);
  for (std::int64_t k = 0; k < columns_; ++k) {
    const int code = code_in_row(codes, k, bits);
    const float value = values != nullptr ? values[code] : static_cast<float>(code - zero_point(row, k));
    numbers[k] = scale(row, k) * value;
  }
}

// ggml's order: byte i of the last 16 has the low four bits of elements i and i + 16, and bit i of the 32 before them,
// which q5_1 has, is the fifth bit of element i.
void GroupedWeight::write_block_with_minimum(std::int64_t row, std::int64_t column, const std::uint8_t* codes,
                                             std::byte* block) const {
  constexpr int kElements = 32, kHalf = kElements / 2;
  const std::uint16_t halves[] = {f32_to_f16(scale(row, column)), f32_to_f16(minimum(row, column))};
  for (const std::uint16_t half : halves)
    USER_CHECK(std::isfinite(f16_to_f32(half)), "[{}] tensors {} and {} must be at most 65504, but are not in row {}",
               where_, names_.scale, names_.minimums, row);
  std::uint8_t low[kHalf] = {};
  std::uint32_t high = 0;
  for (int i = 0; i < kElements; ++i) {
    const auto code = static_cast<std::uint32_t>(code_in_row(codes, i, bits_in_blocks(groups_)));
    low[i % kHalf] = static_cast<std::uint8_t>(low[i % kHalf] | (code & 15) << (i < kHalf ? 0 : 4));
    high |= code >> 4 << i;
  }
  std::memcpy(block, halves, sizeof halves);
  block += sizeof halves;
  if (meta_.dtype == DType::q5_1) {
    std::memcpy(block, &high, sizeof high);
    block += sizeof high;
  }
  std::memcpy(block, low, sizeof low);
}

void GroupedWeight::write_block(std::int64_t row, std::int64_t column, const std::uint8_t* codes,
                                std::byte* block) const {
  if (has_minimums(groups_)) return write_block_with_minimum(row, column, codes, block);
  const float scale = this->scale(row, column);
  const auto bytes = static_cast<std::size_t>(dtype_info(meta_.dtype).block_elements * bits_in_blocks(groups_) / 8);
  if (groups_.values != CodeValues::integers) {
    std::memcpy(block, &scale, kFloatScaleBytes);
    std::memcpy(block + kFloatScaleBytes, codes, bytes);
    return;
  }
  const int zero_point = this->zero_point(row, column);
  if (bits_in_blocks(groups_) == 4) {
    store_group_header(group_header(rounded_to_header(scale), zero_point), block);
    std::memcpy(block + kGroupHeaderBytes, codes, bytes);
    return;
  }
  constexpr int kMiddle = 128;
  USER_CHECK(zero_point == kMiddle, "[{}] tensor {} must have zero points of {} where sym is true, but has {}", where_,
             names_.zero_points, kMiddle, zero_point);
  std::byte* signed_codes = block + kFloatScaleBytes;
  if (meta_.dtype == DType::q8_0) {
    const std::uint16_t half = f32_to_f16(scale);
    std::memcpy(block, &half, sizeof half);
    signed_codes = block + sizeof half;
  } else {
    std::memcpy(block, &scale, kFloatScaleBytes);
  }
  for (std::size_t i = 0; i < bytes; ++i) signed_codes[i] = static_cast<std::byte>(codes[i] ^ kMiddle);
}

void GroupedWeight::read_rows(std::int64_t first, std::int64_t count, std::byte* rows) const {
  // Rows whose distance is a power of two would share few sets of a cache.
  constexpr std::int64_t kPadding = 64;
  const DTypeInfo& info = dtype_info(meta_.dtype);
  const int bits = bits_in_blocks(groups_);
  const std::int64_t stride = columns_ * bits / 8 + kPadding, row_bytes = bytes_of(meta_.dtype, columns_);
  std::vector<std::uint8_t> codes(static_cast<std::size_t>(count * stride));
  read_codes(first, count, codes.data(), stride);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint8_t* row = codes.data() + i * stride;
    if (!is_block(meta_.dtype)) {
      write_numbers(first + i, row, reinterpret_cast<float*>(rows + i * row_bytes));
      continue;
    }
    for (std::int64_t k = 0; k < columns_; k += info.block_elements)
      write_block(first + i, k, row + k * bits / 8, rows + i * row_bytes + k / info.block_elements * info.block_bytes);
  }
}

}  // namespace weft
