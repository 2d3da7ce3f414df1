#include "compiler/functions/generated_calls.h"

#include <algorithm>

#include "compiler/pieces.h"
#include "compiler/pipeline.h"
#include "ir/print.h"
#include "ir/trace.h"
#include "passes/all.h"

namespace weft {
namespace {

std::string text_of(const std::string& op, const KernelRequest& request) {
  std::string text = op;
  for (const auto& operand : request.operands) text += operand ? " " + operand->text() : " none";
  for (const auto& [name, value] : request.attributes.entries()) text += " " + name + "=" + value.text();
  return text;
}

}  // namespace

GeneratedExtent GeneratedCalls::extent(const std::string& op, const KernelRequest& request) {
  const std::lock_guard lock(mutex_);
  const auto [known, is_new] = known_.try_emplace(text_of(op, request), GeneratedExtent::nothing);
  if (is_new) known->second = look(op, request);
  return known->second;
}

GeneratedExtent GeneratedCalls::look(const std::string& op, const KernelRequest& request) {
  const auto written = std::make_shared<Graph>(op, Stage::pure);
  Graph& graph = *written;
  Trace trace(context_.ops, graph);
  Values operands;
  for (std::size_t i = 0; i < request.operands.size(); ++i)
    operands.push_back(request.operands[i] ? trace.donated_input("v" + std::to_string(i), *request.operands[i])
                                           : Value());
  trace.finish(trace.evaluate(context_.ops.at(op), operands, request.attributes, false));
  if (const std::string symbol = graph.governing_symbol(); !symbol.empty())
    graph.bounds[symbol] = {request.range.lo, request.range.hi};
  Node& node = *graph.nodes().front();
  if (node.op->is_primitive()) return is_row_node(node) ? GeneratedExtent::whole : GeneratedExtent::nothing;
  // The op itself is replaced by its meaning, whose parts get the kernels that they will have in a model. Tuned
  // priorities do not apply, because they were measured on single calls.
  PriorityLists priorities = context_.priorities.untuned();
  priorities.set(op, {"native"});
  PassContext passes = pass_context(context_, request.range, priorities);
  passes.generated_extent = [&op, of_parts = passes.generated_extent](const std::string& name,
                                                                      const KernelRequest& part) {
    return name == op ? GeneratedExtent::parts : of_parts(name, part);
  };
  lower(graph, passes);
  std::vector<Looked>& looked = looked_[op];
  for (const Looked& before : looked)
    if (has_equal_nodes_but_for_scalars(*before.meaning, graph)) return before.extent;
  looked.push_back({written, look_at_meaning(graph, passes)});
  return looked.back().extent;
}

GeneratedExtent GeneratedCalls::look_at_meaning(const Graph& meaning, PassContext& passes) const {
  const PieceCode code = schedule_piece(meaning, passes);
  if (code.schedule.regions.empty()) return GeneratedExtent::nothing;
  for (const RowRefusal& refusal : code.schedule.refusals)
    if (!only_moves(*refusal.node)) return GeneratedExtent::nothing;
  const auto writes = [](const auto& part) { return !part->writes.empty(); };
  const NodeList& parts = code.graph->nodes();
  return std::any_of(parts.begin(), parts.end(), writes) ? GeneratedExtent::parts : GeneratedExtent::whole;
}

}  // namespace weft
