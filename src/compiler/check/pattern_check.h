#pragma once

// Checks a pattern by trying it: `before` must be found exactly once, at its own location, and `after` must compute the
// same on samples and on the edges of each dtype. That is a test and no mathematical proof.

#include <string>
#include <vector>

#include "compiler/context.h"

namespace weft {

struct PatternCheck {
  int samples = 0;  // inputs that both sides were run on
  int exact = 0;    // of these, those whose results were all compared bit for bit
  std::vector<std::string>
      types;  // of the tensors, each combination once, with attributes that the pattern leaves open
  std::vector<std::string> dtypes;  // of the tensors, in the order in which they were tried; each once
  std::vector<std::string> shapes;  // the same
  bool leaves_out = false;          // of the edges, as the ops are large
  std::string failure;              // "" when all samples passed; else what differs, and on which values

  // What was tried, in one line: samples, dtypes, shapes, and kEdgesText.
  std::string text() const;
};

// Values are the sample tensors of the ops that use them, variants of their types (compiler/check/pattern_variants.h),
// and edges in their place (compiler/check/edge_values.h); attributes are those of the samples, the defaults, and the
// values that conditions name. It is a failure if no sample is found. With `exact` all bits of the results must be
// equal; otherwise the rule of PatternSides::difference_on holds. Ops run as their meanings. The check is the same in
// each run.
//
// A pattern over ranks is tried on that number of ranks, which are threads: operands of ops over ranks in `before`
// differ from rank to rank, and all other values are the same on each rank.
PatternCheck check_pattern(const Pattern& pattern, const Context& context, bool exact);

// The samples: `before` as graphs, each with everything chosen that the pattern leaves open.
std::vector<std::shared_ptr<Graph>> sample_graphs(const Pattern& pattern, const Context& context);

}  // namespace weft
