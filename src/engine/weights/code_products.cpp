#include "engine/weights/code_products.h"

#include <fmt/ranges.h>

#include "ir/meta_evaluator.h"
#include "nn/linear.h"

namespace weft {
namespace {

// Evaluates only types, and keeps those of the last call.
class LastCall : public MetaEvaluator {
 public:
  using MetaEvaluator::MetaEvaluator;
  Values evaluate(const Op& called, const Values& given, const Attributes& complete, bool maybe_inplace) override {
    Values made = MetaEvaluator::evaluate(called, given, complete, maybe_inplace);
    last = {.op = called.name, .operands = operand_metas(given), .results = {}, .attributes = complete};
    for (const Value& value : made) last.results.push_back(value.meta());
    return made;
  }

  CodeProduct last;
};

bool is_multiplied(const CodeProduct& product, const Context& context, const PriorityLists& priorities,
                   bool batch_invariant) {
  for (const Candidate& candidate : list_candidates(context.kernels, priorities, product.op, batch_invariant)) {
    if (candidate.provider == "native" || candidate.provider == "reference") return false;
    const Kernel* const kernel = candidate.kernel;
    if (kernel != nullptr && kernel->launches &&
        kernel->supports({product.operands, product.results, product.attributes, kernel->rows}))
      return true;
  }
  return false;
}

}  // namespace

CodeProduct code_product(const OpTable& ops, const ModelFacts& facts, const std::vector<std::string>& keys,
                         const Dim& depth, const WeightMeta& meta) {
  LastCall layer(ops);
  nn::linear_over_codes(
      Value::of_meta(layer, Meta::tensor(facts.dtype, {tokens_symbol(), depth})), keys,
      *facts.config.quantization->of(keys[0]), facts.scales_by_group,
      [&](const char*, const auto& of, WeightRole role) { return Value::of_meta(layer, meta(of, role)); });
  return std::move(layer.last);
}

bool is_multiplied(const CodeProduct& product, const Context& context) {
  return is_multiplied(product, context, context.priorities, context.options.batch_invariant);
}

std::string options_against(const CodeProduct& product, const Context& context) {
  const bool is_invariant = context.options.batch_invariant;
  if (is_invariant && is_multiplied(product, context, context.priorities, false)) return "--batch-invariant";
  const auto user = context.priorities.user().find(product.op);
  if (user == context.priorities.user().end()) return "";
  const std::string list = fmt::format("--ir-op-priority.{}={}", product.op, fmt::join(user->second, ","));
  PriorityLists defaults = context.priorities;
  defaults.set(product.op, {});
  if (is_multiplied(product, context, defaults, is_invariant)) return list;
  return is_multiplied(product, context, defaults, false) ? "--batch-invariant and " + list : "";
}

}  // namespace weft
