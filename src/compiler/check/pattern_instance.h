#pragma once

// Instances to try a pattern on: each chooses everything that `before` leaves open.

#include <memory>
#include <optional>
#include <vector>

#include "ir/pattern_match.h"

namespace weft {

struct PatternInstance {
  std::vector<Tensor> values;              // by wildcard; undefined for an absent operand and for other kinds
  std::vector<bool> given;                 // by wildcard: whether `values` has a choice for it
  PatternMatch bound;                      // its `attributes`
  std::vector<std::vector<Meta>> results;  // of the nodes that were built so far
};

// Binds the wildcards of the value's type that have no value yet. Returns whether the tensor has the dtype and dims
// that the type states; the match checks later whether all uses of a wildcard agree.
bool bind_type(const Pattern& pattern, const Wildcard& wildcard, const Tensor& tensor, PatternMatch& bound);

// The tensor's elements again and again, in another plain type.
Tensor repeated(const Tensor& sample, const Meta& meta);

// Values are the sample tensors of the ops that use them; attributes are those of the samples, the defaults, and the
// values that conditions name. Some instances do not match the pattern.
std::vector<PatternInstance> pattern_instances(const Pattern& pattern, const OpTable& ops);

// `before` as a graph whose inputs are the values that are present, in the order of the wildcards.
std::shared_ptr<Graph> graph_of(const Pattern& pattern, const PatternInstance& instance, const OpTable& ops);

}  // namespace weft
