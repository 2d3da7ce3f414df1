#pragma once

// The result types that were inferred so far. They follow from an op, its operands' types and its attributes alone,
// and those repeat from layer to layer and from pass to pass. For one thread, and one table of ops that outlives it.

#include <span>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"

namespace weft {

class InferredResults {
 public:
  // Of a call; null for operands that are absent. UserError as infer_results says; nothing is remembered then. Valid
  // until the next call.
  const std::vector<Meta>& of(const Op& op, std::span<const Meta* const> operands, const Attributes& attributes,
                              const OpTable& ops);
  // Of a node that is an op.
  const std::vector<Meta>& of(const Node& node, const OpTable& ops);

 private:
  struct Call {
    const Op* op = nullptr;
    std::vector<std::optional<Meta>> operands;
    Attributes attributes;
    std::vector<Meta> results;
    bool is_of(const Op& called, std::span<const Meta* const> given, const Attributes& complete) const;
  };
  std::unordered_multimap<std::size_t, Call> calls_;
  std::vector<const Meta*> metas_;  // of the node that is asked about
};

}  // namespace weft
