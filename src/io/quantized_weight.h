#pragma once

// The tensors of a checkpoint that make up one quantized weight [N, K] of a linear layer: codes, scales, and the scale
// of its input. Names are those of the weight were it plain: "model.layers.0.mlp.up_proj.weight".

#include <string>
#include <vector>

#include "io/checkpoint.h"
#include "io/quantization_config.h"

namespace weft {

// UserError that names the first tensor which is missing, or has another dtype or shape than the config and [rows,
// columns] give it; also where columns are not whole blocks.
void check_quantized_weight(const Checkpoint& checkpoint, const QuantizationConfig& config, const std::string& weight,
                            std::int64_t rows, std::int64_t columns);

// The tensors of that weight where nothing but the config is known: all that check_quantized_weight asks for.
std::vector<NamedMeta> quantized_tensors(const QuantizationConfig& config, const std::string& weight, std::int64_t rows,
                                         std::int64_t columns);

// What a tensor of a checkpoint is read as: bytes are pairs of f4e2m1, all else is what it says.
Meta meta_of_stored(const Meta& stored);

// The codes [N, K].
Tensor quantized_codes(const Checkpoint& checkpoint, const QuantizationConfig& config, const std::string& weight);

// What the codes stand for, f32 [N, K]: code * scale, of NVFP4 code * scale / global scale, rounded once a step.
Tensor dequantized_weight(const Checkpoint& checkpoint, const QuantizationConfig& config, const std::string& weight);

// The one number in a tensor of one, of any floating dtype.
float number_in(const Checkpoint& checkpoint, const std::string& name);

}  // namespace weft
