#include "compiler/eager.h"

#include <algorithm>

#include "base/error.h"
#include "ir/meta_evaluator.h"

namespace weft {
namespace {

// A model makes a few dozen; only a caller whose sizes never repeat reaches this, and starts anew.
constexpr std::size_t kMostKnownCalls = 4096;

std::size_t hash_of(const Op& op, const Values& operands) {
  std::uint64_t hash = reinterpret_cast<std::uintptr_t>(&op);
  for (const Value& operand : operands) {
    hash = hash * 31 + 1;
    if (!operand.present()) continue;
    for (const Dim& dim : operand.meta().shape)
      hash = (hash ^ static_cast<std::uint64_t>(dim.constant())) * 0x9E3779B97F4A7C15u;
  }
  return hash ^ (hash >> 32);
}

bool are_of(const Values& operands, const std::vector<std::optional<Meta>>& metas) {
  return std::equal(operands.begin(), operands.end(), metas.begin(), metas.end(), [](const Value& value, auto& meta) {
    return value.present() ? meta.has_value() && value.meta() == *meta : !meta.has_value();
  });
}

}  // namespace

PreparedCall EagerEvaluator::prepare_anew(const Op& op, std::span<const std::optional<Meta>> operands,
                                          const Attributes& attributes) {
  std::vector<Meta> results = infer_results(op, ops(), operands, attributes);
  if (op.is_view) return {.op = &op, .results = std::move(results)};
  const auto [candidates, is_new] = candidates_.try_emplace(&op);
  if (is_new)
    candidates->second =
        list_candidates(context_.kernels, context_.priorities, op.name, context_.options.batch_invariant);
  const Kernel* kernel = choose(candidates->second, {operands, results, attributes, range_}).kernel;
  if (kernel == nullptr && !op.is_primitive()) return {.op = &op, .results = std::move(results)};
  if (kernel == nullptr) kernel = &context_.kernel_for(op.name, "native");
  return prepare_call(op, *kernel, operands, attributes, std::move(results));
}

const PreparedCall& EagerEvaluator::prepare(const Op& op, const Values& operands, const Attributes& attributes) {
  const std::size_t hash = hash_of(op, operands);
  const auto [begin, end] = known_calls_.equal_range(hash);
  for (auto known = begin; known != end; ++known) {
    const KnownCall& call = known->second;
    if (call.prepared.op == &op && are_of(operands, call.operands) && attributes == call.attributes)
      return call.prepared;
  }
  KnownCall call{operand_metas(operands), attributes, {}};
  call.prepared = prepare_anew(op, call.operands, attributes);
  if (known_calls_.size() >= kMostKnownCalls) known_calls_.clear();
  return known_calls_.emplace(hash, std::move(call))->second.prepared;
}

Values EagerEvaluator::evaluate(const Op& op, const Values& operands, const Attributes& attributes, bool inplace) {
  const PreparedCall& call = prepare(op, operands, attributes);
  if (inplace) check_given_away(op, operands);
  if (op.is_view) return {value(run_view(op, operands[0].tensor(), attributes, call.results[0]))};
  if (call.kernel == nullptr) return op.meaning(*this, operands, attributes);
  Values values;
  for (Tensor& tensor : run_call(call, operands, attributes, inplace, pool_, *context_.threads))
    values.push_back(value(std::move(tensor)));
  return values;
}

}  // namespace weft
