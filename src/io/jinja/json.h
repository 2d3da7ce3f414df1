#pragma once

// Conversion between JSON and template values.

#include <nlohmann/json_fwd.hpp>

#include "io/jinja/object.h"
#include "io/jinja/runtime.h"

namespace weft::jinja {

// Converts a JSON value to a template value. Throws TemplateFailure if it is nested too deep or has an integer beyond
// 64 bits.
Value from_json(Budget& budget, const nlohmann::ordered_json& json);

// The filter `tojson(ensure_ascii=false, indent=none, separators=none, sort_keys=false)`: json.dumps of Python.
Value json_filter(Runtime& runtime, const Value& input, const Arguments& arguments);

}  // namespace weft::jinja
