#pragma once

// Where a text stops to be JSON, for messages.

#include <cstddef>
#include <optional>
#include <string_view>

namespace weft {

// The byte, from 1 on, with which the text cannot be JSON any more: the last one if more had to follow. Nullopt for
// JSON and for an empty text.
std::optional<std::size_t> json_error_position(std::string_view text);

}  // namespace weft
