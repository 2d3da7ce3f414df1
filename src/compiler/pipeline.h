#pragma once

// From a traced graph to a Plan. pipeline.cpp is the flow: read it first.

#include <map>
#include <memory>

#include "compiler/pass_runner.h"
#include "compiler/pass_setup.h"
#include "runtime/plan.h"

namespace weft {

// The passes of the tree, in order.
std::span<const PassRow> pipeline_passes();

// Everything the compiler did with one graph and token range.
struct CompileRecord {
  std::string graph;
  TokenRange range;
  std::vector<PassRecord> passes = {};
  // Times of the steps around the passes, in milliseconds: copy and compare_ranges where there may be several ranges;
  // then generate, stitch and plan_memory, which are absent for a range that reuses the Plan of another.
  std::vector<std::pair<std::string, double>> steps = {};
  // The index of the Plan; ranges of a graph that have equal indices share one Plan.
  std::size_t plan = 0;
  std::shared_ptr<const Graph> split = {};  // the input of stitch, or the graph at --compile-to
};

struct Compiled {
  std::shared_ptr<const Plan> plan;  // null when the runner's options stop before there is one
  CompileRecord record;
};

// Compiles one graph for one token range. This changes the graph: the `bounds` of its governing symbol become the
// range.
Compiled compile(Graph& graph, const Context& context, TokenRange range, const PassRunnerOptions& options);

// One graph, compiled for several token ranges; all vectors are by range.
struct CompiledRanges {
  std::vector<TokenRange> ranges;
  // Ranges with equal compiled graphs share one Plan. Empty when the runner's options stop before there are Plans.
  std::vector<std::shared_ptr<const Plan>> plans;
  std::vector<CompileRecord> records;
};

// Each step after the trace runs once per range, since fusion and the choice of kernels may differ.
CompiledRanges compile_ranges(const Graph& traced, const Context& context, std::vector<TokenRange> ranges,
                              const PassRunnerOptions& options);

// The records of compile_ranges where the Plans came from the compile cache, for reports: the passes run again, which
// does not count as first-time work.
std::vector<CompileRecord> compile_records(const Graph& traced, const Context& context, std::vector<TokenRange> ranges);

// The graph at the end of each stage, from traced to split, as compile_ranges makes it for one range. The passes run
// separately for this, and nothing is logged or dumped.
std::vector<std::shared_ptr<const Graph>> stages_of(const Graph& traced, const Context& context, TokenRange range);

// The provider that computes each node: op -> node -> provider.
std::map<std::string, std::map<std::string, std::string>> selected_impls(const CompileRecord& record);

}  // namespace weft
