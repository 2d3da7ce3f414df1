#pragma once

// From a traced graph to a Plan. pipeline.cpp is the flow: read it first.

#include <memory>

#include "compiler/pass_runner.h"
#include "runtime/plan.h"

namespace weft {

// The passes in order, for `weft graph opt` and the tests.
std::span<const PassRow> pipeline_passes();

// Everything the compiler did with one graph and token range.
struct CompileRecord {
  std::string graph;
  TokenRange range;
  std::vector<PassRecord> passes = {};
  double stitch_milliseconds = 0;
  double memory_plan_milliseconds = 0;
  std::shared_ptr<const Graph> split = {};  // as it went into stitch
};

struct Compiled {
  std::shared_ptr<const Plan> plan;
  CompileRecord record;
};

// Compiles one graph for one token range. The graph is changed; `bounds` of its governing symbol become the range.
Compiled compile(Graph& graph, const Context& context, TokenRange range, const PassRunnerOptions& options);

// The options of the runner as the Context's options ask for them.
PassRunnerOptions pass_runner_options(const Options& options);

}  // namespace weft
