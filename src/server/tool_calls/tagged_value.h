#pragma once

// Values of arguments that a model wrote as texts, as JSON.

#include <string>
#include <string_view>

#include "base/json.h"

namespace weft {

// The schema of an argument of a function; null if the tools do not have it.
const Json& argument_schema(const Json& tools, std::string_view function, const std::string& key);

// Whether each text is the text of a string. Otherwise all of a value must be read to say what it is.
bool is_string_alone(const Json& schema);

// The value as JSON, by its schema: as it is written if that is JSON of a type that the schema has, else as a string.
std::string value_as_json(std::string_view text, const Json& schema);

// The characters between the quotes of a JSON string.
std::string escaped(std::string_view text);

}  // namespace weft
