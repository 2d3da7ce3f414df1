#pragma once

// Reads the recurrent layers of a model; a part of model_config.cpp.

#include <string_view>
#include <vector>

#include "io/config_fields.h"
#include "io/model_config.h"

namespace weft {

// The keys that read_recurrent reads: of config.json, and of GGUF files after the architecture. None without facts.
//   short_convolution   conv_L_cache, conv_bias                        shortconv.l_cache
//   gated_delta         linear_conv_kernel_dim and other linear_...    ssm...
//   mamba, mamba2       mamba_d_conv and other mamba_...               ssm...
std::vector<std::string_view> recurrent_keys(const std::optional<RecurrentFacts>& facts);
std::vector<std::string_view> gguf_recurrent_keys(const std::optional<RecurrentFacts>& facts);

// The keys of config.json for the recurrent layers that the config has.
Json recurrent_json(const ModelConfig& config, const RecurrentFacts& facts);

// Sets recurrent and is_recurrent. `config` must already have the number of layers and hidden_size. UserErrors as in
// model_config.h.
void read_recurrent(const JsonFields& fields, const std::optional<RecurrentFacts>& facts, ModelConfig& config);
void read_recurrent(const GgufFields& fields, const Gguf& gguf, const std::optional<RecurrentFacts>& facts,
                    ModelConfig& config);

}  // namespace weft
