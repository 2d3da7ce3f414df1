#include "compiler/run/interpret.h"

#include <algorithm>

#include "base/error.h"
#include "compiler/run/run_kernel.h"
#include "ir/meaning.h"
#include "ir/meta_evaluator.h"

namespace weft {
namespace {

// Reads the symbols' values from the inputs, so that dims in attributes (`shape=[s0, 9, 64]`) become numbers.
std::map<std::string, Dim> bind_symbols(const Graph& graph, const Values& inputs) {
  std::map<std::string, Dim> symbols;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Shape& planned = graph.inputs()[i]->meta.shape;
    for (std::size_t d = 0; d < planned.size(); ++d)
      if (const std::string symbol = planned[d].symbol_name(); !symbol.empty())
        symbols.emplace(symbol, inputs[i].meta().shape[d]);
  }
  return symbols;
}

using UsesLeft = std::map<const GraphValue*, std::size_t>;

// Whether everything that the node's op donates is KV pages that the graph owns and that no later node reads.
bool may_take_pages(const Node& node, const UsesLeft& uses_left) {
  const std::vector<Donation>& donates = node.op->donates;
  return !donates.empty() && std::all_of(donates.begin(), donates.end(), [&](const Donation& donation) {
    const GraphValue* pages = node.operands[static_cast<std::size_t>(donation.argument)];
    return pages != nullptr && pages->meta.kind == MetaKind::kv && uses_left.at(pages) == 1 &&
           (pages->producer != nullptr || pages->donated || pages->overwrites);
  });
}

Values run_node(const Graph& graph, const Node& node, Evaluator& evaluator, const Values& operands,
                const std::map<std::string, Dim>& symbols, const UsesLeft& uses_left) {
  if (node.kind == NodeKind::call) {
    const Graph* piece = graph.find_piece(node.name);
    CHECK(piece != nullptr, "there is no piece named {}", node.name);
    return run_graph(*piece, evaluator, operands);
  }
  CHECK(node.op != nullptr, "{} cannot be run: it is not an op of this program", node.name);
  Attributes attributes;
  for (const auto& [name, value] : node.attributes.entries()) attributes.set(name, value.substitute(symbols));
  return evaluator.evaluate(*node.op, operands, attributes, node.maybe_inplace || may_take_pages(node, uses_left));
}

}  // namespace

Values Interpreter::evaluate(const Op& op, const Values& operands, const Attributes& attributes, bool) {
  if (!op.is_primitive()) return run_meaning(op, *this, operands, attributes);
  const std::vector<Meta> results = infer_results(op, ops(), operand_metas(operands), attributes);
  if (op.is_view) return {value(run_view(op, operands[0].tensor(), attributes, results[0]))};
  Values values;
  const Kernel& kernel = context_.kernel_for(op.name, "reference");
  for (Tensor& tensor : run_kernel(op, kernel, operands, attributes, results, false, threads_, &groups_))
    values.push_back(value(std::move(tensor)));
  return values;
}

Values run_graph(const Graph& graph, Evaluator& evaluator, const Values& inputs) {
  CHECK(inputs.size() == graph.inputs().size(), "graph {} takes {} inputs, but {} were given", graph.name,
        graph.inputs().size(), inputs.size());
  const std::map<std::string, Dim> symbols = bind_symbols(graph, inputs);
  std::map<const GraphValue*, Value> values{{nullptr, Value()}};
  UsesLeft uses_left;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const GraphValue* input = graph.inputs()[i].get();
    values[input] = inputs[i];
    uses_left[input] = input->uses.size();
  }
  for (const auto& node : graph.nodes()) {
    Values operands;
    for (const GraphValue* operand : node->operands) operands.push_back(values.at(operand));
    const Values results = run_node(graph, *node, evaluator, operands, symbols, uses_left);
    for (std::size_t i = 0; i < results.size(); ++i) {
      values[node->result(i)] = results[i];
      uses_left[node->result(i)] = node->result(i)->uses.size();
    }
    for (const GraphValue* operand : node->operands)
      if (operand != nullptr && --uses_left[operand] == 0) values.erase(operand);
  }
  Values results;
  for (const GraphValue* result : graph.results()) results.push_back(values.at(result));
  return results;
}

}  // namespace weft
