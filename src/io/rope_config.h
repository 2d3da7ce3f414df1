#pragma once

// Reads the rotary positions from a model's files; a part of model_config.cpp.

#include "io/config_fields.h"
#include "io/model_config.h"

namespace weft {

constexpr Range<std::int64_t> kContexts = {1, 1 << 24};  // positions are exact in f32 up to here

// Reads config.json. `config` must already have the head size and the context length. Newer files have all values in
// rope_parameters; older files have rope_scaling and keys next to it. UserErrors as in model_config.h.
void read_rope(const JsonFields& fields, const ArchitectureFacts& facts, ModelConfig& config);
// The same from the metadata of a GGUF file.
void read_rope(const GgufFields& fields, const Gguf& gguf, const ArchitectureFacts& facts, ModelConfig& config);

}  // namespace weft
