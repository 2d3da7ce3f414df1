#pragma once

// A cache of inferred result types. They depend only on an op, its operands' types and its attributes, which repeat
// from layer to layer and from pass to pass. One thread uses it, with one table of ops that outlives it.

#include <span>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"

namespace weft {

class InferredResults {
 public:
  // The result types of a call; an absent operand is null. UserError as in infer_results; an error is not cached. The
  // reference is valid until the next call.
  const std::vector<Meta>& of(const Op& op, std::span<const Meta* const> operands, const Attributes& attributes,
                              const OpTable& ops);
  // The result types of a node that is an op.
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
  std::vector<const Meta*> metas_;  // operands of the node that is looked up
};

}  // namespace weft
