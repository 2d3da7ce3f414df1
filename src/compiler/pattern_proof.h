#pragma once

// What a pattern has to show before it is believed: on samples that its ops bring, `before` is found exactly once where
// it stands, and `after` computes the same.

#include <string>

#include "compiler/context.h"

namespace weft {

struct PatternProof {
  int samples = 0;      // tried
  std::string failure;  // "" when all went well
};

// Values are tried with the sample tensors of the ops that take them, attributes with those of the samples, with
// defaults, and with what conditions name. To have found no sample at all is a failure. With `exact` every bit of the
// results counts, else they may differ within the tolerance of the op that gave them. Ops run as their meanings.
//
// A pattern over ranks is tried on as many ranks, which are threads: what an op over ranks of `before` takes differs
// from rank to rank, everything else is the same on all of them.
PatternProof prove_pattern(const Pattern& pattern, const Context& context, bool exact);

// The samples: `before` as graphs, with everything chosen that it leaves open.
std::vector<std::shared_ptr<Graph>> sample_graphs(const Pattern& pattern, const Context& context);

}  // namespace weft
