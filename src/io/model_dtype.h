#pragma once

// The floating type of a folder's model.

#include "io/checkpoint.h"
#include "io/config_fields.h"

namespace weft {

// Sets the type that config.json states, and has_dtype. UserError for another
// type than float32, float16 or bfloat16.
void read_dtype(const JsonFields& fields, ModelConfig& config);

// For a config that states none, as those of gpt-oss: the type of the embedding, which is never quantized. Where
// only the config is read it is bf16, with a warning. `embedding` is the name of its tensor.
void take_dtype_of_tensors(const Checkpoint& checkpoint, std::string_view embedding, ModelConfig& config);

}  // namespace weft
