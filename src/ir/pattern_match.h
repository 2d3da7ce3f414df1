#pragma once

// Finds where the `before` of a pattern stands in a graph of stage pure.
//
// Matching is structural: ops, their operands (either order of the first two where the op is commutative) and complete
// attributes. A view that changes nothing may stand between two matched nodes. What a matched node gives may be used
// outside the match only where `before` returns it. A value wildcard without a type also stands for an absent optional
// operand, and an attribute wildcard without conditions for `none`.

#include <cstdint>

#include "ir/graph.h"
#include "ir/pattern.h"

namespace weft {

struct PatternMatch {
  std::vector<Node*> nodes;         // by index in before.nodes
  std::vector<GraphValue*> values;  // by wildcard; null for an absent operand and for other kinds
  // By wildcard: numbers, dtypes and dims, not set for values.
  std::vector<std::optional<Attribute>> attributes;

  // The attribute with what is bound to each wildcard in its place.
  Attribute substitute(const Pattern& pattern, const Attribute& attribute) const;
};

// Where the attempt ended that came furthest.
struct Mismatch {
  int matched = 0;           // nodes of `before` that had been found, each with its op
  bool in_place = false;     // it was not for the lack of a node: an attribute, a type, a use did not fit
  const Node* at = nullptr;  // the node of the graph that did not fit, or that the unfitting value goes into
  int pattern_node = -1;     // the node of `before` it was tried for
  std::string reason;        // "%n: is rms_norm, wanted silu_and_mul"
};

class PatternMatcher {
 public:
  explicit PatternMatcher(const Pattern& pattern);

  // The node of `before` that attempts begin with: the last one that no other reads.
  int anchor() const { return anchor_; }
  // The match whose anchor is `node`. When there is none, `mismatch`, if given, says where the best attempt ended.
  std::optional<PatternMatch> match(Node* node, Mismatch* mismatch = nullptr);
  // The same, beginning with any node of `before`.
  std::optional<PatternMatch> match_from(int pattern_node, Node* node, Mismatch* mismatch = nullptr);

  // Nodes of graphs looked at so far.
  std::int64_t visits() const { return visits_; }

 private:
  const Pattern& pattern_;
  int anchor_ = -1;
  std::int64_t visits_ = 0;
};

}  // namespace weft
