#include "nn/linear.h"

#include "ops/concat.h"
#include "ops/linear.h"
#include "ops/linear_int8.h"
#include "ops/per_token_group_quant_int8.h"

namespace weft::nn {
namespace {

constexpr std::int64_t kGroup = 32;  // ggml's block: one scale for 32 elements

}  // namespace

Value linear(Builder& builder, const Value& x, const std::string& name, const std::vector<std::string>& keys) {
  const Value weight = builder.weight(name, keys, WeightRole::linear);
  if (!is_block(weight.dtype()) || !builder.facts.fast) return weft::linear(x, weight);
  const auto [codes, scale] = per_token_group_quant_int8(x, kGroup);
  return linear_int8(codes, scale, weight, x.dtype());
}

Value merged_linear(Builder& builder, const Value& x, const std::string& name, const std::vector<std::string>& keys) {
  if (builder.can_merge(keys)) return linear(builder, x, name, keys);
  Values parts;
  for (std::size_t i = 0; i < keys.size(); ++i)
    parts.push_back(linear(builder, x, name + "." + std::to_string(i), {keys[i]}));
  return concat(parts, -1);
}

}  // namespace weft::nn
