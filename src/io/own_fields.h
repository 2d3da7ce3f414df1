#pragma once

// Reads what only some architectures read: the keys that their facts list; a part of model_config.cpp.

#include <string_view>
#include <vector>

#include "io/config_fields.h"
#include "io/model_config.h"

namespace weft {

// The keys of this format's files, which only some architectures read, and which this one does.
std::vector<std::string_view> own_keys(const ArchitectureFacts& facts, CheckpointFormat format);

// Set the fields of facts.counts. UserErrors as in model_config.h.
void read_own_counts(const JsonFields& fields, const ArchitectureFacts& facts, ModelConfig& config);
void read_own_counts(const GgufFields& fields, const Gguf& gguf, const ArchitectureFacts& facts, ModelConfig& config);

// The same of facts.numbers, number_lists and switches. UserError, too, if a key of facts.always is off.
void read_own_fields(const JsonFields& fields, const ArchitectureFacts& facts, ModelConfig& config);
void read_own_fields(const GgufFields& fields, const Gguf& gguf, const ArchitectureFacts& facts, ModelConfig& config);

}  // namespace weft
