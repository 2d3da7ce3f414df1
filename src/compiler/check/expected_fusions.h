#pragma once

// --expect-fusions: if a fusion happens less often than expected, that is an error instead of a slow model.

#include <map>
#include <span>
#include <string>

#include "compiler/pipeline.h"

namespace weft {

// The smallest allowed count of each fusion or pattern, over all graphs of a model, in every token range.
using ExpectedFusions = std::map<std::string, int>;

// Parses "act_quant=30,rms_quant=60"; "all" returns `declared`. UserError for an unknown name, with the nearest known
// name, and for any other text.
ExpectedFusions parse_expected_fusions(const std::string& text, const Context& context,
                                       const ExpectedFusions& declared);

// UserError where a fusion was found too rarely; it states the count and the first near misses.
void check_expected_fusions(const ExpectedFusions& expected, const Context& context,
                            std::span<const CompileRecord> records);

}  // namespace weft
