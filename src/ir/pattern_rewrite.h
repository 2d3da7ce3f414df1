#pragma once

// Replaces each match of a pattern's `before` by its `after`.

#include <functional>
#include <span>

#include "ir/pattern_match.h"

namespace weft {

// A call that a rewrite would make.
struct PlannedCall {
  const Op* op = nullptr;
  std::vector<PatternOperand> sources;        // the operands as the pattern states them
  std::vector<std::optional<Meta>> operands;  // nullopt for absent ones
  Attributes attributes;
  std::vector<Meta> results;
};

// An attempt that was almost a match.
struct NearMiss {
  std::string node;    // name of the node that the attempt began with
  std::string reason;  // as in Mismatch
};

// The cost of calls by the model of passes/profit.h.
struct Work {
  std::int64_t bytes = 0;   // read and written
  double instructions = 0;  // vector instructions; exact in a double, because the number of lanes is a power of two
  double cycles = 0;        // the sum over all calls of the longer of both times
  Work& operator+=(const Work& more);
};

// The cost before and after the rewrites of one pattern, at the largest row count of the range.
struct Profit {
  Work before = {};           // of the matched nodes
  Work after = {};            // of the nodes that replace them
  std::string measured = {};  // from weft tune: "tuned: 1.31x as fast as its parts"; "" when it was not measured
};

// What one pattern did to one graph.
struct PatternReport {
  std::string pattern;
  int matched = 0;
  std::vector<NearMiss> near_misses = {};  // in program order
  std::optional<std::string> off = {};     // why the pattern was not searched for
  std::optional<Profit> profit = {};       // set when it was asked for and there are matches
};

// Returns why a match must not be replaced, or nothing when it may be. An empty filter refuses nothing.
using RewriteFilter =
    std::function<std::optional<std::string>(const Pattern&, const PatternMatch&, std::span<const PlannedCall>)>;

// Replaces all matches, from the end of the graph to its beginning; among patterns that begin with the same op, the
// earlier one is tried first. A node belongs to one match at most, and nodes that a rewrite inserts are not matched
// again. A match is a near miss when `refuses` refuses it, when `after` does not fit its types, or when `after` cannot
// be inserted. An attempt is also a near miss when it found all nodes and one of them did not fit, or when it found all
// but one of three or more nodes, unless a later pattern matches there. Returns one report for each pattern, in the
// order of `patterns`. Adds the number of visited nodes to `visits`, if given.
std::vector<PatternReport> rewrite_all(Graph& graph, std::span<const Pattern* const> patterns, const OpTable& ops,
                                       const RewriteFilter& refuses = {}, std::int64_t* visits = nullptr);

// The best attempt from one node of a graph that found at least this node but did not match.
struct FailedAttempt : NearMiss {
  enum class Kind {
    near,   // from the anchor, and it found at least one more node, or all nodes of the pattern
    inner,  // another attempt, from a node that a near attempt found
    other
  };
  Kind kind = Kind::other;
};

// Where a pattern matches in a graph, and where it does not. The graph is not changed, except that values get names.
// `matches` are the nodes that matches begin with. Both lists are in program order.
struct PatternFindings {
  std::vector<std::string> matches;
  std::vector<FailedAttempt> misses;
  std::optional<std::string> off = {};  // why the compiler does not search for the pattern; find_as_compiled sets it
};
PatternFindings find_pattern(Graph& graph, const Pattern& pattern);

}  // namespace weft
