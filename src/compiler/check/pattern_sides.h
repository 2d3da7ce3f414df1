#pragma once

// Both sides of a pattern as graphs for one instance: runs them on the same inputs, and compares the results.

#include <optional>
#include <string>
#include <vector>

#include "compiler/check/pattern_instance.h"
#include "compiler/context.h"

namespace weft {

// The first element in which the sides differ.
struct SideDifference {
  std::size_t result = 0;
  std::int64_t element = -1;  // row-major; -1 if the types differ
  Shape shape = {};           // of the result
  std::string text = {};      // what came, and what was wanted
};

class PatternSides {
 public:
  // `after` is `before` after the rewrite. With `exact` all results are compared bit for bit.
  PatternSides(const Pattern& pattern, std::shared_ptr<Graph> before, std::shared_ptr<Graph> after, bool exact);

  // Results are compared bit for bit if no op that they depend on, on either side, rounds; NaN equals NaN whatever its
  // bits. Otherwise the tolerance of the op that gives the result in `before` applies, but NaN, infinities and the
  // signs of zeros must agree, too. `scale`, at most 1, is the largest magnitude of the inputs: the absolute part of
  // the tolerance is for values around 1, so it is made smaller by it.
  std::optional<SideDifference> difference_on(Evaluator& evaluator, const std::vector<Tensor>& inputs,
                                              double scale) const;
  int exact_results() const;  // how many of the results are compared bit for bit

 private:
  const Pattern& pattern_;
  std::shared_ptr<Graph> before_, after_;
  std::vector<bool> is_exact_;  // by result
};

// One element as its dtype prints it.
std::string element_text(const Tensor& tensor, std::int64_t element);

// The inputs of a difference, by wildcard: where a tensor spreads to the result, its element there; and its row, unless
// all elements are equal (`is_uniform`).
std::string inputs_text(const Pattern& pattern, const std::vector<Tensor>& values, const SideDifference& difference,
                        bool is_uniform);

// Values, each filled with its own element at the difference; nothing if one does not spread to the result. If the
// sides still differ, this is the shorter counterexample.
std::optional<std::vector<Tensor>> uniform_values(const std::vector<Tensor>& values, const std::vector<bool>& is_fixed,
                                                  const SideDifference& difference);

}  // namespace weft
