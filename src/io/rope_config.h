#pragma once

// Reads the rotary positions from a model's files; a part of model_config.cpp.

#include "io/config_fields.h"
#include "io/layer_config.h"
#include "io/model_config.h"

namespace weft {

// Reads config.json. `config` must already have the head size, the context length and the windows. Newer files have all
// values in rope_parameters; older files have rope_scaling and keys next to it. UserErrors as in model_config.h.
void read_rope(const JsonFields& fields, const ArchitectureFacts& facts, ModelConfig& config);
// The same from the metadata of a GGUF file.
void read_rope(const GgufFields& fields, const Gguf& gguf, const ArchitectureFacts& facts, ModelConfig& config);

}  // namespace weft
