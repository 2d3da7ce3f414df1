#pragma once

// Between JSON and template values.

#include <nlohmann/json_fwd.hpp>

#include "io/jinja/object.h"
#include "io/jinja/runtime.h"

namespace weft::jinja {

// The template variable that a JSON value gives. Throws TemplateFailure for one nested too deep or an integer beyond
// 64 bits.
Value from_json(Budget& budget, const nlohmann::ordered_json& json);

// The filter `tojson(ensure_ascii=false, indent=none, separators=none, sort_keys=false)`: json.dumps of Python.
Value json_filter(Runtime& runtime, const Value& input, const Arguments& arguments);

}  // namespace weft::jinja
