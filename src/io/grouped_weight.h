#pragma once

// The tensors of one weight [N, K] of a linear layer whose codes have a scale, and a zero point or a minimum, for each
// group of K.
// Codes of b bits are packed into words of 32 bits (bitsandbytes: of 4 bits into bytes), the first one lowest. Those of
// 3 bits, and of 5 and 6, cross the borders of words:
//
//                      codes              a word has             scales      zero points
//   compressed_tensors [N, K * b / 32]    consecutive k          [N, G]      [N * b / 32, G], a word has n
//   gptq               [K * b / 32, N]    consecutive k          [G, N]      [G, N * b / 32], a word has n
//   awq                [K, N / 8]         n 0 2 4 6 1 3 5 7      [G, N]      [G, N / 8], as codes
//   bitsandbytes       [N * K / 2, 1]     2 k, the first high    [N * K / block], blocks of the rows one after another
//     of 8 bits        [N, K] of i8                              [N]
//   mlx                [N, K * b / 32]    consecutive k          [N, G]      minimums [N, G]: scale * code + minimum
//     of floats        [N, K * b / 32]    consecutive k          [N, G] of u8, the bits of f8e8m0 or f8e4m3
//
// A weight is read as rows of a block type (tensor/group_blocks.h), so that it is stored, packed and multiplied like
// the weights of a GGUF file. Codes of 8 bits without zero points become q8_0 if their scales are f16, else i8g32.
// Those of mlx become q4_1 or q5_1, and its floats what dtype_of_codes() (io/quantized_weight.h) says. What no block
// type has is read as numbers: codes of 8 bits with zero points, of 6 and 8 bits with minimums, fp4, and rows of
// bitsandbytes that are no whole blocks.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "io/checkpoint.h"
#include "io/quantization_config.h"

namespace weft {

// The tensors that the weight has, by the config alone.
std::vector<NamedMeta> grouped_tensors(const QuantizationConfig& config, const std::string& weight, std::int64_t rows,
                                       std::int64_t columns);

// UserError unless the checkpoint lacks this tensor, or all zero points in it are those of symmetric codes of `bits`
// bits. Some writers store these, too.
void check_symmetric(const Checkpoint& checkpoint, const std::string& zero_points, int bits);

// UserError that names the first tensor that is missing or differs from the config and [rows, columns], or the group
// that does not divide the columns.
void check_grouped_weight(const Checkpoint& checkpoint, const QuantizationConfig& config, const std::string& weight,
                          std::int64_t rows, std::int64_t columns);

// The block type [N, K] that the weight is read as; f32 if it is read as numbers.
Meta grouped_meta(const Checkpoint& checkpoint, const QuantizationConfig& config, const std::string& weight);

// For codes that are reordered, the columns of the weight in the order of their groups, where the tensor `name` has the
// group of each column. UserError if the groups have different sizes.
std::vector<std::int32_t> column_order(const Checkpoint& checkpoint, const QuantizationConfig& config,
                                       const std::string& name);

class GroupedWeight {
 public:
  // The weight must have passed check_grouped_weight, and its codes are no floats. UserError if the groups of columns
  // have different sizes.
  GroupedWeight(const Checkpoint& checkpoint, const QuantizationConfig& config, const std::string& weight);

  const Meta& meta() const { return meta_; }
  // column_order(), empty where it is that of the columns: column order()[k] of the weight is element k of each row.
  const std::vector<std::int32_t>& order() const { return order_; }
  // Writes rows [first, first + count) as blocks or numbers. Layouts that store n along a word are read fastest in
  // steps of 32 rows. Scales of f32 beside codes of 4 bits have the mantissa of f16, and those of q4_1 and q5_1 are
  // f16. UserError that names the tensor for a scale that is not finite, also as f16.
  void read_rows(std::int64_t first, std::int64_t count, std::byte* rows) const;

 private:
  // Codes of rows as the blocks have them, `stride` bytes apart.
  void read_codes(std::int64_t first, std::int64_t count, std::uint8_t* codes, std::int64_t stride) const;
  void read_transposed_codes(std::int64_t first, std::int64_t count, std::uint8_t* codes, std::int64_t stride) const;
  void read_codes_of_mlx(std::int64_t first, std::int64_t count, std::uint8_t* codes, std::int64_t stride) const;
  void read_words(std::int64_t first, std::int64_t count, std::uint8_t* codes, std::int64_t stride) const;
  void reorder(std::uint8_t* codes) const;
  float scale(std::int64_t row, std::int64_t column) const;
  int zero_point(std::int64_t row, std::int64_t column) const;
  float minimum(std::int64_t row, std::int64_t column) const;
  int zero_point_of_gptq(const std::uint32_t* words, std::int64_t row) const;
  void write_numbers(std::int64_t row, const std::uint8_t* codes, float* numbers) const;
  void write_numbers_with_minimum(std::int64_t row, const std::uint8_t* codes, float* numbers) const;
  void write_block(std::int64_t row, std::int64_t column, const std::uint8_t* codes, std::byte* block) const;
  // Of q4_1 and q5_1.
  void write_block_with_minimum(std::int64_t row, std::int64_t column, const std::uint8_t* codes,
                                std::byte* block) const;

  GroupedCodes groups_;
  QuantizedNames names_;
  std::string where_;
  Meta meta_;
  std::int64_t rows_, columns_;
  std::int64_t group_;  // consecutive k with one scale
  Tensor codes_, scales_, zero_points_, minimums_;
  std::vector<float> own_scales_;  // bitsandbytes
  std::vector<std::int32_t> order_;
};

}  // namespace weft
