// The part of Weights that reads codes with a scale and a zero point for each group of columns.

#include <algorithm>
#include <cstring>

#include "engine/weights/weights.h"
#include "io/grouped_weight.h"
#include "io/quantized_weight.h"
#include "nn/model_weight.h"

namespace weft {
namespace {

// "X.weight" of "X.g_idx" or "X.weight_g_idx".
std::string weight_of_groups(const std::string& name) { return name.substr(0, name.rfind('.')) + ".weight"; }

}  // namespace

bool Weights::is_grouped(const std::string& key) const {
  return is_quantized(key) && config_of_codes(key).scheme == QuantizationScheme::grouped;
}

// Numbers are in the order of the layer's input.
std::string Weights::order_key(const std::vector<std::string>& keys) const {
  const std::string& key = keys[0];
  if (!is_grouped(key) || !config_of_codes(key).groups.is_reordered || is_on_gpu()) return "";
  const bool is_numbers = is_name_of_experts(key)
                              ? !is_block(stack_meta(key, WeightRole::linear).dtype)
                              : !is_block(grouped_meta(checkpoint_, config_of_codes(key), key).dtype);
  return is_numbers ? "" : quantized_names(config_of_codes(key), key).groups;
}

// i32 [K], or [E, K] of experts.
Meta Weights::order_meta(const std::string& key) const {
  if (!is_name_of_experts(key)) return checkpoint_.tensor(key).meta;
  Meta meta = checkpoint_.tensor(name_of_expert(key, 0)).meta;
  meta.shape.insert(meta.shape.begin(), facts_.config.experts->count);
  return meta;
}

Tensor Weights::order(const std::string& key) const {
  Tensor orders = Tensor::empty(order_meta(key));
  auto* to = orders.as<std::int32_t>();
  const std::int64_t count = is_name_of_experts(key) ? facts_.config.experts->count : 1;
  for (std::int64_t expert = 0; expert < count; ++expert) {
    const std::string name = is_name_of_experts(key) ? name_of_expert(key, expert) : key;
    to = std::ranges::copy(column_order(checkpoint_, config_of_codes(weight_of_groups(name)), name), to).out;
  }
  return orders;
}

bool Weights::has_same_order(const std::string& key, const std::string& other) const {
  const std::string name = order_key({key}), other_name = order_key({other});
  if (name.empty() || checkpoint_.is_dummy()) return name.empty() == other_name.empty();
  const Tensor one = order(name), two = order(other_name);
  return one.meta == two.meta &&
         std::memcmp(one.data(), two.data(), static_cast<std::size_t>(one.meta.bytes().number())) == 0;
}

Meta Weights::grouped_type(const std::string& key) const {
  const QuantizationConfig& config = config_of_codes(key);
  const Meta blocks = grouped_meta(checkpoint_, config, key);
  // Where the input has no order of the groups, the weight is read as numbers.
  const bool is_read_as_numbers = !is_block(blocks.dtype) || (config.groups.is_reordered && order_key({key}).empty());
  return is_read_as_numbers ? Meta::tensor(dtype_of_numbers(), blocks.shape) : blocks;
}

}  // namespace weft
