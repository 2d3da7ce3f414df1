#pragma once

// From a traced graph to a Plan. pipeline.cpp is the flow: read it first.

#include <map>
#include <memory>

#include "compiler/pass_runner.h"
#include "runtime/plan.h"

namespace weft {

// The passes of the tree, in order.
std::span<const PassRow> pipeline_passes();

// What the passes look at when they run on one graph for one range. Refers to the Context, and to the priorities where
// they are not the Context's own.
PassContext pass_context(const Context& context, TokenRange range);
PassContext pass_context(const Context& context, TokenRange range, const PriorityLists& priorities);

// Those and the Context's own, each of which runs behind all others of its stage.
std::vector<PassRow> passes_of(const Context& context);

// Everything the compiler did with one graph and token range.
struct CompileRecord {
  std::string graph;
  TokenRange range;
  std::vector<PassRecord> passes = {};
  // Around the passes, in milliseconds: copy and compare_ranges where there may be several ranges, then generate,
  // stitch and plan_memory, which ranges that share a Plan do not take.
  std::vector<std::pair<std::string, double>> steps = {};
  // Ranges of a graph with equal numbers share one Plan.
  std::size_t plan = 0;
  std::shared_ptr<const Graph> split = {};  // as it went into stitch, or as it was left at --compile-to
};

struct Compiled {
  std::shared_ptr<const Plan> plan;  // null when the runner's options stop before there is one
  CompileRecord record;
};

// Compiles one graph for one token range. The graph is changed; `bounds` of its governing symbol become the range.
Compiled compile(Graph& graph, const Context& context, TokenRange range, const PassRunnerOptions& options);

// One graph, compiled for several token ranges; all vectors are by range.
struct CompiledRanges {
  std::vector<TokenRange> ranges;
  // Ranges whose graphs came out equal share one. Empty when the runner's options stop before there are Plans.
  std::vector<std::shared_ptr<const Plan>> plans;
  std::vector<CompileRecord> records;
};

// Everything from the traced graph on happens once per range, since fusion and the choice of kernels may differ.
CompiledRanges compile_ranges(const Graph& traced, const Context& context, std::vector<TokenRange> ranges,
                              const PassRunnerOptions& options);

// The graph at the end of each stage, from traced to split, on the way that compile_ranges takes it for one range. The
// passes run for it alone: nothing of it is logged or dumped.
std::vector<std::shared_ptr<const Graph>> stages_of(const Graph& traced, const Context& context, TokenRange range);

// Which provider computes each node: op -> node -> provider.
std::map<std::string, std::map<std::string, std::string>> selected_impls(const CompileRecord& record);

// The options of the runner as the Context's options ask for them.
PassRunnerOptions pass_runner_options(const Options& options);

}  // namespace weft
