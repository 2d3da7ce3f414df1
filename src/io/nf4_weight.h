#pragma once

// What belongs to weights of bitsandbytes alone: the JSON tensor with the shape of a weight, and scales that may have
// codes and scales themselves.

#include <cstdint>
#include <string>
#include <vector>

#include "io/checkpoint.h"
#include "io/quantization_config.h"

namespace weft {

// Elements with one scale, at least; scales with one scale of theirs.
inline constexpr std::int64_t kBlockOfNf4 = 64, kBlocksOfScales = 256;

struct Nf4State {
  std::int64_t rows, columns;
  std::int64_t block;  // consecutive elements, of all rows, with one scale
  double offset;       // of scales that have codes
};

// UserError that names the tensor and the key.
Nf4State read_nf4_state(const Checkpoint& checkpoint, const QuantizationConfig& config, const QuantizedNames& names);

// UserError unless the tensor has the numbers of kNf4Values.
void check_nf4_values(const Checkpoint& checkpoint, const std::string& name);

// The scale of each block.
std::vector<float> nf4_scales(const Checkpoint& checkpoint, const QuantizedNames& names, const Nf4State& state);

}  // namespace weft
