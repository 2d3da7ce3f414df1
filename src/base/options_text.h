#pragma once

// Options shown to people and programs: `weft dump options`, `weft info`, the option part of `weft explain`, and the
// part of the cache key that options make.

#include <string>
#include <utility>
#include <vector>

#include "base/options.h"

namespace weft {

// The value as set_option reads it back: lists as `a,b`, an undecided number or flag as `auto`. Of ir-op-priority the
// JSON object.
std::string value_text(const Options& options, const OptionRow& row);

// "flag", "number", "word", "text", "list of numbers", "list of names" or "providers per op".
std::string type_text(const OptionRow& row);

// What the limits allow, e.g. "1 to 1024" or "fast, exact"; empty if anything.
std::string limits_text(const OptionRow& row);

// One line per option: name, value, default, whether it changes generated code, sentence.
std::string options_text(const Options& options);

// A JSON list, one object per option: name, type, allowed, default, value, source (null if not asked for), effect,
// changes_code, environment, sentence.
std::string options_json(const Options& options);

// A JSON object of what was asked for, by name.
std::string requested_json(const Options& options);

// A JSON object of all values by name.
std::string values_json(const Options& options);

// Why the option cannot do anything in this run, whatever it is set to; "" where it can. Of the effective options.
std::string reason_without_effect(const Options& effective, const OptionRow& row);

// One sentence for each option that was asked for and does nothing in this run, in order of their names. To be given
// the effective options.
std::vector<std::string> options_without_effect(const Options& effective);

// Every option that changes generated code with its value, such as ("block-size", "16"), in the order of options.def.
// What was asked for does not count, only the values.
std::vector<std::pair<std::string, std::string>> code_options(const Options& effective);

}  // namespace weft
