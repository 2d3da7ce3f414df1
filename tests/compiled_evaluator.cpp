#include "tests/compiled_evaluator.h"

#include <algorithm>

#include "base/error.h"
#include "codegen/row_program.h"
#include "compiler/check/tensor_difference.h"
#include "compiler/pipeline.h"
#include "ir/print.h"
#include "tests/compiled_graph.h"

namespace weft {
namespace {

bool has_rows(const Tensor& tensor) {
  return tensor.defined() && tensor.meta.is_tensor() && tensor.meta.rank() > 0 && tensor.meta.is_contiguous();
}

// A graph has no other rows than these.
bool are_of_rows(const GraphValue& value, const Dim& rows) {
  return value.meta.rank() == 0 || value.meta.shape[0].is_number() || value.meta.shape[0] == rows;
}

bool has_elements(const Values& results) {
  return std::any_of(results.begin(), results.end(),
                     [](const Value& result) { return element_count(result.meta().shape).number() > 0; });
}

}  // namespace

// The call for any number of rows: dim 0 of the operand that determines it is a symbol, alone or together with all
// operands of the same length. Null if the op allows neither, or if its results have other rows.
std::shared_ptr<Graph> CompiledEvaluator::graph_of_rows(const Op& op, std::span<const Tensor> operands,
                                                        const Attributes& attributes) {
  const auto first = static_cast<std::size_t>(op.rows_of);
  if (op.rows_of < 0 || first >= operands.size() || !has_rows(operands[first])) return nullptr;
  const Dim count = operands[first].meta.shape[0], rows = Dim::symbol("s0");
  for (const bool all : {false, true}) {
    std::vector<Tensor> of_rows(operands.begin(), operands.end());
    for (std::size_t i = 0; i < of_rows.size(); ++i)
      if (i == first || (all && has_rows(of_rows[i]) && of_rows[i].meta.shape[0] == count))
        of_rows[i].meta.shape[0] = rows;
    try {
      auto graph = graph_of_call(op, of_rows, attributes, ops());
      graph->bounds["s0"] = {range_.lo, range_.hi};
      if (std::all_of(graph->results().begin(), graph->results().end(),
                      [&](const GraphValue* result) { return are_of_rows(*result, rows); }))
        return graph;
    } catch (const UserError&) {
      // The op compares this extent with one that is a fixed number.
    }
  }
  return nullptr;
}

Replay& CompiledEvaluator::program_of(const Op& op, std::span<const Tensor> operands, const Attributes& attributes) {
  std::shared_ptr<Graph> graph = graph_of_rows(op, operands, attributes);
  if (graph == nullptr) graph = graph_of_call(op, operands, attributes, ops());
  std::unique_ptr<Replay>& program = programs_[canonical(*graph)];
  if (program == nullptr)
    program = std::make_unique<Replay>(compile(*graph, context_, range_, {.fuse = false}).plan, *context_.threads,
                                       &context_.groups);
  return *program;
}

Values CompiledEvaluator::evaluate(const Op& op, const Values& operands, const Attributes& attributes,
                                   bool maybe_inplace) {
  CHECK(!maybe_inplace, "{} gives arguments away", op.name);
  std::vector<Tensor> tensors;
  for (const Value& operand : operands) tensors.push_back(operand.present() ? operand.tensor() : Tensor());
  Replay& program = program_of(op, tensors, attributes);
  std::size_t input = 0;
  for (const Tensor& tensor : tensors)
    if (tensor.defined()) program.bind(input++, tensor);
  program.run();
  Values results;
  for (std::size_t i = 0; i < program.plan().results.size(); ++i) results.push_back(value(copy_of(program.result(i))));
  if (!has_elements(results)) return results;  // nothing ran
  for (const PlanStep& step : program.plan().steps)
    ++(step.op.starts_with(kRowFunctionPrefix) ? steps_.generated : steps_.others);
  return results;
}

}  // namespace weft
