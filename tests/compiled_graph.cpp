#include "tests/compiled_graph.h"

#include <algorithm>
#include <cstring>

#include <fmt/core.h>

#include "builtin/context.h"
#include "compiler/check/tensor_difference.h"
#include "compiler/run/eager.h"
#include "compiler/run/graph_program.h"
#include "compiler/run/interpret.h"
#include "compiler/run/sample_call.h"
#include "ir/rank_groups.h"
#include "ir/trace.h"
#include "runtime/replay.h"

namespace weft {
namespace {

// Batches are only read.
std::vector<Tensor> copies_of(std::span<const Tensor> tensors) {
  std::vector<Tensor> copies;
  for (const Tensor& tensor : tensors) copies.push_back(tensor.meta.kind == MetaKind::batch ? tensor : copy_of(tensor));
  return copies;
}

std::vector<Tensor> run_op_by_op(const Graph& graph, Evaluator& evaluator, std::span<const Tensor> inputs) {
  std::vector<Tensor> results;
  for (const Value& value : run_graph(graph, evaluator, values_of(evaluator, copies_of(inputs))))
    results.push_back(copy_of(value.tensor()));
  return results;
}

// A rank's variant of an input: its elements, shifted by some for each rank.
std::vector<Tensor> inputs_of_rank(const Graph& graph, std::span<const Tensor> inputs, int rank) {
  std::vector<Tensor> own = copies_of(inputs);
  for (std::size_t i = 0; i < own.size(); ++i) {
    const std::vector<Use>& uses = graph.inputs()[i]->uses;
    if (std::none_of(uses.begin(), uses.end(),
                     [](const Use& use) { return use.node->op != nullptr && is_over_ranks(*use.node->op); }))
      continue;
    const std::int64_t bytes = own[i].meta.bytes().number(), element = bytes_of(own[i].meta.dtype, 2) / 2;
    std::rotate(own[i].data(), own[i].data() + rank * 37 * element % bytes, own[i].data() + bytes);
  }
  return own;
}

// Whether its value depends on memory that was never written.
bool is_undefined(const GraphValue* value) {
  const Node* maker = value == nullptr ? nullptr : value->producer;
  if (maker == nullptr) return false;
  return maker->op->is_allocation || std::any_of(maker->operands.begin(), maker->operands.end(), is_undefined);
}

std::string difference_on_rank(const Graph& graph, const Context& context, TokenRange range,
                               std::span<const Tensor> inputs, const PassRunnerOptions& options) {
  const std::vector<Tensor> wanted =
      sums_in_free_order(graph) ? run_eagerly(graph, context, range, inputs) : run_interpreted(graph, context, inputs);
  return first_difference(graph, wanted, run_compiled(graph, context, range, inputs, options));
}

}  // namespace

std::shared_ptr<Graph> graph_of_call(const Op& op, std::span<const Tensor> operands, const Attributes& attributes,
                                     const OpTable& ops) {
  auto graph = std::make_shared<Graph>("g", Stage::traced);
  Trace trace(ops, *graph);
  Values values;
  for (const Tensor& operand : operands)
    values.push_back(operand.defined() ? trace.input("x" + std::to_string(values.size()), operand.meta) : Value());
  trace.finish(trace.evaluate(op, values, attributes, false));
  for (const auto& input : graph->inputs()) input->donated = input->meta.kind == MetaKind::kv;
  return graph;
}

std::vector<Tensor> run_compiled(const Graph& graph, const Context& context, TokenRange range,
                                 std::span<const Tensor> inputs, const PassRunnerOptions& options) {
  const auto compiled = graph.clone();
  complete_bounds(*compiled, context.options);
  Replay replay(compile(*compiled, context, range, options).plan, *context.threads, &context.groups);
  const std::vector<Tensor> own = copies_of(inputs);
  for (std::size_t i = 0; i < own.size(); ++i) replay.bind(i, own[i]);
  replay.run();
  std::vector<Tensor> results;
  for (std::size_t i = 0; i < graph.results().size(); ++i) results.push_back(copy_of(replay.result(i)));
  return results;
}

std::vector<Tensor> run_eagerly(const Graph& graph, const Context& context, TokenRange range,
                                std::span<const Tensor> inputs) {
  EagerEvaluator evaluator(context, range);
  return run_op_by_op(graph, evaluator, inputs);
}

std::vector<Tensor> run_interpreted(const Graph& graph, const Context& context, std::span<const Tensor> inputs) {
  Interpreter interpreter(context);
  return run_op_by_op(graph, interpreter, inputs);
}

bool sums_in_free_order(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const auto& node) {
    return node->name.starts_with("linear") || node->name.starts_with("attention");
  });
}

std::string first_difference(const Graph& graph, std::span<const Tensor> wanted, std::span<const Tensor> came) {
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (is_undefined(graph.results()[i])) continue;
    if (const std::string text = difference(wanted[i], came[i], {}, true); !text.empty())
      return fmt::format("result {}: {}", i, text);
  }
  return "";
}

std::string compiled_difference(const Graph& graph, const Context& context, TokenRange range,
                                std::span<const Tensor> inputs, const PassRunnerOptions& options) {
  const std::map<std::string, std::int64_t> groups = rank_groups(graph);
  if (groups.empty()) return difference_on_rank(graph, context, range, inputs, options);
  std::vector<std::string> names;
  for (const auto& [name, size] : groups) names.push_back(name);
  std::vector<std::string> differences(static_cast<std::size_t>(groups.begin()->second));
  run_ranks(static_cast<int>(differences.size()), names, [&](int rank, const RankGroups& own) {
    Options alone = context.options;
    alone.threads = 1;
    const auto of_rank = make_context(alone);
    of_rank->groups = own;
    differences[static_cast<std::size_t>(rank)] =
        difference_on_rank(graph, *of_rank, range, inputs_of_rank(graph, inputs, rank), options);
  });
  for (std::size_t rank = 0; rank < differences.size(); ++rank)
    if (!differences[rank].empty()) return fmt::format("rank {}: {}", rank, differences[rank]);
  return "";
}

}  // namespace weft
