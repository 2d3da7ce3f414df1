#pragma once

// The tensors of a checkpoint that make up one quantized weight [N, K] of a linear layer: codes, scales, and the scale
// of its input. `weight` is the name that the unquantized weight would have: "model.layers.0.mlp.up_proj.weight".

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "io/checkpoint.h"
#include "io/quantization_config.h"

namespace weft {

// UserError, which names the first tensor that is missing or whose dtype or shape differs from the config and [rows,
// columns]. Also a UserError if the columns are not whole blocks.
void check_quantized_weight(const Checkpoint& checkpoint, const QuantizationConfig& config, const std::string& weight,
                            std::int64_t rows, std::int64_t columns);

// The tensors that check_quantized_weight requires for that weight, derived from the config alone.
std::vector<NamedMeta> quantized_tensors(const QuantizationConfig& config, const std::string& weight, std::int64_t rows,
                                         std::int64_t columns);

// The type that a stored tensor is read as: bytes are pairs of f4e2m1, other types are unchanged.
Meta meta_of_stored(const Meta& stored);

// Whether the checkpoint has the weight in codes, or as numbers that the config says to round to codes.
bool has_codes(const Checkpoint& checkpoint, const QuantizationConfig& config, const std::string& weight);

// The codes [N, K], and their type alone. Not for grouped codes (io/grouped_weight.h) other than floats.
Meta quantized_codes_meta(const Checkpoint& checkpoint, const QuantizationConfig& config, const std::string& weight);
Tensor quantized_codes(const Checkpoint& checkpoint, const QuantizationConfig& config, const std::string& weight);

// The factors of the codes as the file has them, or of ternary codes their scale.
Tensor quantized_scales(const Checkpoint& checkpoint, const QuantizationConfig& config, const std::string& weight);

// Reads rows of a weight [N, K] as they are needed. Several threads may use it at once.
struct WeightRows {
  Meta meta;  // contiguous
  // Writes rows [first, first + count), which are fastest in steps of 32.
  std::function<void(std::int64_t first, std::int64_t count, std::byte* rows)> read;
};

// The rows of the weight: dequantized in f32 and rounded to the floating dtype, or as blocks of dtype_of_codes() or of
// grouped codes.
WeightRows weight_rows(const Checkpoint& checkpoint, const QuantizationConfig& config, const std::string& weight,
                       DType dtype = DType::f32);

// The block type that the codes [N, K] of a weight, and their scales, are read as. Its values are those of
// dequantized_weight(); of NVFP4 only where scale / global scale is a normal number. f32 if groups of columns are no
// whole blocks. Not for mxfp4, nor for grouped codes other than floats.
DType dtype_of_codes(const QuantizationConfig& config, const Meta& codes);

// The dequantized weight, f32 [N, K]: code * scale, or for NVFP4 code * scale / global scale. Each operation rounds.
// The columns of grouped codes have the order of the layer's input.
Tensor dequantized_weight(const Checkpoint& checkpoint, const QuantizationConfig& config, const std::string& weight);

// The value of a one-element tensor of any floating dtype.
float number_in(const Checkpoint& checkpoint, const std::string& name);
float number_in(const Tensor& tensor);
// UserError unless the tensor has one number, which is above 0 and finite.
void check_number(const Checkpoint& checkpoint, const std::string& name);

}  // namespace weft
