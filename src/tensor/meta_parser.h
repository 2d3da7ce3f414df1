#pragma once

// Parses the type of a value: f32[s0, 576]{960, 1}, q4_1[960, 576] packed=q4x32, kv[f16, block=16, heads=3,
// head_dim=64], batch, int, float.

#include <cstddef>
#include <string_view>

#include "tensor/meta.h"

namespace weft {

// Leaves `position` directly after the type. Throws ParseError (a UserError) with line and column if the text is no
// type, and UserError if no tensor can have the type.
Meta parse_meta(std::string_view text, std::size_t& position);
// The whole text must be one type.
Meta parse_meta(std::string_view text);

}  // namespace weft
