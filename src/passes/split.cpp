// split: cuts the graph at the splitting ops into pieces and a stitching graph of calls.
//
//   %q = f@cpu(%x)  %o = attention@cpu(%q, %kv, %batch)  %y = g@cpu(%o)
//   ->  piece p0(%x) {...}  splitting p1(%q, %kv, %batch) {...}  piece p2(%o) {...}
//       %q = call p0(%x)  %o = call p1(%q, %kv, %batch)  %y = call p2(%o)
//
// Adjacent splitting ops share a piece. A piece that only allocates moves into the last ordinary piece before it.
// Weights are ordinary arguments, so equal pieces are defined once and called with different weights. A piece reads its
// dims from its inputs; no shape crosses a cut as a value.

#include <algorithm>
#include <set>

#include "base/error.h"
#include "ir/alias.h"
#include "ir/print.h"
#include "passes/all.h"

namespace weft {
namespace {

struct Partition {
  std::vector<Node*> nodes;
  bool splitting = false;
};

bool is_splitting(const Node& node, const std::vector<std::string>& ops) {
  return std::any_of(ops.begin(), ops.end(), [&](const std::string& name) {
    return node.name == name || (node.op != nullptr && node.op->splits_as == name);
  });
}

std::vector<Partition> partition(const Graph& graph, const std::vector<std::string>& splitting_ops) {
  std::vector<Partition> parts;
  for (const auto& node : graph.nodes()) {
    const bool splitting = is_splitting(*node, splitting_ops);
    if (parts.empty() || parts.back().splitting != splitting) parts.push_back({{}, splitting});
    parts.back().nodes.push_back(node.get());
  }
  return parts;
}

// Moves each piece that is one allocation into the last ordinary piece before it, if its inputs are defined by then.
void merge_allocations(std::vector<Partition>& parts) {
  std::map<const Node*, std::size_t> part_of;
  for (std::size_t i = 0; i < parts.size(); ++i)
    for (const Node* node : parts[i].nodes) part_of[node] = i;
  std::optional<std::size_t> previous;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].splitting) continue;
    Partition& part = parts[i];
    const bool only_allocates = part.nodes.size() == 1 && part.nodes[0]->op->is_allocation;
    const bool can_move =
        only_allocates && previous &&
        std::all_of(part.nodes[0]->operands.begin(), part.nodes[0]->operands.end(), [&](auto* operand) {
          return operand == nullptr || operand->producer == nullptr || part_of.at(operand->producer) <= *previous;
        });
    if (!can_move) {
      previous = i;
      continue;
    }
    parts[*previous].nodes.push_back(part.nodes[0]);
    part_of[part.nodes[0]] = *previous;
    part.nodes.clear();
  }
  std::erase_if(parts, [](const Partition& part) { return part.nodes.empty(); });
}

class Splitter {
 public:
  Splitter(Graph& graph, const PassContext& context) : graph_(graph), context_(context) {}

