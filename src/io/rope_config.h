#pragma once

// How a model's files describe its rotary positions: the part of model_config.cpp that is about them.

#include "io/config_fields.h"
#include "io/model_config.h"

namespace weft {

constexpr Range<std::int64_t> kContexts = {1, 1 << 24};  // positions are exact in f32 up to here

// From config.json, whose width of heads and context are in `config` already: rope_parameters is where newer files have
// everything; older ones have rope_scaling and keys next to it. UserErrors as those of model_config.h.
void read_rope(const JsonFields& fields, ModelConfig& config);
// The same from the metadata of a GGUF file.
void read_rope(const GgufFields& fields, const Gguf& gguf, const ArchitectureFacts& facts, ModelConfig& config);

}  // namespace weft
