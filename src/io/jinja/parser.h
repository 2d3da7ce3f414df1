#pragma once

// Parses the source of a template into a Program.

#include <memory>
#include <string_view>

#include "io/jinja/syntax.h"

namespace weft::jinja {

// Throws UserError that names the error or the unknown word and its line.
std::unique_ptr<const Program> parse_template(std::string_view source);

}  // namespace weft::jinja
