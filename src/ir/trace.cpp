#include "ir/trace.h"

#include <utility>

#include "base/error.h"
#include "ir/meaning.h"

namespace weft {

Trace::Trace(const OpTable& ops, Graph& graph, const Node* before) : Evaluator(ops), graph_(graph), before_(before) {}

Value Trace::input(std::string name, Meta meta) { return of(graph_.add_input(std::move(meta), std::move(name))); }

Value Trace::donated_input(std::string name, Meta meta) {
  GraphValue* value = graph_.add_input(std::move(meta), std::move(name));
  value->donated = true;
  return of(value);
}

Value Trace::param(std::string name, Meta meta, std::string key) {
  GraphValue* value = graph_.add_input(std::move(meta), std::move(name));
  value->param = true;
  value->key = std::move(key);
  return of(value);
}

Value Trace::of(GraphValue* value) { return value == nullptr ? Value() : Value::traced(*this, value); }

void Trace::finish(const Values& results) {
  std::vector<GraphValue*> values;
  for (const Value& result : results) {
    CHECK(result.present() && &result.home() == this, "a graph can return only values of its own trace");
    values.push_back(result.graph_value());
  }
  graph_.set_results(std::move(values));
}

Values Trace::evaluate(const Op& op, const Values& operands, const Attributes& attributes, bool inplace) {
  std::vector<GraphValue*> values;
  std::vector<const Meta*> given;
  values.reserve(operands.size());
  given.reserve(operands.size());
  for (const Value& operand : operands) {
    values.push_back(operand.graph_value());
    given.push_back(operand.present() ? &operand.meta() : nullptr);
  }
  // Equal calls, such as those of equal layers, are inferred once.
  Node* node = graph_.add_op(op, std::move(values), attributes, inferred_.of(op, given, attributes, ops()), before_);
  node->maybe_inplace = inplace;
  node->origin = origin_;
  node->site = std::exchange(site_, {});
  Values results;
  for (const auto& result : node->results) results.push_back(of(result.get()));
  return results;
}

bool Trace::decide(const DimCondition& condition, const Reading& reading) {
  const bool holds = Evaluator::decide(condition, reading);
  if (!condition.left.is_number() || !condition.right.is_number())
    branches_.push_back({holds ? condition : condition.negated(), reading});
  return holds;
}

std::vector<Node*> inline_meaning(Graph& graph, Node* node, const OpTable& ops) {
  CHECK(node->op != nullptr && !node->op->is_primitive(), "{} has no meaning to put in its place", node->name);
  Trace trace(ops, graph, node);
  trace.set_origin(node->origin);
  Values operands;
  for (GraphValue* operand : node->operands) operands.push_back(trace.of(operand));
  const Node* previous = node->position == graph.nodes().begin() ? nullptr : std::prev(node->position)->get();
  const Values results = run_meaning(*node->op, trace, operands, node->attributes);
  CHECK(results.size() == node->results.size(), "the meaning of {} gives {} results instead of {}", node->name,
        results.size(), node->results.size());
  std::vector<Node*> added;
  auto first = previous == nullptr ? graph.nodes().begin() : std::next(NodeList::const_iterator(previous->position));
  for (auto it = first; it != NodeList::const_iterator(node->position); ++it) {
    (*it)->site = node->site;
    added.push_back(it->get());
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    GraphValue* replacement = results[i].graph_value();
    if (replacement->name.empty()) replacement->name = node->results[i]->name;
    graph.replace_all_uses(node->results[i].get(), replacement);
  }
  graph.erase(node);
  return added;
}

}  // namespace weft
