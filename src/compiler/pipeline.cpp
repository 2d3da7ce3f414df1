#include "compiler/pipeline.h"

#include <chrono>
#include <iostream>

#include "compiler/splitting_ops.h"
#include "compiler/stitch.h"
#include "ir/print.h"
#include "passes/all.h"

namespace weft {
namespace {

// The flow. Each row: the pass, the stage it needs, the stage it leaves.
//
// The two eliminations come before CSE so that equal values look equal; CSE before DCE so that what it leaves behind
// goes. Lowering is the point where ops become kernels: what looks for op patterns stands above it. Clones exist only
// below it.
constexpr PassRow kPasses[] = {
    {"functionalize", functionalize, Stage::traced, Stage::pure},
    {"noop_elimination", noop_elimination, Stage::pure, Stage::pure},
    {"common_subexpression_elimination", common_subexpression_elimination, Stage::pure, Stage::pure},
    {"dead_code_elimination", dead_code_elimination, Stage::pure, Stage::pure},
    {"lower", lower, Stage::pure, Stage::lowered},
    {"clone_elimination", clone_elimination, Stage::lowered, Stage::lowered},
    {"split", split, Stage::lowered, Stage::split},
};

double milliseconds_of(auto&& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

std::span<const PassRow> pipeline_passes() { return kPasses; }

Compiled compile(Graph& graph, const Context& context, TokenRange range, const PassRunnerOptions& options) {
  PassContext pass_context{.ops = context.ops,
                           .kernels = context.kernels,
                           .priorities = context.priorities,
                           .range = range,
                           .batch_invariant = context.options.batch_invariant,
                           .splitting_ops = resolve_splitting_ops(context.options)};
  if (const std::string symbol = graph.governing_symbol(); !symbol.empty()) graph.bounds[symbol] = {range.lo, range.hi};

  CompileRecord record{.graph = graph.name, .range = range};
  record.passes = run_passes(graph, pass_context, kPasses, options);
  record.split = graph.clone();
  Plan plan;
  record.stitch_milliseconds = milliseconds_of([&] { plan = stitch(graph, context); });
  record.memory_plan_milliseconds = milliseconds_of([&] { plan_memory(plan); });
  return {std::make_shared<const Plan>(std::move(plan)), std::move(record)};
}

PassRunnerOptions pass_runner_options(const Options& options) {
  PassRunnerOptions runner;
  runner.skip = options.skip_pass;
  runner.dump_folder = options.debug_dump_path;
  runner.print_after = options.print_ir_after;
  runner.print = [](const std::string& pass, const Graph& graph) {
    std::cerr << "# after " << pass << "\n" << display(graph);
  };
  return runner;
}

}  // namespace weft
