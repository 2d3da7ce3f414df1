#pragma once

// Puts the `after` of a pattern where its `before` was found.

#include <functional>
#include <span>

#include "ir/pattern_match.h"

namespace weft {

// A call that a rewrite would make.
struct PlannedCall {
  const Op* op = nullptr;
  std::vector<PatternOperand> sources;        // of the operands, in the pattern
  std::vector<std::optional<Meta>> operands;  // nullopt for absent ones
  Attributes attributes;
  std::vector<Meta> results;
};

// Something that was almost a match.
struct NearMiss {
  std::string node;    // name of the node that the attempt began with
  std::string reason;  // as in Mismatch
};

// What calls take by the model of passes/profit.h.
struct Work {
  std::int64_t bytes = 0;   // read and written
  double instructions = 0;  // of vectors; exact, as these have a power of two of lanes
  double cycles = 0;        // the longer of both, call by call
  Work& operator+=(const Work& more);
};

// What the rewrites of one pattern buy, at the most rows of their range.
struct Profit {
  Work before = {};           // of the matched nodes
  Work after = {};            // of what stands in their place
  std::string measured = {};  // by weft tune: "tuned: 1.31x as fast as its parts"; "" where nobody did
};

// What one pattern did to one graph.
struct PatternReport {
  std::string pattern;
  int matched = 0;
  std::vector<NearMiss> near_misses = {};  // in program order
  std::optional<std::string> off = {};     // why it was not looked for
  std::optional<Profit> profit = {};       // where it was asked for and there are matches
};

// Why a match shall stay as it is; nothing when it may be replaced. An empty one refuses nothing.
using RewriteFilter =
    std::function<std::optional<std::string>(const Pattern&, const PatternMatch&, std::span<const PlannedCall>)>;

// Replaces all matches, from the end of the graph to its beginning; of patterns that begin with the same op the earlier
// goes first. A node belongs to one match at most, and what a rewrite puts in is not matched again. A match that is
// refused, by `refuses` or because `after` does not fit its types or cannot be placed, is a near miss; so is an attempt
// that found all nodes but not as wanted, or all but one of three or more. One report for each pattern, in their order.
// `visits`, if given, grows by the nodes looked at.
std::vector<PatternReport> rewrite_all(Graph& graph, std::span<const Pattern* const> patterns, const OpTable& ops,
                                       const RewriteFilter& refuses = {}, std::int64_t* visits = nullptr);

// Where a pattern stands in a graph, without changing it but for names: the nodes that matches begin with, and every
// attempt that found at least one node but was no match, whatever node of `before` it began with; the best one of each
// node of the graph. In program order.
struct PatternFindings {
  std::vector<std::string> matches;
  std::vector<NearMiss> misses;
};
PatternFindings find_pattern(Graph& graph, const Pattern& pattern);

}  // namespace weft
