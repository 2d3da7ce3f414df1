#include "compiler/tune/parts_timer.h"

#include <algorithm>

#include "compiler/pipeline.h"
#include "compiler/run/sample_call.h"
#include "ir/pattern_rewrite.h"
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

namespace {

// The pattern that replaces `after` by `before`; nullopt if `after` does not state everything that `before` needs.
std::optional<Pattern> reversed(const Pattern& pattern) {
  Pattern reversed = pattern;
  std::swap(reversed.before, reversed.after);
  return broken_rule(reversed) ? std::nullopt : std::optional(std::move(reversed));
}

// Replaces each fused op by the ops before the fusion: its pattern's `before` if there is such a pattern, otherwise its
// meaning.
void take_apart(Graph& graph, const Context& context) {
  const std::set<std::string> fused = fused_ops(context);
  std::vector<Pattern> patterns;
  for (const FusionPattern& entry : context.patterns)
    if (const std::vector<PatternNode>& after = entry.pattern.after.nodes;
        after.size() == 1 && fused.contains(after[0].name))
      if (auto pattern = reversed(entry.pattern)) patterns.push_back(std::move(*pattern));
  std::vector<const Pattern*> all;
  for (const Pattern& pattern : patterns) all.push_back(&pattern);
  constexpr int kMostSteps = 100;  // patterns from the user may form a cycle
  bool changed = true;
  for (int step = 0; changed && step < kMostSteps; ++step) {
    changed = false;
    for (const PatternReport& report : rewrite_all(graph, all, context.ops)) changed |= report.matched > 0;
    if (changed) continue;
    const auto left = std::find_if(graph.nodes().begin(), graph.nodes().end(),
                                   [&](const auto& node) { return fused.contains(node->name); });
    changed = left != graph.nodes().end();
    if (changed) inline_meaning(graph, left->get(), context.ops);
  }
}

}  // namespace

std::shared_ptr<const Plan> plan_of_call(const Context& context, const Op& op,
                                         const std::vector<std::optional<Meta>>& operands, const Attributes& attributes,
                                         TokenRange range, TimedForm form) {
  Graph graph(op.name, Stage::traced);
  Trace trace(context.ops, graph);
  Values values;
  // In a model, the operands of a fusion are seldom used again, so a part may overwrite them.
  for (std::size_t i = 0; i < operands.size(); ++i)
    values.push_back(operands[i] ? trace.donated_input("v" + std::to_string(i), *operands[i]) : Value());
  trace.finish(form == TimedForm::parts ? op.meaning(trace, values, attributes)
                                        : trace.evaluate(op, values, attributes, false));
  if (form == TimedForm::unfused) take_apart(graph, context);
  return compile(graph, context, range, {.fuse = false}).plan;
}

PartsTimer::PartsTimer(const Context& context, const Op& op, const std::vector<Tensor>& operands,
                       const Attributes& attributes, TokenRange range, TimedForm form)
    : PartsTimer(context, plan_of_call(context, op, metas_of(operands), attributes, range, form), operands) {}

PartsTimer::PartsTimer(const Context& context, std::shared_ptr<const Plan> plan, const std::vector<Tensor>& operands)
    : replay_(std::make_unique<Replay>(std::move(plan), *context.threads, &context.groups)) {
  std::size_t index = 0;
  for (const Tensor& operand : operands)
    if (operand.defined()) replay_->bind(index++, operand);
}

double PartsTimer::seconds(const std::function<double()>& clock) {
  const double start = clock();
  replay_->run();
  return clock() - start;
}

}  // namespace weft
