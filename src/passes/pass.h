#pragma once

// A pass changes a graph in place and says what it did. All passes have one signature; `passes/all.h`, made by the
// build, declares one function for each file of this folder. The order is in compiler/pipeline.cpp, and the runner
// there times, dumps and verifies each.

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/options.h"
#include "base/timeline.h"
#include "ir/graph.h"
#include "ir/pattern_rewrite.h"
#include "kernels/select.h"

namespace weft {

struct PassContext;

// A pattern, and the fusion it is part of: the file of src/passes/fusion/ that defines it, or where it was brought
// from.
struct FusionPattern {
  std::string fusion;
  Pattern pattern;
  // Why it is not looked for in graphs of this context; nothing, or none, where it is.
  std::function<std::optional<std::string>(const PassContext&)> why_not = {};
};

// What passes may look at. Made once per graph and token range.
struct PassContext {
  const OpTable& ops;
  const KernelRegistry& kernels;
  const PriorityLists& priorities;
  const CodeOptions& options;  // nothing else may decide what a pass does
  const DeviceDescription& device;
  TokenRange range;
  bool batch_invariant = false;
  std::vector<std::string> splitting_ops;  // names of ops that force a cut
  std::span<const FusionPattern> patterns = {};
  // Whether a function can be generated for a primitive where it stands; null where no code is generated.
  bool (*is_generated)(const Node& primitive) = nullptr;
  // How much of a call of any op; empty likewise.
  GeneratedCheck generated_extent = {};
  Timeline* timeline = nullptr;  // of which each pass is an event; null for none
};

// The choice made for one node, with the refusals on the way.
struct NodeChoice {
  std::string node;  // name of its first result
  std::string op;
  std::string layer;  // from the node's origin, "" when it has none
  Choice choice;
};

struct PassResult {
  std::vector<std::pair<std::string, int>> counts;                    // what was done, e.g. {"removed", 12}
  std::vector<NodeChoice> choices = {};                               // lower
  std::vector<std::pair<std::string, std::string>> kept_clones = {};  // clone_elimination: node, reason
  std::vector<PatternReport> patterns = {};                           // fusions
};

// One row of the pipeline. A pass runs on a graph of stage `needs` and leaves one of stage `leaves`.
struct PassRow {
  std::string name;
  std::function<PassResult(Graph&, PassContext&)> run;
  Stage needs;
  Stage leaves;
};

}  // namespace weft
