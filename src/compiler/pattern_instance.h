#pragma once

// What a pattern can be tried on: choices of everything that its `before` leaves open.

#include <memory>
#include <optional>
#include <vector>

#include "ir/pattern_match.h"

namespace weft {

struct PatternInstance {
  std::vector<Tensor> values;              // by wildcard; undefined for an absent operand and for other kinds
  std::vector<bool> given;                 // by wildcard: whether `values` says what it is
  PatternMatch bound;                      // its `attributes`
  std::vector<std::vector<Meta>> results;  // of the nodes so far
};

// Values are tried with the sample tensors of the ops that take them, attributes with those of the samples, with
// defaults, and with what conditions name. Not all that is found matches.
std::vector<PatternInstance> pattern_instances(const Pattern& pattern, const OpTable& ops);

// `before` as a graph whose inputs are the values that are there, in the order of the wildcards.
std::shared_ptr<Graph> graph_of(const Pattern& pattern, const PatternInstance& instance, const OpTable& ops);

}  // namespace weft
