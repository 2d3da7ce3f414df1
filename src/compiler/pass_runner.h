#pragma once

// Runs the named passes of the pipeline on one graph. It times each pass, dumps and verifies the graph after it, and
// can skip it.

#include <functional>
#include <string>
#include <vector>

#include "compiler/context.h"
#include "passes/pass.h"

namespace weft {

struct PassRecord {
  std::string name;
  double milliseconds = 0;
  double verify_milliseconds = 0;  // for the graph after the pass
  int nodes_before = 0;
  int nodes_after = 0;
  bool skipped = false;
  PassResult result;
};

// What to skip, dump, print and verify during a run.
struct PassRunnerOptions {
  std::vector<std::string> skip;         // --skip-pass; a pass that changes the stage cannot be skipped
  std::string dump_folder;               // WEFT_DEBUG_DUMP_PATH: NN-PASS.GRAPH.LO-HI.graph; created if needed
  std::vector<std::string> print_after;  // --print-ir-after; "all" for every pass
  std::function<void(const std::string& pass, const Graph&)> print;
  std::optional<Stage> stop_after;  // --compile-to: the last stage to reach; nullopt for all
  bool verify = true;
  bool fuse = true;  // whether patterns are applied
};

// InternalError when the graph is not at the stage that a pass needs, or when a pass leaves an illegal graph (which is
// then dumped).
std::vector<PassRecord> run_passes(Graph& graph, PassContext& context, std::span<const PassRow> rows,
                                   const PassRunnerOptions& options);

}  // namespace weft
