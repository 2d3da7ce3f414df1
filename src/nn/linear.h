#pragma once

// Linear layers that know their weight's scheme and write it out: before a quantized weight in fast mode stands the
// quantization of the activations as a node of its own; in exact mode, and for plain weights, a plain linear.
//
//   GGUF's blocks    per_token_group_quant_int8, linear_int8
//   fp8, one scale   static_scaled_fp8_quant or dynamic_per_token_scaled_fp8_quant, linear_scaled
//   fp8, blocks      per_token_group_quant_fp8, linear_fp8_block
//   int8             dynamic_per_token_scaled_int8_quant, linear_scaled
//   NVFP4            scaled_fp4_quant, linear_nvfp4

#include <functional>
#include <string>
#include <vector>

#include "nn/builder.h"

namespace weft::nn {

// x [.., K] times the transpose of the weight named `name` (rows of `keys` merged) -> [.., N].
Value linear(Builder& builder, const Value& x, const std::string& name, const std::vector<std::string>& keys);

// The same for several weights over one input, their results one after another along the last dim. Where the weights
// are of one type their rows are merged and it is one product.
Value merged_linear(Builder& builder, const Value& x, const std::string& name, const std::vector<std::string>& keys);

// What `linear` writes out for weights of codes. `weight` gives the layer's weights, named by what stands behind the
// layer's name: "" the codes, ".scale", ".input_scale", ".global_scale".
using WeightOf = std::function<Value(const char* suffix, const std::vector<std::string>& keys, WeightRole role)>;
Value linear_over_codes(const Value& x, const std::vector<std::string>& keys, const QuantizationConfig& config,
                        bool scales_by_group, const WeightOf& weight);

}  // namespace weft::nn
