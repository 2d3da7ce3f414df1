#include "compiler/pass_setup.h"

#include <iostream>

#include "codegen/build_row_program.h"
#include "compiler/functions/generated_calls.h"
#include "compiler/pieces.h"
#include "compiler/pipeline.h"
#include "compiler/splitting_ops.h"
#include "ir/print.h"

namespace weft {

void bound_rows(Graph& graph, TokenRange range) {
  if (const std::string symbol = graph.governing_symbol(); !symbol.empty()) graph.bounds[symbol] = {range.lo, range.hi};
}

PassContext pass_context(const Context& context, TokenRange range) {
  return pass_context(context, range, context.priorities);
}

PassContext pass_context(const Context& context, TokenRange range, const PriorityLists& priorities) {
  GeneratedCheck extent;
  if (generates_code(context))
    extent = [calls = std::make_shared<GeneratedCalls>(context)](const std::string& op, const KernelRequest& request) {
      return calls->extent(op, request);
    };
  return {.ops = context.ops,
          .kernels = context.kernels,
          .priorities = priorities,
          .options = context.options,
          .device = context.device,
          .range = range,
          .batch_invariant = context.options.batch_invariant,
          .splitting_ops = resolve_splitting_ops(context.options.splitting_ops, context.ops),
          .patterns = context.patterns,
          .is_generated = extent ? &is_row_node : nullptr,
          .generated_extent = std::move(extent),
          .timeline = context.timeline.get()};
}

std::vector<PassRow> passes_of(const Context& context) {
  std::vector<PassRow> passes;
  const auto add_own = [&](Stage stage) {
    for (const PassRow& own : context.passes)
      if (own.needs == stage) passes.push_back(own);
  };
  Stage stage = Stage::traced;
  for (const PassRow& row : pipeline_passes()) {
    if (row.leaves != stage) add_own(stage);
    passes.push_back(row);
    stage = row.leaves;
  }
  add_own(stage);
  return passes;
}

PassRunnerOptions pass_runner_options(const Options& options) {
  PassRunnerOptions runner;
  runner.skip = options.skip_pass;
  runner.dump_folder = options.debug_dump_path;
  runner.print_after = options.print_ir_after;
  runner.stop_after = stage_from_text(options.compile_to);  // nullopt for `plan`
  runner.print = [](const std::string& pass, const Graph& graph) {
    std::cerr << "# after " << pass << "\n" << display(graph);
  };
  return runner;
}

}  // namespace weft
