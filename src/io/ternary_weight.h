#pragma once

// Weights of BitNet's linear layers, whose codes are -1, 0 and 1 with one scale for a weight. Files have them packed,
// or as plain numbers that each program rounds:
//
//   packed   X.weight u8[N / 4, K] and X.weight_scale[1]. Bits 2 i and 2 i + 1 of a byte of row r are the code of row
//            i * N / 4 + r, plus one. Of linear_class autobitlinear the scale multiplies codes; of bitlinear it
//            divides.
//   rounded  X.weight [N, K] alone. The scale is the mean magnitude of the weight.

#include <string>
#include <vector>

#include "io/checkpoint.h"
#include "io/quantization_config.h"

namespace weft {

// UserError unless the files have this weight.
void check_ternary_weight(const Checkpoint& checkpoint, const QuantizationConfig& config, const std::string& weight,
                          std::int64_t rows, std::int64_t columns);
// The tensors that check_ternary_weight requires. UserError if the rows do not fill whole bytes.
std::vector<NamedMeta> ternary_tensors(const QuantizationConfig& config, const std::string& weight, std::int64_t rows,
                                       std::int64_t columns);

// The codes i8[N, K], and their type alone.
Meta ternary_codes_meta(const Checkpoint& checkpoint, const QuantizationConfig& config, const std::string& weight);
Tensor ternary_codes(const Checkpoint& checkpoint, const QuantizationConfig& config, const std::string& weight);
// The factor of the codes, f32[1].
Tensor ternary_scale(const Checkpoint& checkpoint, const QuantizationConfig& config, const std::string& weight);

}  // namespace weft
