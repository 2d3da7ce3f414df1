#pragma once

// Turns a template's source into a Program.

#include <memory>
#include <string_view>

#include "io/jinja/syntax.h"

namespace weft::jinja {

// Throws UserError that names what is wrong or unknown and its line.
std::unique_ptr<const Program> parse_template(std::string_view source);

}  // namespace weft::jinja
