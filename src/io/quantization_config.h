#pragma once

// Reads quantization_config of config.json: how the weights of linear layers and their inputs are quantized. It follows
// vLLM: quant_method fp8, with or without weight_block_size, mxfp4 for experts, and compressed-tensors with one group
// of fp8, int8 or NVFP4 weights and activations. Any other content is a UserError that names the key, because a partly
// understood scheme would give wrong numbers.
//
//   scheme   codes         scales of a weight [N, K]                  input
//   scaled   f8e4m3, i8    one, or one per row                        one scale in the checkpoint, or one per token
//   block    f8e4m3        [ceil(N / rows), ceil(K / columns)]        groups of `columns`
//   nvfp4    f4e2m1        f8e4m3 [N, K / 16], times one per weight   the same, times one scale in the checkpoint
//   mxfp4    f4e2m1        exponents [E, N, K / 32] of stacks          not quantized

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"

namespace weft {

class JsonFields;

enum class QuantizationScheme : std::uint8_t { scaled, block, nvfp4, mxfp4 };

struct QuantizationConfig {
  QuantizationScheme scheme = QuantizationScheme::scaled;
  DType codes = DType::f8e4m3;
  bool scale_per_row = false;                      // scaled: the config's value, but files may have either
  bool static_input = false;                       // the checkpoint stores the input's scale
  std::int64_t block_rows = 0, block_columns = 0;  // block
  std::string method;                              // "fp8", "compressed-tensors"
  std::vector<std::string> ignored;                // module names, or "re:" and a pattern that matches their beginning

  // Whether the linear layer whose weight has this name ("model.layers.0.mlp.up_proj.weight") is quantized. The head,
  // the embedding and routers never are, as in vLLM.
  bool quantizes(std::string_view weight) const;
};

// Nullopt if config.json has no quantization_config.
std::optional<QuantizationConfig> quantization_from_json(const JsonFields& config);

// The names of the tensors in the checkpoint that make up the quantized weight with this name ("X.weight").
struct QuantizedNames {
  std::string codes;         // X.weight, X.weight_packed
  std::string scale;         // X.weight_scale_inv, X.weight_scale
  std::string global_scale;  // X.weight_global_scale; only nvfp4, else ""
  std::string input_scale;   // X.input_scale, X.input_global_scale; "" if input scales are computed at run time
};
QuantizedNames quantized_names(const QuantizationConfig& config, std::string_view weight);

}  // namespace weft
