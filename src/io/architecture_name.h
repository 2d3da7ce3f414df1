#pragma once

// The name of a checkpoint's architecture: "llama", "qwen3_moe".

#include <span>
#include <string>
#include <string_view>

#include "io/config_fields.h"
#include "io/gguf.h"

namespace weft {

// Of a config.json, in which it is model_type. UserError if it states none.
std::string architecture_of(const JsonFields& fields);

// The first of its `architectures`, "LlamaForCausalLM"; "" if there is none.
std::string first_class_of(const JsonFields& fields);

std::string architecture_from_gguf(const Gguf& gguf);

// UserError, which names the architecture and the known ones, if the architecture is not one of them.
void check_architecture(std::string_view architecture, std::span<const std::string> known, const std::string& where);

}  // namespace weft
