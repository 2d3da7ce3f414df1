#pragma once

// Which keys of a model's files are read, which are known to change nothing, and which are known to change results and
// are not implemented: one table for each kind of file. A key of the last class is refused by its name, unless its
// value is the one that has no effect. A key that no table has is reported, so that it can be logged.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "io/gguf.h"

namespace weft {

enum class KeyClass : std::uint8_t { read, harmless, changes };

struct KnownKey {
  std::string_view name;
  KeyClass kind;
  std::string_view without_effect = "";  // of `changes`: JSON values with a bar between them; null is always one
  std::string_view why = "";             // of `changes`: what the key asks for
};

enum class KeyTable : std::uint8_t { config, rope, gguf_model, gguf_tokenizer, tokenizer_config, generation_config };

std::span<const KnownKey> known_keys(KeyTable table);

// The keys of the object that the table does not have, in their order. UserError, `[where] ...`, for one that changes
// results, unless it is among `own`, keys that the architecture reads. `prefix` is put before a key in messages.
std::vector<std::string> unknown_keys(KeyTable table, const Json& object, const std::string& where,
                                      const std::string& prefix = "", std::span<const std::string_view> own = {});

// The same of the keys of a GGUF file: those of the architecture, whose names begin with `architecture` and a dot, and
// those of the tokenizer.
std::vector<std::string> unknown_gguf_keys(const Gguf& gguf, const std::string& architecture);

}  // namespace weft
