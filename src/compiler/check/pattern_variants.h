#pragma once

// Other types and attributes to try a pattern with than those of its ops' samples.

#include <vector>

#include "compiler/check/pattern_instance.h"

namespace weft {

// Instances like this one, each with one change: another dtype wherever one is, another size wherever one is, one more
// or one less leading dim, or another value of an attribute. Sizes are 0, 1, odd ones, one more and twice as many. Only
// those in which every op accepts its operands; some may not match the pattern.
std::vector<PatternInstance> pattern_variants(const Pattern& pattern, const PatternInstance& instance,
                                              const OpTable& ops);

// By wildcard: whether its elements are indices of rows, pages or positions, directly or through other ops, so that
// their values are those of the samples.
std::vector<bool> index_wildcards(const Pattern& pattern);

// The numbers that the bodies and the conditions of the pattern hold.
std::vector<double> numbers_of(const Pattern& pattern);

}  // namespace weft
