#pragma once

// --expect-fusions: a fusion that does not happen as often as it should is an error, not a slow model.

#include <map>
#include <span>
#include <string>

#include "compiler/pipeline.h"

namespace weft {

// By fusion or pattern: how often at least, over all graphs of a model, in every token range.
using ExpectedFusions = std::map<std::string, int>;

// "act_quant=30,rms_quant=60", or "all" for `declared`. UserError for what is neither, with the nearest known name.
ExpectedFusions parse_expected_fusions(const std::string& text, const Context& context,
                                       const ExpectedFusions& declared);

// UserError that says how often the fusion was found, with the first near misses.
void check_expected_fusions(const ExpectedFusions& expected, const Context& context,
                            std::span<const CompileRecord> records);

}  // namespace weft
