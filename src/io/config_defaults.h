#pragma once

// What config.json means where it omits a key.

#include <string>
#include <string_view>

#include "base/json.h"
#include "io/architecture_facts.h"

namespace weft {

// The config of the language model, with the values of the keys that it omits. UserErrors of text_config().
Json whole_config(std::string_view text, const std::string& where, const ArchitectureFacts& facts);

}  // namespace weft
