#include "compiler/pipeline.h"

#include <algorithm>
#include <iterator>

#include "base/stopwatch.h"
#include "compiler/pieces.h"
#include "compiler/stitch.h"
#include "ir/print.h"
#include "passes/all.h"
#include "passes/pattern_pass.h"

namespace weft {
namespace {

// The passes in order. Each row: the pass, the stage it needs, the stage it leaves.
const PassRow kPasses[] = {
    {"functionalize", functionalize, Stage::traced, Stage::pure},
    // Before CSE, so that equal values look equal.
    {"noop_elimination", noop_elimination, Stage::pure, Stage::pure},
    {"common_subexpression_elimination", common_subexpression_elimination, Stage::pure, Stage::pure},
    // Removes the nodes that CSE leaves unused.
    {"dead_code_elimination", dead_code_elimination, Stage::pure, Stage::pure},
    {"raise", raise, Stage::pure, Stage::pure},
    // Patterns of the user come before built-in ones.
    {"fuse_custom", pattern_pass(kCustomFusion), Stage::pure, Stage::pure},
    // Sums join norms before norms join quantizations.
    {"fuse_add_norm", pattern_pass("add_rms_norm", &Options::fuse_norm_quant), Stage::pure, Stage::pure},
    // The passes for ranks share the rows of a norm, and quantize before they gather: before the norm and its
    // quantization are one op.
    {"sequence_parallelism", sequence_parallelism, Stage::pure, Stage::pure},
    {"gather_codes", pattern_pass("gather_codes", &Options::enable_sp), Stage::pure, Stage::pure},
    {"fuse_norm_quant", pattern_pass("rms_quant", &Options::fuse_norm_quant), Stage::pure, Stage::pure},
    {"fuse_act_quant", pattern_pass("act_quant", &Options::fuse_act_quant), Stage::pure, Stage::pure},
    // Larger fusions come first: norms, rotation and cache update in one; then two of them.
    {"fuse_qk_norm_rope_kvcache", pattern_pass("qk_norm_rope_kvcache", &Options::fuse_qk_norm_rope_kvcache),
     Stage::pure, Stage::pure},
    {"fuse_rope_kvcache", pattern_pass("rope_kvcache", &Options::fuse_rope_kvcache), Stage::pure, Stage::pure},
    {"fuse_attn_quant", pattern_pass("attn_quant", &Options::fuse_attn_quant), Stage::pure, Stage::pure},
    {"fuse_qk_norm_rope", pattern_pass("qk_norm_rope", &Options::enable_qk_norm_rope_fusion), Stage::pure, Stage::pure},
    // After all passes over patterns of ops: here ops become kernels. Clones exist only after it.
    {"lower", lower, Stage::pure, Stage::lowered},
    {"clone_elimination", clone_elimination, Stage::lowered, Stage::lowered},
    {"split", split, Stage::lowered, Stage::split},
};

CompileRecord run_pipeline(Graph& graph, const Context& context, TokenRange range, const PassRunnerOptions& options) {
  context.first_time_work->begin(FirstTime::compile,
                                 fmt::format("graph {} for {} to {} rows", graph.name, range.lo, range.hi));
  const FirstTimeScope counts(context.first_time_work.get());
  PassContext passes = pass_context(context, range);
  if (!options.fuse) passes.patterns = {};
  bound_rows(graph, range);
  CompileRecord record{.graph = graph.name, .range = range};
  record.passes = run_passes(graph, passes, passes_of(context), options);
  log_record(context.log, record);
  return record;
}

std::shared_ptr<const Plan> make_plan(const Graph& split, const Context& context, CompileRecord& record) {
  Stopwatch watch;
  show_laps(watch, context.timeline, "compile", {{"graph", split.name}});
  const PieceSchedules schedules = generate_pieces(split, context, record.range);
  watch.lap("generate");
  Plan plan = stitch(split, schedules, context);
  verify_plan(plan);
  watch.lap("stitch");
  plan_memory(plan);
  watch.lap("plan_memory");
  record.steps.insert(record.steps.end(), watch.laps().begin(), watch.laps().end());
  return std::make_shared<const Plan>(std::move(plan));
}

}  // namespace

std::span<const PassRow> pipeline_passes() { return kPasses; }

Compiled compile(Graph& graph, const Context& context, TokenRange range, const PassRunnerOptions& options) {
  CompileRecord record = run_pipeline(graph, context, range, options);
  record.split = graph.clone();
  auto plan = options.stop_after ? nullptr : make_plan(graph, context, record);
  return {std::move(plan), std::move(record)};
}

CompiledRanges compile_ranges(const Graph& traced, const Context& context, std::vector<TokenRange> ranges,
                              const PassRunnerOptions& options) {
  const bool generates = generates_code(context);
  CompiledRanges compiled{.ranges = std::move(ranges)};
  std::vector<std::shared_ptr<Graph>> graphs;
  std::vector<std::size_t> first_equal;  // by range: the index of the first equal graph
  for (const TokenRange& range : compiled.ranges) {
    Stopwatch watch;
    graphs.push_back(traced.clone());
    const double copying = watch.lap("copy");
    compiled.records.push_back(run_pipeline(*graphs.back(), context, range, options));
    watch.lap("passes");
    CompileRecord& record = compiled.records.back();
    record.split = graphs.back();
    const auto has_equal_code = [&](std::size_t other) {
      const SizeTuning& tuning = context.size_tuning;
      return tuning.functions_at(compiled.ranges[other]) == tuning.functions_at(range) &&
             structurally_equal(*graphs[other], *graphs.back());
    };
    std::size_t same = 0;
    while (same + 1 < graphs.size() && !has_equal_code(same)) ++same;
    first_equal.push_back(record.plan = same);
    // A Plan that serves several ranges has the bounds of all of them.
    for (auto& [symbol, bounds] : graphs[same]->bounds) {
      const Interval more = graphs.back()->bounds.at(symbol);
      bounds = {std::min(bounds.lo, more.lo), std::max(bounds.hi, more.hi)};
    }
    record.steps = {{"copy", copying}, {"compare_ranges", watch.lap("compare_ranges")}};
  }
  for (std::size_t i = 0; i < graphs.size() && !options.stop_after; ++i)
    compiled.plans.push_back(first_equal[i] < i ? compiled.plans[first_equal[i]]
                                                : make_plan(*graphs[i], context, compiled.records[i]));
  // Some kernels were passed over for generated code, which turned out to be unavailable: choose again without it.
  if (generates && !generates_code(context))
    return compile_ranges(traced, context, std::move(compiled.ranges), options);
  return compiled;
}

std::vector<CompileRecord> compile_records(const Graph& traced, const Context& context,
                                           std::vector<TokenRange> ranges) {
  const FirstTimeWork::Uncounted report(*context.first_time_work);
  PassRunnerOptions passes = pass_runner_options(context.options);
  passes.stop_after = Stage::split;
  return compile_ranges(traced, context, std::move(ranges), passes).records;
}

std::vector<std::shared_ptr<const Graph>> stages_of(const Graph& traced, const Context& context, TokenRange range) {
  const std::shared_ptr<Graph> graph = traced.clone();
  bound_rows(*graph, range);
  PassContext passes = pass_context(context, range);
  const std::vector<PassRow> rows = passes_of(context);
  std::vector<std::shared_ptr<const Graph>> stages;
  for (const Stage stage : {Stage::traced, Stage::pure, Stage::lowered, Stage::split}) {
    std::vector<PassRow> of_stage;
    std::copy_if(rows.begin(), rows.end(), std::back_inserter(of_stage),
                 [&](const PassRow& row) { return row.leaves == stage; });
    run_passes(*graph, passes, of_stage, {.skip = context.options.skip_pass});
    stages.push_back(graph->clone());
  }
  return stages;
}

std::map<std::string, std::map<std::string, std::string>> selected_impls(const CompileRecord& record) {
  std::map<std::string, std::map<std::string, std::string>> selected;
  for (const PassRecord& pass : record.passes)
    for (const NodeChoice& node : pass.result.choices) selected[node.op][node.node] = node.choice.provider;
  return selected;
}

}  // namespace weft
