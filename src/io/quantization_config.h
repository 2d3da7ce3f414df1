#pragma once

// What config.json's quantization_config says of the weights of linear layers and of how their inputs are quantized.
// Read as vLLM does: quant_method fp8, with weight_block_size or without, and compressed-tensors with one group of
// fp8, int8 or NVFP4 weights and activations. Whatever else stands there is a UserError that names the key: a scheme
// that is half understood would give wrong numbers.
//
//   scheme   codes           scales of a weight [N, K]                      input
//   scaled   f8e4m3, i8      one, or one for each row                       one scale in the checkpoint, or one a token
//   block    f8e4m3          [ceil(N / rows), ceil(K / columns)]            groups of `columns`
//   nvfp4    f4e2m1          f8e4m3 [N, K / 16], times one of all of it     the same, by one scale in the checkpoint

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"

namespace weft {

class JsonFields;

enum class QuantizationScheme : std::uint8_t { scaled, block, nvfp4 };

struct QuantizationConfig {
  QuantizationScheme scheme = QuantizationScheme::scaled;
  DType codes = DType::f8e4m3;
  bool scale_per_row = false;                      // scaled: as the config says, but files may have either
  bool static_input = false;                       // the input's scale stands in the checkpoint
  std::int64_t block_rows = 0, block_columns = 0;  // block
  std::string method;                              // "fp8", "compressed-tensors"
  std::vector<std::string> ignored;                // modules by name, or "re:" and a pattern that they begin with

  // Whether the linear layer whose weight has this name ("model.layers.0.mlp.up_proj.weight") is quantized. The head
  // and the embedding never are, as in vLLM.
  bool quantizes(std::string_view weight) const;
};

// Nothing where config.json has no quantization_config.
std::optional<QuantizationConfig> quantization_from_json(const JsonFields& config);

// Names in the checkpoint of what belongs to the quantized weight of this name ("X.weight").
struct QuantizedNames {
  std::string codes;         // X.weight, X.weight_packed
  std::string scale;         // X.weight_scale_inv, X.weight_scale
  std::string global_scale;  // X.weight_global_scale; "" but for nvfp4
  std::string input_scale;   // X.input_scale, X.input_global_scale; "" where the input's scales are made as it comes
};
QuantizedNames quantized_names(const QuantizationConfig& config, std::string_view weight);

}  // namespace weft
