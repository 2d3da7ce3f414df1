#pragma once

// Finds the `before` of a pattern in a graph at stage pure.
//
// Matching is structural: it compares ops, operands (the first two in either order if the op is commutative) and
// complete attributes. A view that changes nothing may be between two matched nodes. A result of a matched node may be
// used outside the match only if `before` returns it. A value wildcard without a type also matches an absent optional
// operand, and an attribute wildcard without conditions matches `none`.

#include <cstdint>

#include "ir/graph.h"
#include "ir/pattern.h"

namespace weft {

struct PatternMatch {
  std::vector<Node*> nodes;         // the matched node for each index in before.nodes
  std::vector<GraphValue*> values;  // by wildcard; null for an absent operand and for wildcards of another kind
  // By wildcard: the bound number, string, dtype or dim; not set for wildcards of kind value.
  std::vector<std::optional<Attribute>> attributes;

  // Returns the attribute with each wildcard replaced by what is bound to it.
  Attribute substitute(const Pattern& pattern, const Attribute& attribute) const;
};

// Where the attempt that matched most nodes ended.
struct Mismatch {
  int matched = 0;                      // nodes of `before` that were found, each with its op
  bool in_place = false;                // no node was missing: an attribute, a type or a use did not fit
  const Node* at = nullptr;             // the node of the graph that did not fit, or whose operand did not fit
  int pattern_node = -1;                // the node of `before` that it was tried for
  std::string reason;                   // "%n: is rms_norm, wanted silu_and_mul"
  std::vector<const Node*> nodes = {};  // the nodes of the graph that were found
};

class PatternMatcher {
 public:
  explicit PatternMatcher(const Pattern& pattern);

  // The node of `before` that attempts begin with: the last one whose results no other node uses.
  int anchor() const { return anchor_; }
  // The match whose anchor is `node`. When there is none and `mismatch` is given, it reports where the best attempt
  // ended.
  std::optional<PatternMatch> match(Node* node, Mismatch* mismatch = nullptr);
  // The same, but the attempt begins with this node of `before`.
  std::optional<PatternMatch> match_from(int pattern_node, Node* node, Mismatch* mismatch = nullptr);

  // The number of graph nodes that were visited so far.
  std::int64_t visits() const { return visits_; }

 private:
  const Pattern& pattern_;
  int anchor_ = -1;
  std::int64_t visits_ = 0;
};

}  // namespace weft