  PassResult run() {
    assign_names(graph_);
    std::vector<NodeChoice> runs = nodes_that_run();
    std::vector<Partition> parts = partition(graph_, context_.splitting_ops);
    merge_allocations(parts);
    for (std::size_t i = 0; i < parts.size(); ++i)
      for (const Node* node : parts[i].nodes) part_of_[node] = i;
    part_of_[graph_.result_node()] = parts.size();

    // The new graph is built next to the old one and then replaces it.
    Graph stitched(graph_.name, Stage::split);
    for (const auto& input : graph_.inputs()) {
      GraphValue* twin = stitched.add_input(input->meta, input->name);
      twin->donated = input->donated;
      twin->param = input->param;
      twin->key = input->key;
      outer_[input.get()] = twin;
    }
    int splitting = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      splitting += parts[i].splitting ? 1 : 0;
      add_call(stitched, parts[i], i);
    }
    std::vector<GraphValue*> results;
    for (const GraphValue* result : graph_.results()) results.push_back(outer_.at(result));
    stitched.set_results(std::move(results));
    const int unique = static_cast<int>(pieces_.size());
    graph_.take_body(stitched);
    graph_.pieces = std::move(pieces_);
    return {.counts = {{"pieces", static_cast<int>(parts.size())}, {"splitting", splitting}, {"unique", unique}},
            .runs = std::move(runs)};
  }

 private:
  // Equal pieces are defined once, so only here each call of a piece still has the names of its own nodes.
  std::vector<NodeChoice> nodes_that_run() const {
    std::vector<NodeChoice> runs;
    for (const auto& node : graph_.nodes()) {
      if (node->op == nullptr || node->op->is_view || node->results.empty()) continue;
      runs.push_back({node->result()->name,
                      node->name,
                      layer_of(*node),
                      {.provider = node->provider, .reason = "a pass after lower chose it"}});
    }
    return runs;
  }

  // The arguments of the piece, in order of first use, and its results that others use, in order of definition.
  struct Border {
    std::vector<GraphValue*> arguments;
    std::vector<GraphValue*> results;
  };

  Border border(const Partition& part, std::size_t index) const {
    Border border;
    std::set<const GraphValue*> seen;
    for (const Node* node : part.nodes) {
      for (GraphValue* operand : node->operands) {
        const bool outside =
            operand != nullptr && (operand->producer == nullptr || part_of_.at(operand->producer) != index);
        if (outside && seen.insert(operand).second) border.arguments.push_back(operand);
      }
      for (const auto& result : node->results) {
        const bool crosses = std::any_of(result->uses.begin(), result->uses.end(),
                                         [&](const Use& use) { return part_of_.at(use.node) != index; });
        if (crosses) border.results.push_back(result.get());
      }
    }
    add_symbol_carriers(part, border);
    return border;
  }

  // If no argument has a symbol that the piece needs, adds the first graph input that has it as one more argument.
  void add_symbol_carriers(const Partition& part, Border& border) const {
    std::set<std::string> used, shown;
    for (const Node* node : part.nodes)
      for (const auto& result : node->results)
        for (const Dim& dim : result->meta.shape) dim.collect_symbols(used);
    for (const GraphValue* argument : border.arguments)
      for (const Dim& dim : argument->meta.shape) dim.collect_symbols(shown);
    for (const std::string& symbol : used) {
      if (shown.count(symbol) != 0) continue;
      for (const auto& input : graph_.inputs()) {
        std::set<std::string> of_input;
        for (const Dim& dim : input->meta.shape) dim.collect_symbols(of_input);
        if (of_input.count(symbol) == 0) continue;
        border.arguments.push_back(input.get());
        break;
      }
    }
  }

  void add_call(Graph& stitched, const Partition& part, std::size_t index) {
    const Border border = this->border(part, index);
    std::shared_ptr<Graph> piece = make_piece(part, border);
    const auto known = std::find_if(pieces_.begin(), pieces_.end(),
                                    [&](const auto& other) { return has_equal_nodes(*other, *piece); });
    const std::string name = known == pieces_.end() ? piece->name : (*known)->name;
    if (known == pieces_.end()) pieces_.push_back(piece);
    auto call = std::make_unique<Node>();
    call->kind = NodeKind::call;
    call->name = name;
    call->origin = part.nodes.front()->origin;
    for (const GraphValue* argument : border.arguments) call->operands.push_back(outer_.at(argument));
    std::vector<Meta> metas;
    for (const GraphValue* result : border.results) metas.push_back(result->meta);
    Node* added = stitched.add_node(std::move(call), std::move(metas));
    for (std::size_t i = 0; i < border.results.size(); ++i) {
      added->results[i]->name = border.results[i]->name;
      outer_[border.results[i]] = added->result(i);
    }
  }

  std::shared_ptr<Graph> make_piece(const Partition& part, const Border& border) {
    auto piece = std::make_shared<Graph>("p" + std::to_string(pieces_.size()), Stage::lowered);
    piece->kind = part.splitting ? DefinitionKind::splitting : DefinitionKind::piece;
    piece->device = graph_.device;
    piece->bounds = bounds_of(part, border);
    std::map<const GraphValue*, GraphValue*> inner{{nullptr, nullptr}};
    for (const GraphValue* argument : border.arguments)
      inner[argument] = piece->add_input(argument->meta, argument->name);
    for (const Node* node : part.nodes) {
      std::vector<GraphValue*> operands;
      for (const GraphValue* operand : node->operands) operands.push_back(inner.at(operand));
      std::vector<Meta> metas;
      for (const auto& result : node->results) metas.push_back(result->meta);
      Node* twin = piece->add_op(*node->op, std::move(operands), node->attributes, std::move(metas));
      twin->origin = node->origin;
      twin->provider = node->provider;
      twin->writes = node->writes;
      for (std::size_t i = 0; i < node->results.size(); ++i) {
        twin->results[i]->name = node->results[i]->name;
        inner[node->results[i].get()] = twin->result(i);
      }
      for (int written : node->writes) mark_overwritten(*piece, twin->operands[static_cast<std::size_t>(written)]);
    }
    std::vector<GraphValue*> results;
    for (const GraphValue* result : border.results) results.push_back(inner.at(result));
    record_result_homes(*piece, results);
    return piece;
  }

  static void mark_overwritten(Graph& piece, const GraphValue* value) {
    const GraphValue* home = home_of(value);
    if (home->producer == nullptr) piece.inputs()[static_cast<std::size_t>(home->index)]->overwrites = true;
  }

  static void record_result_homes(Graph& piece, const std::vector<GraphValue*>& results) {
    piece.set_results(results);
    std::vector<int> homes;
    for (const GraphValue* result : results) {
      const GraphValue* home = home_of(result);
      homes.push_back(home->producer == nullptr ? home->index : -1);
    }
    if (std::any_of(homes.begin(), homes.end(), [](int home) { return home >= 0; }))
      piece.result_node()->results_in = std::move(homes);
  }

  Bounds bounds_of(const Partition& part, const Border& border) const {
    std::set<std::string> symbols;
    for (const GraphValue* argument : border.arguments)
      for (const Dim& dim : argument->meta.shape) dim.collect_symbols(symbols);
    for (const Node* node : part.nodes)
      for (const auto& result : node->results)
        for (const Dim& dim : result->meta.shape) dim.collect_symbols(symbols);
    Bounds bounds;
    for (const std::string& symbol : symbols)
      if (auto found = graph_.bounds.find(symbol); found != graph_.bounds.end()) bounds.insert(*found);
    return bounds;
  }

  Graph& graph_;
  const PassContext& context_;
  std::map<const Node*, std::size_t> part_of_;
  std::map<const GraphValue*, GraphValue*> outer_;
  std::vector<std::shared_ptr<Graph>> pieces_;
};

}  // namespace

PassResult split(Graph& graph, PassContext& context) { return Splitter(graph, context).run(); }

}  // namespace weft
