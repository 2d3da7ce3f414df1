#include "compiler/parts_timer.h"

#include <algorithm>

#include "compiler/pipeline.h"
#include "ir/trace.h"

namespace weft {

std::set<std::string> fused_ops(const Context& context) {
  std::set<std::string> names;
  for (const FusionPattern& entry : context.patterns) {
    const std::vector<PatternNode>& before = entry.pattern.before.nodes;
    for (const PatternNode& node : entry.pattern.after.nodes) {
      const auto is_same = [&](const PatternNode& other) { return other.name == node.name; };
      if (!node.op->is_primitive() && std::none_of(before.begin(), before.end(), is_same)) names.insert(node.name);
    }
  }
  return names;
}

PartsTimer::PartsTimer(const Context& context, const Op& op, const std::vector<Tensor>& operands,
                       const Attributes& attributes, TokenRange range, TimedForm form) {
  Graph graph(op.name, Stage::traced);
  Trace trace(context.ops, graph);
  Values values;
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    values.emplace_back();
    if (!operands[i].defined()) continue;
    // In a model, what goes into a fusion is seldom used again, and a part may write over it.
    values.back() = trace.donated_input("v" + std::to_string(i), operands[i].meta);
    inputs.push_back(operands[i]);
  }
  trace.finish(form == TimedForm::op ? trace.evaluate(op, values, attributes, false)
                                     : op.meaning(trace, values, attributes));
  const Compiled compiled = compile(graph, context, range, {.fuse = false});
  replay_ = std::make_unique<Replay>(compiled.plan, *context.threads, &context.groups);
  for (std::size_t i = 0; i < inputs.size(); ++i) replay_->bind(i, inputs[i]);
}

double PartsTimer::seconds(const std::function<double()>& clock) {
  const double start = clock();
  replay_->run();
  return clock() - start;
}

}  // namespace weft
