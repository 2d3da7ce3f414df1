#pragma once

// Adapters as mlx-lm writes them: adapters.safetensors with `lora_a` [K, rank] and `lora_b` [rank, N] of each module,
// the transposes of A and B, and adapter_config.json, which has the settings of the training, and among them the rank
// and the scale.

#include <cstdint>
#include <string>
#include <string_view>

#include "tensor/tensor.h"

namespace weft {

struct MlxAdapterConfig {
  std::int64_t rank = 0;
  double scale = 0;  // of the product, whatever the rank
};

inline constexpr const char* kMlxAdapterName = "adapters.safetensors";

// `where` names the file in messages. UserError for adapters that are not plain LoRA.
MlxAdapterConfig read_mlx_adapter_config(std::string_view text, const std::string& where);

// The transpose of a matrix of numbers; other tensors as they are.
Tensor transposed_matrix(const Tensor& stored);

}  // namespace weft
