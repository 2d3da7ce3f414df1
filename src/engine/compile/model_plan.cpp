#include "engine/compile/model_plan.h"

#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "compiler/token_ranges.h"
#include "tensor/kv_pages.h"

namespace weft {
namespace {

StepWork work_of(ModelCompilation& model, const ModelGraph& graph, const StepSizes& sizes, std::int64_t row_count) {
  std::map<std::string, const TracedParam*> params;
  for (const TracedParam& param : graph.params) params[param.name] = &param;
  const auto bytes_of_param = [&](const GraphValue& value) {
    const TracedParam& param = *params.at(value.name);
    return model.weights().bytes(param.keys, param.role);
  };
  const std::vector<CompileRecord>& records = model.records();
  const std::size_t range = range_of(graph.ranges, row_count);
  const Graph& compiled = records.empty() ? *graph.traced : *records[graph.first_record + range].split;
  StepWork work = weft::work_of(compiled, sizes, bytes_of_param);
  if (!graph.plans.empty()) work.activation_bytes = activation_bytes(*graph.plans[range], sizes.symbols);
  return work;
}

}  // namespace

PlannedMemory planned_memory(const ModelCompilation& model) {
  PlannedMemory memory{.kv_per_token = model.kv_bytes_per_page() / model.facts().kv.block,
                       .page_tokens = model.facts().kv.block,
                       .kv_cache = model.kv_bytes_of_longest_sequence(),
                       .activations = model.arena_bytes()};
  for (const LayerPages& pages : model.facts().pages())
    if (pages.layout.state_rows != 0) memory.states_per_token += kv_page_bytes(pages.layout);
  memory.states_per_token /= memory.page_tokens;
  std::set<std::pair<std::vector<std::string>, WeightRole>> counted;  // a weight of both graphs is loaded once
  for (const ModelGraph* graph : model.graphs())
    for (const TracedParam& param : graph->params)
      if (counted.emplace(param.keys, param.role).second)
        memory.weights += model.weights().bytes(param.keys, param.role);
  return memory;
}

PlannedStep planned_step(ModelCompilation& model, Phase phase, std::int64_t rows, std::int64_t cached,
                         std::int64_t sequences) {
  const std::int64_t context = model.facts().config.context_length;
  CHECK(sequences >= 1 && rows % sequences == 0, "{} rows are not the same number for each of {} sequences", rows,
        sequences);
  CHECK(rows >= 1 && rows <= model.max_tokens() && cached >= 0 && cached <= context - rows / sequences,
        "a step has 1 to {} rows in a context of {}, but {} after {} were planned", model.max_tokens(), context, rows,
        cached);
  PlannedStep step{.rows = rows, .cached = cached, .work = {}};
  StepSizes sizes{.rows = rows, .cached = cached, .sequences = sequences, .symbols = {}};
  sizes.symbols[tokens_symbol().symbol_name()] = rows;
  sizes.symbols[rows_symbol().symbol_name()] = sequences;
  const PhaseGraphs& graphs = model.graphs_of(phase);
  step.work += work_of(model, graphs.forward, sizes, rows);
  step.work += work_of(model, graphs.head, sizes, sequences);
  return step;
}

}  // namespace weft
