#include "nn/builder.h"

#include <cstddef>

namespace weft {

KvLayout ModelFacts::kv_of(int layer) const {
  KvLayout layout = kv;
  layout.heads = config.kv_head_count_of(layer);
  layout.head_dim = config.head_dim_of(layer);
  return layout;
}

// States are kept in f32: errors of a rounded one would add up from token to token.
std::vector<LayerPages> ModelFacts::pages() const {
  std::vector<LayerPages> pages;
  for (int layer = 0; layer < config.layer_count; ++layer) {
    const std::string suffix = layer_suffix(layer);
    if (config.recurs(layer)) {
      const RecurrentConfig& recurrent = *config.recurrent;
      KvLayout states{.dtype = DType::f32, .block = kv.block, .heads = 1};
      states.head_dim = config.convolution_channels();
      states.state_rows = recurrent.convolution_width - 1;
      pages.push_back({"convolution" + suffix, states, layer});
      states.heads = recurrent.value_heads;
      states.head_dim = recurrent.value_dim;
      states.state_rows = recurrent.key_dim;
      if (recurrent.value_heads > 0) pages.push_back({"state" + suffix, states, layer});
    }
    if (config.has_own_kv(layer)) pages.push_back({"kv" + suffix, kv_of(layer), layer});
  }
  return pages;
}

}  // namespace weft
