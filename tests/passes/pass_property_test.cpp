// Properties that every pass must preserve, on random graphs: legality, the laws of the text, and the result, bit for
// bit.

#include <algorithm>

#include <fmt/core.h>

#include "compiler/pipeline.h"
#include "compiler/run/interpret.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "runtime/replay.h"
#include "tests/graph_recipes.h"
#include "tests/small_layer.h"

namespace weft::pass_property_test {

constexpr TokenRange kRange = {1, 8};

const Context& context() {
  static const std::shared_ptr<Context> shared = test_context();
  return *shared;
}

std::vector<Tensor> interpreted(const Graph& graph, const LayerInputs& inputs) {
  Interpreter interpreter(context());
  std::vector<Tensor> results;
  for (const Value& value : run_graph(graph, interpreter, values_of(interpreter, inputs.copies())))
    results.push_back(value.tensor());
  return results;
}

// "" if the results have the same bits, else the first difference.
std::string compared(const std::vector<Tensor>& wanted, const std::vector<Tensor>& came) {
  if (wanted.size() != came.size()) return "another count of results";
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (const std::string found = difference(wanted[i], came[i], {}, true); !found.empty())
      return fmt::format("result {}: {}", i, found);
  return "";
}

TEST(PassProperty, KeepsTheGraphLegalAndItsResultsTheSameBits) {
  GraphFeatures traced, lowered;
  const auto kernels = kernel_context();
  PassContext with_code = pass_context(context(), kRange), with_kernels = pass_context(*kernels, kRange);
  check_property(300, [&](const GraphRecipe& recipe) {
    const int rows = *number_in(1, 6);
    PassContext& passes = *number_in(0, 2) == 0 ? with_code : with_kernels;
    const auto graph = build_graph(recipe, context().ops);
    graph->bounds["s0"] = {kRange.lo, kRange.hi};
    traced += features_of(*graph);
    const LayerInputs inputs = layer_inputs(*graph, rows);
    const std::vector<Tensor> wanted = interpreted(*graph, inputs);
    for (const PassRow& row : pipeline_passes()) {
      const std::string before = display(*graph);
      row.run(*graph, passes);
      RC_LOG() << row.name << " made\n" << display(*graph) << "of\n" << before;
      RC_ASSERT(find_breach(*graph, context().ops).value_or("") == "");
      RC_ASSERT(broken_text_law(*graph, context().ops) == "");
      if (graph->stage == Stage::split) continue;
      RC_ASSERT(compared(wanted, interpreted(*graph, inputs)) == "");
      if (graph->stage == Stage::lowered) lowered += features_of(*graph);
    }
  });
  if (HasFailure()) return;
  EXPECT_GT(std::min({traced.views, traced.strided_views, traced.shared_values, traced.several_results, traced.returned,
                      traced.given_away, traced.repeated_nodes, traced.unread_nodes}),
            50)
      << traced.text();
  EXPECT_GT(std::min({lowered.given_away, lowered.donated_inputs, lowered.views, lowered.shared_values}), 50)
      << lowered.text();
}

TEST(PassProperty, CompiledGraphsGiveTheBitsOfTheirMeaning) {
  check_property(100, [](const GraphRecipe& recipe) {
    const auto graph = build_graph(recipe, context().ops);
    const auto compiled = graph->clone();
    Replay replay(compile(*compiled, context(), kRange, {}).plan, *context().threads);
    for (const int rows : {1, *number_in(2, 9)}) {
      const LayerInputs inputs = layer_inputs(*graph, rows);
      const std::vector<Tensor> wanted = interpreted(*graph, inputs);
      for (std::size_t i = 0; i < inputs.tensors.size(); ++i) replay.bind(i, inputs.copy(i));
      replay.run();
      std::vector<Tensor> came;
      for (std::size_t i = 0; i < wanted.size(); ++i) came.push_back(replay.result(i));
      RC_ASSERT(compared(wanted, came) == "");
    }
  });
}

}  // namespace weft::pass_property_test
