#pragma once

// Reads what each layer has, in models whose layers have one half each; a part of model_config.cpp.

#include <string_view>
#include <vector>

#include "io/config_fields.h"
#include "io/model_config.h"

namespace weft {

// The keys of config.json that read_halves reads.
std::vector<std::string_view> half_keys(const std::optional<HalfFacts>& facts);

// The keys of config.json for these layers.
Json half_json(const std::vector<HalfKind>& halves, const HalfFacts& facts);

// Sets halves, and the number of layers. A config.json without the keys has num_hidden_layers layers, which have the
// halves of transformers' default in turn, or are recurrent if the architecture has no others. UserErrors as in
// model_config.h.
void read_halves(const JsonFields& fields, const HalfFacts& facts, ModelConfig& config);
// Sets halves. `config` must already have the number of layers.
void read_halves(const Gguf& gguf, ModelConfig& config);

}  // namespace weft
