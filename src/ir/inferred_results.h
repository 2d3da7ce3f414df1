#pragma once

// The result types that were inferred so far. They follow from an op, its operands' types and its attributes alone,
// and those repeat from layer to layer and from pass to pass. For one thread, and one table of ops that outlives it.

#include <unordered_map>
#include <vector>

#include "ir/graph.h"

namespace weft {

class InferredResults {
 public:
  // Of a node that is an op. UserError as infer_results says; nothing is remembered then. Valid until the next call.
  const std::vector<Meta>& of(const Node& node, const OpTable& ops);

 private:
  struct Call {
    const Op* op = nullptr;
    std::vector<std::optional<Meta>> operands;
    Attributes attributes;
    std::vector<Meta> results;
    bool is_of(const Node& node) const;
  };
  std::unordered_multimap<std::size_t, Call> calls_;
};

}  // namespace weft
