#pragma once

// Runs the named steps of the pipeline on one graph: each is timed, dumped, verified after, and can be skipped.

#include <functional>
#include <string>
#include <vector>

#include "compiler/context.h"
#include "passes/pass.h"

namespace weft {

struct PassRecord {
  std::string name;
  double milliseconds = 0;
  double verify_milliseconds = 0;  // for what it left
  int nodes_before = 0;
  int nodes_after = 0;
  bool skipped = false;
  PassResult result;
};

// What to look at on the way.
struct PassRunnerOptions {
  std::vector<std::string> skip;         // --skip-pass; a pass that changes the stage cannot be skipped
  std::string dump_folder;               // WEFT_DEBUG_DUMP_PATH: NN-PASS.GRAPH.LO-HI.graph; made if need be
  std::vector<std::string> print_after;  // --print-ir-after; "all" for every pass
  std::function<void(const std::string& pass, const Graph&)> print;
  std::optional<Stage> stop_after;  // --compile-to: the last stage to reach; nothing for all
  bool verify = true;
  bool fuse = true;  // whether patterns are looked for
};

// InternalError when a pass's stage does not fit, or it leaves an illegal graph (the graph is then dumped).
std::vector<PassRecord> run_passes(Graph& graph, PassContext& context, std::span<const PassRow> rows,
                                   const PassRunnerOptions& options);

}  // namespace weft
