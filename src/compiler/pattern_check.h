#pragma once

// Tests a pattern on samples from its ops: `before` must be found exactly once, at its own location, and `after` must
// compute the same.

#include <string>

#include "compiler/context.h"

namespace weft {

struct PatternProof {
  int samples = 0;      // tried
  std::string failure;  // "" when all samples passed
};

// Values are the sample tensors of the ops that use them; attributes are those of the samples, the defaults, and the
// values that conditions name. It is a failure if no sample is found. With `exact` all bits of the results must be
// equal; otherwise they may differ within the tolerance of the op that computed them. Ops run as their meanings.
//
// A pattern over ranks is tried on that number of ranks, which are threads: operands of ops over ranks in `before`
// differ from rank to rank, and all other values are the same on each rank.
PatternProof prove_pattern(const Pattern& pattern, const Context& context, bool exact);

// The samples: `before` as graphs, each with everything chosen that the pattern leaves open.
std::vector<std::shared_ptr<Graph>> sample_graphs(const Pattern& pattern, const Context& context);

}  // namespace weft
