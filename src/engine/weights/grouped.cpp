// The part of Weights that reads codes with a scale and a zero point for each group of columns.

#include "engine/weights/weights.h"
#include "io/grouped_weight.h"
#include "io/quantized_weight.h"

namespace weft {
namespace {

// Experts share their input, so it cannot have the order of the groups of one of them.
bool is_of_expert(const std::string& key) { return key.find(".experts.") != std::string::npos; }

}  // namespace

bool Weights::is_grouped(const std::string& key) const {
  return is_quantized(key) && facts_.config.quantization->scheme == QuantizationScheme::grouped;
}

std::string Weights::order_key(const std::vector<std::string>& keys) const {
  if (!is_grouped(keys[0]) || !facts_.config.quantization->groups.is_reordered) return "";
  if (is_on_gpu() || is_of_expert(keys[0])) return "";
  return quantized_names(*facts_.config.quantization, keys[0]).groups;
}

Tensor Weights::order(const std::string& key) const {
  const std::vector<std::int32_t> order = column_order(checkpoint_, *facts_.config.quantization, key);
  return Tensor::from_bytes(Meta::tensor(DType::i32, {static_cast<std::int64_t>(order.size())}), order.data());
}

bool Weights::has_same_order(const std::string& key, const std::string& other) const {
  const std::string name = order_key({key}), other_name = order_key({other});
  if (name.empty() || checkpoint_.is_dummy()) return name.empty() == other_name.empty();
  const QuantizationConfig& config = *facts_.config.quantization;
  return column_order(checkpoint_, config, name) == column_order(checkpoint_, config, other_name);
}

Meta Weights::grouped_type(const std::string& key) const {
  const QuantizationConfig& config = *facts_.config.quantization;
  const Meta blocks = grouped_meta(checkpoint_, config, key);
  // Where the input has no order of the groups, the weight is read as numbers.
  const bool is_read_as_numbers = config.groups.is_reordered && order_key({key}).empty();
  return is_read_as_numbers ? Meta::tensor(DType::f32, blocks.shape) : blocks;
}

}  // namespace weft
