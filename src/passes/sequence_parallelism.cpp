// sequence_parallelism: what follows an all-reduce row by row is computed by each rank for its share of the rows.
//
//   norm(all_reduce(%x))  ->  all_gather(norm(reduce_scatter(%x)))
//
// Each rewrite gathers what it must give whole and takes its share of what it reads whole. Between the norms of a model
// the two meet, and a rank's share of what was just gathered is what it had: the residual stream stays with the ranks.
//
// A norm's weight and residual must be the same on every rank, as they are in tensor parallelism: the pass takes it for
// granted. It applies where the rows are known to divide by the ranks, so to exact sizes; their number stands in the
// graph from here on.

#include "ir/rank_groups.h"
#include "ir/replace_symbol.h"
#include "passes/all.h"
#include "passes/pattern_pass.h"

namespace weft {
namespace {

constexpr const char* kFusion = "sequence_parallelism";

std::optional<std::string> why_not(const Graph& graph, const PassContext& context) {
  if (context.options.enable_sp != true) return "-cc.pass_config.enable_sp is not on";
  if (rank_groups(graph).empty()) return "no op of the graph is over several ranks";
  const TokenRange& range = context.range;
  if (range.lo < context.options.sp_min_token_num)
    return fmt::format("-cc.pass_config.sp_min_token_num is {}, and the range begins at {}",
                       context.options.sp_min_token_num, range.lo);
  if (const std::string rows = graph.governing_symbol(); !rows.empty() && range.lo != range.hi)
    return fmt::format("{} in [{}, {}] need not divide by the ranks; exact sizes (-cc.compile_sizes) may", rows,
                       range.lo, range.hi);
  return std::nullopt;
}

}  // namespace

PassResult sequence_parallelism(Graph& graph, PassContext& context) {
  if (const auto reason = why_not(graph, context)) {
    PassResult off;
    for (const FusionPattern& entry : context.patterns)
      if (entry.fusion == kFusion) off.patterns.push_back({.pattern = entry.pattern.name, .off = reason});
    return off;
  }
  if (const std::string rows = graph.governing_symbol(); !rows.empty()) replace_symbol(graph, rows, context.range.lo);
  PassResult result = pattern_pass(kFusion)(graph, context);
  noop_elimination(graph, context);
  dead_code_elimination(graph, context);
  return result;
}

}  // namespace weft
