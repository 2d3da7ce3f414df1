// The part of ModelConfig that says what a layer has.

#include <cmath>

#include "io/model_config.h"

namespace weft {

std::optional<std::int64_t> ModelConfig::window_of(int layer) const {
  return has_window.empty() || has_window[static_cast<std::size_t>(layer)] ? sliding_window : std::nullopt;
}

std::int64_t ModelConfig::head_dim_of(int layer) const {
  return full_head_dim == 0 || slides(layer) ? head_dim : full_head_dim;
}

std::int64_t ModelConfig::kv_head_count_of(int layer) const {
  return full_kv_head_count == 0 || slides(layer) ? kv_head_count : full_kv_head_count;
}

double ModelConfig::attention_scale_of(int layer) const {
  return divides_attention_scale ? attention_scale / (layer + 1) : attention_scale;
}

int ModelConfig::kv_layer_of(int layer) const {
  int of = layer;
  while (of >= 0 && (!has_own_kv(of) || slides(of) != slides(layer))) --of;
  return of;
}

std::int64_t ModelConfig::convolution_channels() const {
  if (recurrent->value_heads == 0) return hidden_size;
  const std::int64_t keys = recurrent->kind == RecurrentKind::mamba ? 0 : recurrent->keys_width();
  return 2 * keys + recurrent->values_width();
}

std::int64_t ModelConfig::intermediate_size_of(int layer) const {
  return widens_shared_layers && !has_own_kv(layer) ? 2 * intermediate_size : intermediate_size;
}

std::optional<double> ModelConfig::gate_cut_of(int layer) const {
  if (gate_cuts.empty() || std::isinf(gate_cuts[static_cast<std::size_t>(layer)])) return std::nullopt;
  return gate_cuts[static_cast<std::size_t>(layer)];
}

const RopeConfig* ModelConfig::rope_of(int layer) const {
  if (!is_rotated.empty() && !is_rotated[static_cast<std::size_t>(layer)]) return nullptr;
  return sliding_rope && slides(layer) ? &*sliding_rope : &rope;
}

}  // namespace weft
