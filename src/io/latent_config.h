#pragma once

// Reads the widths of latent attention; a part of model_config.cpp.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "io/config_fields.h"
#include "io/model_config.h"
#include "tensor/meta.h"

namespace weft {

// The keys that read_latents reads: of config.json, and of GGUF files after the architecture.
std::vector<std::string_view> latent_keys();
std::vector<std::string_view> gguf_latent_keys();

// Sets latents, and what follows from them: one key and value head, its width, and the rotary dim.
void read_latents(const JsonFields& fields, ModelConfig& config);
void read_latents(const GgufFields& fields, const Gguf& gguf, ModelConfig& config);

// Whether a folder has the weights of keys and values in one tensor follows from its tensors.
void read_latent_layout(const std::function<const Meta*(const std::string&)>& find_tensor, ModelConfig& config);

// The keys of config.json that state the latents of a config.
Json latent_json(const LatentConfig& latents);

}  // namespace weft
