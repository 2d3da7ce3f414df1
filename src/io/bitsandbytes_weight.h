#pragma once

// What belongs to weights of bitsandbytes alone: the JSON tensor with the shape of a weight of 4 bits, the numbers of
// its codes, scales that may have codes and scales themselves, and the scales of rows of 8 bits.

#include <cstdint>
#include <string>
#include <vector>

#include "io/checkpoint.h"
#include "io/quantization_config.h"

namespace weft {

// Elements with one scale, at least; scales with one scale of theirs.
inline constexpr std::int64_t kLeastBlock = 64, kBlocksOfScales = 256;

// bitsandbytes' fp4: a sign, then codes of these numbers.
inline constexpr float kFp4Values[16] = {0.0f,  1.0f / 192,  2.0f / 3,  1.0f,  1.0f / 3,  0.5f,  1.0f / 6,  0.25f,
                                         -0.0f, -1.0f / 192, -2.0f / 3, -1.0f, -1.0f / 3, -0.5f, -1.0f / 6, -0.25f};

// The numbers of the 16 codes of nf4 or fp4.
const float* values_of_codes(CodeValues values);

// What the JSON tensor states. bitsandbytes reads the type of the codes from it alone, so configs may lack the type.
struct BlockState {
  CodeValues values;
  std::int64_t rows, columns;
  std::int64_t block;  // consecutive elements, of all rows, with one scale
  double offset;       // of scales that have codes
};

// UserError that names the tensor and the key.
BlockState read_block_state(const Checkpoint& checkpoint, const QuantizationConfig& config,
                            const QuantizedNames& names);

// UserError unless the tensor has the numbers of the codes.
void check_values(const Checkpoint& checkpoint, const std::string& name, CodeValues values);

// The scale of each block.
std::vector<float> scales_of_blocks(const Checkpoint& checkpoint, const QuantizedNames& names, const BlockState& state);

// The scale of each row of codes of 8 bits: the row's greatest magnitude, which the tensor has, has the code 127.
std::vector<float> scales_of_rows(const Checkpoint& checkpoint, const QuantizedNames& names);

// UserError if the checkpoint states that codes of 8 bits are not in the order of rows.
void check_order_of_rows(const Checkpoint& checkpoint, const QuantizedNames& names);

}  // namespace weft
