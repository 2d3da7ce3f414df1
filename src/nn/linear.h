#pragma once

// Linear layers that select their ops by the weight's quantization scheme. For a quantized weight in fast mode, a
// separate node quantizes the activations before the product. In exact mode, and for plain weights, the layer is a
// plain linear.
//
//   GGUF's blocks    per_token_group_quant_int8, linear_int8; of experts: grouped_linear_int8
//   grouped codes    the same; NF4, whose codes are not integers: linear. First index_select, if the
//                    weight's columns have an order of their own
//   fp8, one scale   static_scaled_fp8_quant or dynamic_per_token_scaled_fp8_quant, linear_scaled
//   fp8, blocks      per_token_group_quant_fp8, linear_fp8_block
//   int8             dynamic_per_token_scaled_int8_quant, linear_scaled
//   NVFP4            scaled_fp4_quant, linear_nvfp4

#include <functional>
#include <string>
#include <vector>

#include "nn/builder.h"

namespace weft::nn {

// x [.., K] times the transpose of the model's weight, plus its bias if the model has one, plus the products of LoRA
// adapters of the weight -> [.., N]. `layer` is -1 for
// a weight that belongs to no layer.
Value linear(Builder& builder, const Value& x, const std::string& weight, int layer = -1);

// The same for several weights and one input; the results are concatenated along the last dim. Weights that can be
// merged (Builder::can_merge), all or the first ones, have one product over their merged rows. `name` is the merged
// weight's name.
Value merged_linear(Builder& builder, const Value& x, const std::string& name, const std::vector<std::string>& weights,
                    int layer = -1);

// merged_products returns the products of merged_linear one by one, before their concatenation. columns_of returns
// `count` columns of their concatenation, from `first` on. These columns must belong to one product.
Values merged_products(Builder& builder, const Value& x, const std::string& name,
                       const std::vector<std::string>& weights, int layer = -1);
Value columns_of(const Values& products, std::int64_t first, std::int64_t count);

// Columns [first, first + count) of each group of x [s0, groups * width], copied one group after another:
// [s0, groups * count].
Value columns_of_groups(const Value& x, std::int64_t groups, std::int64_t first, std::int64_t count);

// The rows of experts. Expert experts[i] computes row i, which is row tokens[i] of x, or row i of x without tokens.
struct ExpertRows {
  Value x, tokens, experts;
};

// The linear layer of experts: each row [K] times the transpose of the weight of its expert, plus its bias -> [rows,
// N]. Each of the weights is a stack of the model's table. The results of several are concatenated; stacks that can be
// merged have one product. In fast mode each row of x is quantized once, and its codes are multiplied by the codes of a
// stack whose blocks have integer codes. All other stacks are multiplied as numbers.
Value expert_linear(Builder& builder, const ExpertRows& rows, const std::string& name,
                    const std::vector<std::string>& weights, int layer);

// A linear layer for each part of x [rows, n, K], by a stack of n weights [n, N, K] of the model's table ->
// [rows, n, N]. Quantized weights are multiplied as numbers.
Value stacked_linear(Builder& builder, const Value& x, const std::string& weight, int layer = -1);

// The ops of `linear` for a weight that is stored as codes. `weight` returns the layer's weights by the suffix of their
// name: "" for the codes, ".scale", ".input_scale", ".global_scale".
using WeightOf = std::function<Value(const char* suffix, const std::vector<std::string>& keys, WeightRole role)>;
Value linear_over_codes(const Value& x, const std::vector<std::string>& keys, const QuantizationConfig& config,
                        bool scales_by_group, const WeightOf& weight);

}  // namespace weft::nn
