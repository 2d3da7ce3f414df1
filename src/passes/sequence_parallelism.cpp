// sequence_parallelism: each rank computes the row-wise ops after an all-reduce for its own share of the rows.
//
//   norm(all_reduce(%x))  ->  all_gather(norm(reduce_scatter(%x)))
//
// Each rewrite gathers its results and slices the whole tensors that it reads. Between two norms of a model a gather is
// followed by a slice, and the two cancel (noop_elimination): the residual stream stays distributed over the ranks.
//
// The pass assumes that a norm's weight and residual are the same on every rank, as they are in tensor parallelism. The
// number of ranks must divide the number of rows, so the pass applies to exact sizes only. It replaces the symbol of
// the rows by their number.

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
