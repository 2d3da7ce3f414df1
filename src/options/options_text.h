#pragma once

// Options as text for users and programs: `weft dump options`, `weft info`, the option part of `weft explain`, and the
// option part of the cache key.

#include <string>
#include <utility>
#include <vector>

#include "options/options.h"

namespace weft {

// The value in a form that set_option accepts: lists as `a,b`, an undecided number or flag as `auto`, ir-op-priority as
// a JSON object.
std::string value_text(const Options& options, const OptionRow& row);

// "flag", "number", "word", "text", "list of numbers", "list of names" or "providers per op".
std::string type_text(const OptionRow& row);

// The values that the limits allow, e.g. "1 to 1024" or "fast, exact"; empty if any value is allowed.
std::string limits_text(const OptionRow& row);

// One line per option: name, value, default, whether it changes generated code, sentence.
std::string options_text(const Options& options);

// A JSON list, one object per option: name, type, allowed, default, value, source (null if not requested), effect,
// changes_code, environment, sentence.
std::string options_json(const Options& options);

// A JSON object of the requested options by name.
std::string requested_json(const Options& options);

// A JSON object of all values by name.
std::string values_json(const Options& options);

// The reason why the option has no effect in this run with any value; "" if it can have one. `effective` are the
// effective options.
std::string reason_without_effect(const Options& effective, const OptionRow& row);

// One sentence for the requested options without effect in this run for each reason and source; their names are sorted.
std::vector<std::string> options_without_effect(const Options& effective);

// Each option that changes generated code with its value, such as ("block-size", "16"), in the order of options.def.
// The result depends only on the values, not on which options were requested.
std::vector<std::pair<std::string, std::string>> code_options(const Options& effective);

}  // namespace weft
