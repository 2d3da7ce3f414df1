#pragma once

// Classifies the keys of a model's files, with one table for each kind of file. Keys are read, known to be harmless, or
// known to change results without being implemented. A key of the last class is a UserError that names it, unless its
// value is the one without effect. Keys that no table has are returned to the caller, which can log them.

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
  // For `changes`: JSON values separated by bars; null is always one. So is a list of such values.
  std::string_view without_effect = "";
  std::string_view why = "";  // for `changes`: the feature that the key requests
};

enum class KeyTable : std::uint8_t {
  config,
  rope,
  quantization,
  quantization_group,
  quantization_arguments,
  quantization_rule,
  gguf_general,
  gguf_model,
  gguf_tokenizer,
  tokenizer_config,
  generation_config,
  peft
};

std::span<const KnownKey> known_keys(KeyTable table);

// Returns the keys of the object that are not in the table, in their order. UserError, `[where] ...`, for a key that
// changes results, unless it is in `own`, the keys that the architecture reads. Messages put `prefix` before a key.
std::vector<std::string> unknown_keys(KeyTable table, const Json& object, const std::string& where,
                                      const std::string& prefix = "", std::span<const std::string_view> own = {});

// The same for the keys of a GGUF file: the architecture's keys, whose names begin with `architecture` and a dot, and
// the tokenizer's keys. `own` has keys without the architecture.
std::vector<std::string> unknown_gguf_keys(const Gguf& gguf, const std::string& architecture,
                                           std::span<const std::string_view> own = {});

}  // namespace weft
