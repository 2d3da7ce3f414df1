#include "nn/linear.h"

#include <tuple>

#include "base/error.h"
#include "nn/model_weight.h"
#include "ops/add.h"
#include "ops/batched_linear.h"
#include "ops/cast.h"
#include "ops/clone.h"
#include "ops/concat.h"
#include "ops/dynamic_per_token_scaled_fp8_quant.h"
#include "ops/dynamic_per_token_scaled_int8_quant.h"
#include "ops/grouped_linear.h"
#include "ops/grouped_linear_bf16.h"
#include "ops/grouped_linear_int8.h"
#include "ops/index_select.h"
#include "ops/linear.h"
#include "ops/linear_bf16.h"
#include "ops/linear_fp8_block.h"
#include "ops/linear_int8.h"
#include "ops/linear_nvfp4.h"
#include "ops/linear_scaled.h"
#include "ops/mul.h"
#include "ops/per_token_group_quant_fp8.h"
#include "ops/per_token_group_quant_int8.h"
#include "ops/reshape.h"
#include "ops/scaled_fp4_quant.h"
#include "ops/slice.h"
#include "ops/static_scaled_fp8_quant.h"
#include "ops/static_scaled_int8_quant.h"
#include "ops/take_along_dim.h"
#include "tensor/block_format.h"

namespace weft {

BlockProduct block_product(DType weight, Activations activations) {
  if (activations == Activations::bf16 && is_block(weight)) return BlockProduct::bf16;
  const bool has_codes = activations == Activations::int8 && has_integer_codes(weight);
  return has_codes ? BlockProduct::int8 : BlockProduct::numbers;
}

}  // namespace weft

namespace weft::nn {
namespace {

constexpr std::int64_t kGroup = 32;  // ggml's block: one scale for 32 elements

// The params of one quantized linear layer.
class QuantizedParams {
 public:
  QuantizedParams(const std::vector<std::string>& keys, const QuantizationConfig& config, const WeightOf& weight)
      : weight_(weight) {
    for (const std::string& key : keys) names_.push_back(quantized_names(config, key));
  }

  Value get(const char* suffix, std::string QuantizedNames::*member, WeightRole role) const {
    std::vector<std::string> keys;
    for (const QuantizedNames& names : names_) keys.push_back(names.*member);
    return weight_(suffix, keys, role);
  }
  Value codes() const { return get("", &QuantizedNames::codes, WeightRole::codes); }
  Value scale(WeightRole role) const { return get(".scale", &QuantizedNames::scale, role); }
  Value input_scale(WeightRole role = WeightRole::number) const {
    return get(".input_scale", &QuantizedNames::input_scale, role);
  }
  Value global_scale(WeightRole role) const { return get(".global_scale", &QuantizedNames::global_scale, role); }

 private:
  const WeightOf& weight_;
  std::vector<QuantizedNames> names_;
};

Value scaled_linear(const Value& x, const QuantizedParams& params, const QuantizationConfig& config) {
  const bool is_integer = config.codes == DType::i8;
  Value codes, scale;
  if (config.static_input) {
    scale = params.input_scale();
    codes = is_integer ? static_scaled_int8_quant(x, scale) : static_scaled_fp8_quant(x, scale);
  } else {
    std::tie(codes, scale) =
        is_integer ? dynamic_per_token_scaled_int8_quant(x) : dynamic_per_token_scaled_fp8_quant(x);
  }
  return linear_scaled(codes, scale, params.codes(), params.scale(WeightRole::row_scale), {}, x.dtype());
}

Value product_of_keys(Builder& builder, const Value& x, const std::string& name, const std::vector<std::string>& keys,
                      WeightRole role, const Value& bias) {
  if (const QuantizationConfig* config = builder.quantization(keys)) {
    const Value y = linear_over_codes(
        x, keys, *config, builder.facts.scales_by_group,
        [&](const char* suffix, const auto& of, WeightRole role) { return builder.weight(name + suffix, of, role); });
    return bias.present() ? add(y, bias) : y;
  }
  const Value weight = builder.weight(name, keys, role);
  const std::string order = builder.order_key(keys);
  const Value input =
      order.empty() ? x : index_select(x, builder.weight(name + ".order", {order}, WeightRole::order), -1);
  const BlockProduct kind = block_product(weight.dtype(), builder.facts.activations);
  if (kind == BlockProduct::numbers) return weft::linear(input, weight, bias);
  if (kind == BlockProduct::bf16) return linear_bf16(cast(input, DType::bf16), weight, bias, x.dtype());
  const auto [codes, scale] = per_token_group_quant_int8(input, kGroup);
  const Value y = linear_int8(codes, scale, weight, x.dtype());
  return bias.present() ? add(y, bias) : y;
}

// The checkpoint's names of weights that are merged, and of their biases.
struct MergedKeys {
  std::vector<std::string> weights, biases;

  MergedKeys(const Builder& builder, const std::string& name, const std::vector<std::string>& merged, int layer) {
    for (const std::string& weight : merged) {
      weights.push_back(builder.key(weight, layer));
      if (builder.has(weight + ".bias", layer)) biases.push_back(builder.key(weight + ".bias", layer));
    }
    CHECK(biases.empty() || biases.size() == weights.size(), "only some of the merged weights {} have a bias", name);
  }

  Value bias(Builder& builder, const std::string& name) const {
    return biases.empty() ? Value() : builder.weight(name + ".bias", biases, WeightRole::vector);
  }
};

// Whether the rows of x are those of the tokens, whose choices are known. An adapter of another product is refused,
// since no param reads it.
bool has_choices(const Builder& builder, const Value& x) {
  return builder.facts.adapter_choices == 1 ||
         (builder.adapters.present() && x.rank() == 2 && x.dim(0) == builder.adapters.dim(0));
}

// y plus what the adapters of the rows compute of x. Rows without one have zeros as their A and B. Where the adapters
// are joined, each row is multiplied by all of them, and keeps the columns of its own.
Value with_adapters(Builder& builder, const Value& x, const Value& y, const std::string& name,
                    const std::vector<std::string>& keys) {
  const Value a = builder.weight(name + ".lora_a", keys, WeightRole::lora_a);
  const Value b = builder.weight(name + ".lora_b", keys, WeightRole::lora_b);
  if (builder.facts.adapter_choices == 1) return add(y, weft::linear(weft::linear(x, a), b));
  if (a.rank() == 3) return add(y, grouped_linear(grouped_linear(x, a, builder.adapters), b, builder.adapters));
  const Value mask = builder.weight(name + ".lora_mask", keys, WeightRole::lora_mask);
  return add(y, weft::linear(mul(weft::linear(x, a), index_select(mask, builder.adapters)), b));
}

// x times the merged rows of the weights, plus their biases. Observers and the quantization of inputs read whole rows,
// and not the columns of a wider tensor.
Value product(Builder& builder, const Value& given, const std::string& name, const std::vector<std::string>& weights,
              int layer) {
  const Value x = given.meta().is_contiguous() ? given : clone(given);
  const MergedKeys keys(builder, name, weights, layer);
  builder.linear_input(keys.weights, x);
  const Value y =
      product_of_keys(builder, x, name, keys.weights, builder.matrix_role(weights[0], layer), keys.bias(builder, name));
  const bool is_adapted = builder.has_adapter(keys.weights) && has_choices(builder, x);
  return is_adapted ? with_adapters(builder, x, y, name, keys.weights) : y;
}

// The linear layers of a stack have the rows of all of them as their input: one scale of inputs then fits all.
void observe_stack(Builder& builder, const std::vector<std::string>& keys, std::int64_t count, const Value& x) {
  if (!is_name_of_experts(keys[0])) return builder.linear_input(keys, x);
  for (std::int64_t expert = 0; expert < count; ++expert) {
    std::vector<std::string> names;
    for (const std::string& key : keys) names.push_back(name_of_expert(key, expert));
    builder.linear_input(names, x);
  }
}

// For each row of an expert, its row of `all`, which has those of x.
Value taken(const ExpertRows& rows, const Value& all) {
  return rows.tokens.present() ? index_select(all, rows.tokens) : all;
}

// The rows with the columns in the order that the weights of their experts want. Each expert has an order of its own,
// so the rows of x are gathered first.
ExpertRows ordered_rows(Builder& builder, const ExpertRows& rows, const std::string& name,
                        const std::vector<std::string>& keys) {
  const std::string order = builder.order_key(keys);
  if (order.empty()) return rows;
  const Value x = taken(rows, rows.x);
  const Value orders = builder.weight(name + ".order", {order}, WeightRole::order);
  return {take_along_dim(x, index_select(orders, rows.experts), -1), Value(), rows.experts};
}

Value product_of_experts(Builder& builder, const ExpertRows& given, const std::string& name,
                         const std::vector<std::string>& weights, int layer) {
  const MergedKeys keys(builder, name, weights, layer);
  observe_stack(builder, keys.weights, builder.facts.config.experts->count, given.x);
  const ExpertRows rows = ordered_rows(builder, given, name, keys.weights);
  const Value weight = builder.weight(name, keys.weights, builder.matrix_role(weights[0], layer));
  const Value bias = keys.bias(builder, name);
  const BlockProduct kind = block_product(weight.dtype(), builder.facts.activations);
  if (kind == BlockProduct::numbers) return grouped_linear(taken(rows, rows.x), weight, rows.experts, bias);
  if (kind == BlockProduct::bf16)
    return grouped_linear_bf16(taken(rows, cast(rows.x, DType::bf16)), weight, rows.experts, bias, rows.x.dtype());
  const auto [codes, scale] = per_token_group_quant_int8(rows.x, kGroup);
  return grouped_linear_int8(taken(rows, codes), taken(rows, scale), weight, rows.experts, bias, rows.x.dtype());
}

}  // namespace

Value linear_over_codes(const Value& x, const std::vector<std::string>& keys, const QuantizationConfig& config,
                        bool scales_by_group, const WeightOf& weight) {
  const QuantizedParams params(keys, config, weight);
  if (config.scheme == QuantizationScheme::block) {
    constexpr double kLeast = 1e-10, kNoMinimum = 0;
    const bool is_last_short = x.dim(-1).number() % config.block_columns != 0;
    const auto [codes, scale] =
        per_token_group_quant_fp8(x, {}, config.block_columns, kLeast, config.powers_of_two, scales_by_group,
                                  scales_by_group, kNoMinimum, kLeast, "division", "magnitude", is_last_short);
    return linear_fp8_block(codes, scale, params.codes(), params.scale(WeightRole::scale), {},
                            {config.block_rows, config.block_columns}, x.dtype());
  }
  if (config.scheme == QuantizationScheme::nvfp4) {
    constexpr bool kSwizzled = false;  // a checkpoint stores scales in plain rows
    // The op wants what codes of the input are divided by, and what those of the weight are multiplied with.
    const bool multiplies = config.multiplies_globally;
    const Value global_scale = params.input_scale(multiplies ? WeightRole::reciprocal : WeightRole::number);
    const auto [codes, scale] = scaled_fp4_quant(x, global_scale, kSwizzled);
    return linear_nvfp4(codes, scale, global_scale, params.codes(), params.scale(WeightRole::codes),
                        params.global_scale(multiplies ? WeightRole::number : WeightRole::reciprocal), {}, kSwizzled,
                        "f32", x.dtype());
  }
  return scaled_linear(x, params, config);
}

Values merged_products(Builder& builder, const Value& x, const std::string& name,
                       const std::vector<std::string>& weights, int layer) {
  std::vector<std::string> keys;
  for (const std::string& weight : weights) keys.push_back(builder.key(weight, layer));
  const std::string full = name + layer_suffix(layer);
  if (builder.can_merge(keys)) return {product(builder, x, full, weights, layer)};
  Values parts;
  std::size_t first = 0;
  // Files of mixed block types often have one for query and key, and another for value.
  for (std::size_t count = keys.size() - 1; count > 1 && first == 0 && !builder.facts.config.quantization; --count) {
    if (!builder.can_merge({keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(count)})) continue;
    const std::vector<std::string> some(weights.begin(), weights.begin() + static_cast<std::ptrdiff_t>(count));
    parts.push_back(product(builder, x, full + ".0", some, layer));
    first = count;
  }
  for (std::size_t i = first; i < weights.size(); ++i)
    parts.push_back(product(builder, x, full + "." + std::to_string(i), {weights[i]}, layer));
  return parts;
}

Value merged_linear(Builder& builder, const Value& x, const std::string& name, const std::vector<std::string>& weights,
                    int layer) {
  const Values parts = merged_products(builder, x, name, weights, layer);
  return parts.size() == 1 ? parts[0] : concat(parts, -1);
}

Value columns_of(const Values& products, std::int64_t first, std::int64_t count) {
  for (const Value& product : products) {
    const std::int64_t width = product.dim(-1).number();
    if (first < width) {
      CHECK(first + count <= width, "columns {} to {} of a product that has {}", first, first + count, width);
      return slice(product, -1, first, first + count);
    }
    first -= width;
  }
  CHECK(false, "column {} is after the last product", first);
  return {};
}

Value columns_of_groups(const Value& x, std::int64_t groups, std::int64_t first, std::int64_t count) {
  const Value grouped = reshape(x, {x.dim(0), groups, x.dim(1).number() / groups});
  return reshape(clone(slice(grouped, -1, first, first + count)), {x.dim(0), groups * count});
}

Value expert_linear(Builder& builder, const ExpertRows& rows, const std::string& name,
                    const std::vector<std::string>& weights, int layer) {
  const std::string full = name + layer_suffix(layer);
  if (weights.size() == 1 || builder.can_merge(MergedKeys(builder, full, weights, layer).weights))
    return product_of_experts(builder, rows, full, weights, layer);
  Values parts;
  for (const std::string& weight : weights)
    parts.push_back(product_of_experts(builder, rows, weight + layer_suffix(layer), {weight}, layer));
  return concat(parts, -1);
}

Value stacked_linear(Builder& builder, const Value& x, const std::string& weight, int layer) {
  const std::vector<std::string> keys{builder.key(weight, layer)};
  observe_stack(builder, keys, x.dim(1).number(), x);
  return batched_linear(x, builder.weight(weight + layer_suffix(layer), keys, builder.matrix_role(weight, layer)));
}

Value linear(Builder& builder, const Value& x, const std::string& weight, int layer) {
  return product(builder, x, weight + layer_suffix(layer), {weight}, layer);
}

}  // namespace weft::nn
